"""Each provider names the login its program will use, by its place or its variable, and never by its value."""

import asyncio
import json
from collections.abc import Mapping
from pathlib import Path

import pytest

from clew.ports.logins import KnowsItsLogins, Logins
from clew.ports.plugins import find_providers
from clew.ports.provider import Settings

SECRET = "sk-very-secret"


def logins(provider: str, home: Path, options: Mapping[str, str] | None = None, **environment: str) -> Logins:
    """Without options an ACP agent is one that nothing is known of but its program."""
    program = ("odd-agent",) if provider == "acp" and options is None else ()
    made = find_providers().make(provider, Settings(program, {"HOME": str(home)}, environment, options or {}))
    assert isinstance(made, KnowsItsLogins)

    async def scene() -> Logins:
        try:
            return await made.logins()
        finally:
            await made.close()

    known = asyncio.run(scene())
    assert SECRET not in repr(known)
    return known


def write(file: Path, value: object) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(value if isinstance(value, str) else json.dumps(value))


@pytest.mark.parametrize("provider", ["claude", "codex", "opencode"])
def test_a_new_home_has_no_login_and_says_how_to_get_one(tmp_path: Path, provider: str) -> None:
    known = logins(provider, tmp_path)
    assert known.used == ""
    assert provider in known.remedy("ada")


def test_claude_uses_a_key_before_a_login(tmp_path: Path) -> None:
    write(tmp_path / ".claude.json", {"oauthAccount": {"emailAddress": "ada@example.org"}})
    assert logins("claude", tmp_path).used == f"the login in {tmp_path}/.claude.json"
    assert logins("claude", tmp_path, ANTHROPIC_API_KEY=SECRET).used == "ANTHROPIC_API_KEY"
    assert logins("claude", tmp_path, CLAUDE_CODE_USE_BEDROCK="1").used == "CLAUDE_CODE_USE_BEDROCK"


@pytest.mark.parametrize(
    ("file", "value", "used"),
    [
        (".credentials.json", {"claudeAiOauth": {"accessToken": SECRET}}, "the login in {home}/.credentials.json"),
        ("settings.json", {"apiKeyHelper": "pass show key"}, "apiKeyHelper in {home}/settings.json"),
        ("settings.json", {"env": {"ANTHROPIC_API_KEY": SECRET}}, "ANTHROPIC_API_KEY in {home}/settings.json"),
        ("settings.json", "not json", ""),
    ],
)
def test_claude_finds_what_its_home_keeps(tmp_path: Path, file: str, value: object, used: str) -> None:
    home = tmp_path / ".claude"
    write(home / file, value)
    assert logins("claude", tmp_path).used == used.format(home=home)


def test_codex_takes_no_key_from_its_environment_and_says_how_to_store_one(tmp_path: Path) -> None:
    known = logins("codex", tmp_path, OPENAI_API_KEY=SECRET)
    assert known.used == ""
    assert "store a key with `printenv OPENAI_API_KEY | codex login --with-api-key`" in known.remedy("ada")
    write(tmp_path / ".codex" / "auth.json", {"OPENAI_API_KEY": SECRET})
    assert logins("codex", tmp_path).used == f"the login in {tmp_path}/.codex/auth.json"


def test_codex_needs_the_key_that_its_model_provider_names(tmp_path: Path) -> None:
    own = 'model_provider = "own"\n[model_providers.own]\nname = "own"\nbase_url = "http://127.0.0.1:9"\n'
    write(tmp_path / ".codex" / "config.toml", f'{own}env_key = "OWN_KEY"\n')
    assert logins("codex", tmp_path) == Logins("", ("OWN_KEY",))
    assert logins("codex", tmp_path, OWN_KEY=SECRET).used == "OWN_KEY"
    write(tmp_path / ".codex" / "config.toml", own)
    assert "config.toml" in logins("codex", tmp_path).used


def test_opencode_finds_keys_logins_and_its_configuration(tmp_path: Path) -> None:
    assert logins("opencode", tmp_path, GROQ_API_KEY=SECRET, OPENAI_API_KEY=SECRET).used == (
        "GROQ_API_KEY, OPENAI_API_KEY"
    )
    config = tmp_path / ".config" / "opencode" / "opencode.json"
    write(config, {"provider": {"own": {"options": {"apiKey": SECRET}}}})
    assert logins("opencode", tmp_path).used == f"a key in {config}"
    kept = tmp_path / ".local" / "share" / "opencode" / "auth.json"
    write(kept, {"anthropic": {"type": "api", "key": SECRET}})
    assert logins("opencode", tmp_path).used == f"the logins in {kept}"


@pytest.mark.parametrize(
    ("agent", "key", "file"),
    [
        ("claude", "ANTHROPIC_API_KEY", ".claude/.credentials.json"),
        ("codex", "OPENAI_API_KEY", ".codex/auth.json"),
        ("opencode", "OPENROUTER_API_KEY", ".local/share/opencode/auth.json"),
        ("gemini", "GEMINI_API_KEY", ".gemini/oauth_creds.json"),
        ("qwen", "DASHSCOPE_API_KEY", ".qwen/oauth_creds.json"),
    ],
)
def test_the_login_of_an_acp_agent_is_found_or_it_is_said_how_to_get_one(
    tmp_path: Path, agent: str, key: str, file: str
) -> None:
    preset = {"agent": agent}
    known = logins("acp", tmp_path, preset)
    assert (known.used, key in known.remedy("ada"), agent in known.remedy("ada")) == ("", True, True)
    write(tmp_path / file, "")
    assert logins("acp", tmp_path, preset).used == ""
    write(tmp_path / file, {"token": SECRET})
    assert logins("acp", tmp_path, preset).used == f"the login in {tmp_path / file}"
    assert logins("acp", tmp_path, preset, **{key: SECRET}).used == key


def test_of_any_other_acp_agent_only_the_keys_it_was_given_are_known(tmp_path: Path) -> None:
    assert logins("acp", tmp_path, ODD_API_KEY=SECRET).used == "ODD_API_KEY"
    known = logins("acp", tmp_path, LANG="C")
    assert known.used == ""
    assert known.remedy("ada") == (
        "Clew does not know which login its program takes; try it with `clew agent test ada`."
    )
