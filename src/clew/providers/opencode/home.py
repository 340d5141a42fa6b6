"""Where OpenCode keeps its sessions, and the names by which they are known."""

import os
from collections.abc import Mapping
from pathlib import Path

from clew.kernel import Cursor, Directory, NativeId
from clew.programs.checks import check_id

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
