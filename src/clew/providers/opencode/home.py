"""Where OpenCode keeps its sessions, and the names by which they are known."""

import hashlib
import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import orjson

from clew.kernel import Cursor, Directory, NativeId
from clew.programs.checks import check_id
from clew.programs.json_lines import loads

CURSOR_VERSION = 1
ID_SHAPE = r"ses_[0-9A-Za-z]{1,196}"


def data(environment: Mapping[str, str]) -> Path:
    """The directory of what it keeps, its keys among it."""
    beneath = Path(environment.get("HOME", "/")) / ".local" / "share"
    return Path(environment.get("XDG_DATA_HOME") or beneath) / "opencode"


def store(environment: Mapping[str, str]) -> Path:
    """Its database: the one thing that makes a home this home."""
    # A path that is not absolute is one beneath its data; joining leaves one that is as it is.
    return (data(environment) / (environment.get("OPENCODE_DB") or "opencode.db")).resolve()


def locks(store: Path) -> Path:
    """Beside the database, so that all who share the one share the other."""
    return store.with_name(f"{store.name}.clew-locks")


def id_of(cursor: Cursor) -> str:
    """The session's id, if it may be handed to the program at all: an id of another shape makes its server fail."""
    check_id(cursor, CURSOR_VERSION, ID_SHAPE, "OpenCode")
    return str(cursor.native_id)


def cursor_of(id_: str) -> Cursor:
    return Cursor(CURSOR_VERSION, NativeId(id_))


def directory_at(path: str) -> Directory:
    """The links in it are resolved, for the program resolves them as well."""
    return Directory(path, os.path.realpath(path))


_NAMES = re.compile(r"_API_(KEY|TOKEN)$|_ACCESS_(KEY|TOKEN)(_ID)?$|_BEARER_TOKEN(_|$)")
_CONTENT = "OPENCODE_AUTH_CONTENT"
"""The variable that OpenCode reads instead of its file, where it is set."""
_KEYS = ("key", "token")
"""What stays the same until a person changes it. The tokens of a login are new every few hours; its account stays."""
_LOGIN = ("accountId", "enterpriseUrl")


def credential(environment: Mapping[str, str]) -> str | None:
    """`key:` and eight letters; None where there is no key at all."""
    found = sorted([*_variables(environment), *_logins(environment)])
    return f"key:{hashlib.sha256(orjson.dumps(found)).hexdigest()[:8]}" if found else None


def _variables(environment: Mapping[str, str]) -> Iterator[tuple[str, ...]]:
    yield from (("variable", name, value) for name, value in environment.items() if value and _NAMES.search(name))


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
