"""The keys and logins of ACP agents: what is known of the presets, and the keys that any other agent was given."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from clew.ports.logins import KnowsItsLogins, Logins
from clew.ports.provider import Settings
from clew.programs.acp.agent import AcpAgent
from clew.programs.acp.provider import AcpProvider
from clew.programs.program import environment_for

_KEY = re.compile(r"_(API_KEY|AUTH_TOKEN|ACCESS_TOKEN|OAUTH_TOKEN)$")


@dataclass(frozen=True, slots=True)
class _Kept:
    """How a preset logs in: the variables it takes a key from, a person's command, and the files that hold a login.
    Each file is below a variable, of which the first that is set counts."""

    keys: tuple[str, ...]
    command: str
    files: tuple[tuple[tuple[str, str], ...], ...]


_PRESETS: Mapping[str, _Kept] = {
    "opencode": _Kept(
        ("ANTHROPIC_API_KEY", "OPENAI_API_KEY", "OPENROUTER_API_KEY"),
        "opencode auth login",
        ((("XDG_DATA_HOME", "opencode/auth.json"), ("HOME", ".local/share/opencode/auth.json")),),
    ),
    "claude": _Kept(
        ("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "CLAUDE_CODE_OAUTH_TOKEN"),
        "claude /login",
        ((("CLAUDE_CONFIG_DIR", ".credentials.json"), ("HOME", ".claude/.credentials.json")),),
    ),
    "codex": _Kept(
        ("OPENAI_API_KEY", "CODEX_API_KEY"),
        "codex login",
        ((("CODEX_HOME", "auth.json"), ("HOME", ".codex/auth.json")),),
    ),
    "gemini": _Kept(("GEMINI_API_KEY", "GOOGLE_API_KEY"), "gemini", ((("HOME", ".gemini/oauth_creds.json"),),)),
    "qwen": _Kept(("OPENAI_API_KEY", "DASHSCOPE_API_KEY"), "qwen", ((("HOME", ".qwen/oauth_creds.json"),),)),
}
"""By the name of the preset."""


class NamedAcpProvider(AcpProvider, KnowsItsLogins):
    """An ACP agent of a person's own choice."""

    def __init__(self, agent: AcpAgent, settings: Settings, home: str) -> None:
        super().__init__("acp", agent, settings, home)
        self._preset = settings.options.get("agent", "")
        self._variables = environment_for(agent.environment, settings.home, settings.environment)

    async def logins(self) -> Logins:
        return logins_of(self._preset, self._variables)


def logins_of(preset: str, environment: Mapping[str, str]) -> Logins:
    kept = _PRESETS.get(preset, _Kept((), "", ()))
    given = (name for name in sorted(environment) if environment[name] and (name in kept.keys or _KEY.search(name)))
    stored = (file for places in kept.files if (file := _stored(places, environment)) is not None)
    used = next(iter((*given, *(f"the login in {file}" for file in stored))), "")
    return Logins(used, kept.keys, kept.command)


def _stored(places: tuple[tuple[str, str], ...], environment: Mapping[str, str]) -> Path | None:
    """The file, where it is there and holds anything."""
    for variable, below in places:
        if environment.get(variable):
            file = Path(environment[variable]) / below
            try:
                return file if file.stat().st_size else None
            except OSError:
                return None
    return None
