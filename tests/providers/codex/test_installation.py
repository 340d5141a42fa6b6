"""What is there: the native program behind a wrapper, the home, and whose account it uses."""

import json
import os
from dataclasses import replace
from pathlib import Path

import pytest

from clew.ports.provider import Settings
from clew.programs.faults import CannotStart
from clew.providers.codex import installation
from clew.providers.codex.home import Home
from tests.providers.agents import Agents
from tests.providers.codex.kit import Lab


@pytest.mark.case("L12")
@pytest.mark.parametrize("how", ["linked", "by node", "native"])
def test_the_program_behind_the_wrapper_is_found(agents: Agents, tmp_path: Path, how: str) -> None:
    native = agents.codex.command[0]
    (packages,) = (place for place in Path(native).parents if place.name == "node_modules")
    wrapper = packages / "@openai" / "codex" / "bin" / "codex.js"
    link = tmp_path / "codex"
    link.symlink_to(wrapper)
    given = {"linked": (str(link),), "by node": ("node", str(link)), "native": (native,)}[how]
    if how == "linked":
        assert os.access(wrapper, os.X_OK)
    assert installation.program(given) == (native,)


def test_a_wrapper_of_unknown_make_stays_itself(tmp_path: Path) -> None:
    wrapper = tmp_path / "codex"
    wrapper.write_text("#!/bin/sh\nexec true\n")
    wrapper.chmod(0o755)
    assert installation.program((str(wrapper),)) == (str(wrapper),)


def test_no_program_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    for given in ((), ("codex",), ("/nowhere/codex",)):
        with pytest.raises(CannotStart, match="npm install"):
            installation.program(given)


@pytest.mark.case("R06")
def test_what_is_there_is_told(lab: Lab) -> None:
    async def scene() -> None:
        found = await lab.provider().discover()
        assert (found.installed, found.version) == (True, lab.rig.agents.codex.version)
        assert found.home == str(lab.root())
        assert found.account is None, "a key names nobody"
        assert found.credential is not None
        assert found.credential.startswith("api-key:")
        assert "dummy" not in found.credential

        def keyed(settings: Settings) -> Settings:
            return replace(settings, environment={**settings.environment, "LOOPBACK_KEY": "another"})

        other = await lab.provider(change=keyed).discover()
        assert (other.home, other.account) == (found.home, None)
        assert other.credential != found.credential, "it is the agent's own, not the home's"
        assert found.models == (), "this home has a provider of its own"

        def another(settings: Settings) -> Settings:
            return replace(settings, program=("/bin/true",))

        found = await lab.provider(change=another).discover()
        assert not found.installed
        assert "is not Codex" in found.missing

    lab.play(scene())


def test_the_models_of_its_maker_are_listed(lab: Lab) -> None:
    async def scene() -> None:
        root, provider = lab.root(), lab.provider()
        (root / "config.toml").write_text("")
        (root / "auth.json").write_text(json.dumps({"OPENAI_API_KEY": "sk-none"}))
        found = await provider.discover()
        assert any(model.startswith("gpt-") for model in found.models)

    lab.play(scene())


OWN = 'model_provider = "own"\n[model_providers.own]\n'
BOTH = {"tokens": {"account_id": "acc-1"}, "OPENAI_API_KEY": "one"}
ONE, TWO = "api-key:7692c3ad", "api-key:3fc4ccfe"


@pytest.mark.case("C23")
@pytest.mark.parametrize(
    ("config", "login", "environment", "account", "credential"),
    [
        ("", {"tokens": {"account_id": "acc-1"}, "OPENAI_API_KEY": None}, {"OPENAI_API_KEY": "two"}, "acc-1", None),
        ("", BOTH, {}, None, ONE),
        ("", {**BOTH, "auth_mode": "apikey"}, {}, None, ONE),
        ("", {**BOTH, "auth_mode": "chatgpt"}, {}, "acc-1", None),
        ("", {"OPENAI_API_KEY": "one"}, {"OPENAI_API_KEY": "two"}, None, ONE),
        # Its app server takes no key from these variables.
        ("", None, {"CODEX_API_KEY": "two", "OPENAI_API_KEY": "one"}, None, None),
        ("", None, {}, None, None),
        ("not toml at all [", {}, {}, None, None),
        (f'{OWN}env_key = "OWN"', BOTH, {"OWN": "two"}, None, TWO),
        (f'{OWN}env_key = "OWN"', {"OPENAI_API_KEY": "one"}, {}, None, None),
        (f'{OWN}experimental_bearer_token = "two"', BOTH, {}, None, TWO),
        (f"{OWN}requires_openai_auth = true", {**BOTH, "auth_mode": "chatgpt"}, {}, "acc-1", None),
        (OWN, {**BOTH, "auth_mode": "chatgpt"}, {"OPENAI_API_KEY": "one"}, None, None),
    ],
)
def test_an_account_is_a_login_and_a_key_is_known_by_its_digest(
    tmp_path: Path, config: str, login: object, environment: dict[str, str], account: str | None, credential: str | None
) -> None:
    (tmp_path / "config.toml").write_text(config)
    if login is not None:
        (tmp_path / "auth.json").write_text(json.dumps(login))
    home = Home({"CODEX_HOME": str(tmp_path), **environment})
    assert (home.account, home.credential) == (account, credential)


def test_the_same_home_has_one_name_however_it_is_spelled(tmp_path: Path) -> None:
    (tmp_path / ".codex").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / ".codex")
    spelled = (
        {"HOME": str(tmp_path)},
        {"CODEX_HOME": f"{tmp_path}/x/../.codex/"},
        {"CODEX_HOME": str(tmp_path / "link")},
    )
    assert len({Home(environment).root for environment in spelled}) == 1
