"""The keys and logins of Claude Code: what it will ask its model with, and how a person gives it one."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import orjson

from clew.ports.logins import Logins
from clew.providers.claude.home import SECRETS, Home, account_of

_CLOUDS = ("CLAUDE_CODE_USE_BEDROCK", "CLAUDE_CODE_USE_VERTEX", "CLAUDE_CODE_USE_FOUNDRY")
"""With one of these it asks a cloud's model, with the login of that cloud."""


def logins_of(home: Home, environment: Mapping[str, str]) -> Logins:
    place = f"CLAUDE_CONFIG_DIR={home.root} " if environment.get("CLAUDE_CONFIG_DIR") else ""
    return Logins(_used(home, environment), tuple(SECRETS), f"{place}claude /login")


def _used(home: Home, environment: Mapping[str, str]) -> str:
    """The first that the program itself would take."""
    settings = home.root / "settings.json"
    kept = _object(settings)
    own = kept.get("env")
    for names in (_CLOUDS, tuple(SECRETS)):
        for name in names:
            if environment.get(name):
                return name
            if isinstance(own, dict) and own.get(name):
                return f"{name} in {settings}"
    if kept.get("apiKeyHelper"):
        return f"apiKeyHelper in {settings}"
    if account_of(home, environment) is not None:
        return f"the login in {home.own}"
    stored = home.root / ".credentials.json"
    return f"the login in {stored}" if _object(stored) else ""


def _object(file: Path) -> dict[str, Any]:
    try:
        value = orjson.loads(file.read_bytes())
    except (OSError, orjson.JSONDecodeError):
        return {}
    return value if isinstance(value, dict) else {}
