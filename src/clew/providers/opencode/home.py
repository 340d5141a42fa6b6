"""OpenCode's home: its database, its locks, the ids of its sessions, and the keys it has."""

import hashlib
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import orjson

from clew.programs.cursor import CursorForm
from clew.programs.json_lines import loads

AGENT = "OpenCode"
CURSORS = CursorForm(AGENT, r"ses_[0-9A-Za-z]{1,196}")


def data(environment: Mapping[str, str]) -> Path:
    """The directory of its data, with its database and its keys."""
    beneath = Path(environment.get("HOME", "/")) / ".local" / "share"
    return Path(environment.get("XDG_DATA_HOME") or beneath) / "opencode"


def store(environment: Mapping[str, str]) -> Path:
    """Its database, which identifies the home."""
    # OPENCODE_DB may be relative to the data directory; joining leaves an absolute path as it is.
    return (data(environment) / (environment.get("OPENCODE_DB") or "opencode.db")).resolve()


def locks(store: Path) -> Path:
    """The lock directory, beside the database: providers that share the database share the locks."""
    return store.with_name(f"{store.name}.clew-locks")


_NAMES = re.compile(r"_API_(KEY|TOKEN)$|_ACCESS_(KEY|TOKEN)(_ID)?$|_BEARER_TOKEN(_|$)")
_CONTENT = "OPENCODE_AUTH_CONTENT"
"""If set, OpenCode reads this variable instead of its file."""
_KEYS = ("key", "token")
"""A key stays the same until a person changes it. The tokens of a login change every few hours; its account stays."""
_LOGIN = ("accountId", "enterpriseUrl")


def credential(environment: Mapping[str, str]) -> str | None:
    """A short digest of all keys for model providers, so that a changed key is noticed: `key:` and 8 hex digits.

    None if there is no key.
    """
    found = sorted([*_variables(environment), *_logins(environment)])
    return f"key:{hashlib.sha256(orjson.dumps(found)).hexdigest()[:8]}" if found else None


def key_variables(environment: Mapping[str, str]) -> tuple[str, ...]:
    """The names of the variables that hold a key."""
    return tuple(sorted(name for name, value in environment.items() if value and _NAMES.search(name)))


def has_logins(environment: Mapping[str, str]) -> bool:
    """Whether `opencode auth login` stored anything."""
    return any(True for _ in _logins(environment))


def _variables(environment: Mapping[str, str]) -> Iterator[tuple[str, ...]]:
    yield from (("variable", name, environment[name]) for name in key_variables(environment))


def _logins(environment: Mapping[str, str]) -> Iterator[tuple[str, ...]]:
    for provider, held in _kept(environment).items():
        if isinstance(held, dict):
            kind = str(held.get("type", ""))
            names = _LOGIN if kind == "oauth" else _KEYS
            yield ("file", str(provider), kind, *(str(held.get(name, "")) for name in names))


def _kept(environment: Mapping[str, str]) -> dict[str, Any]:
    try:
        value = loads(environment.get(_CONTENT, "").encode() or (data(environment) / "auth.json").read_bytes())
    except (OSError, ValueError):
        return {}
    return value if isinstance(value, dict) else {}
