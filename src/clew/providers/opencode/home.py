"""Where OpenCode keeps its sessions, and the names by which they are known."""

import os
import re
from collections.abc import Mapping
from pathlib import Path

from clew.kernel import Cursor, Directory, NativeId
from clew.programs.faults import Refused

CURSOR_VERSION = 1
ID_SHAPE = r"ses_[0-9A-Za-z]+"
_ID = re.compile(ID_SHAPE)
_LONGEST_ID = 200


def store(environment: Mapping[str, str]) -> Path:
    """Its database: the one thing that makes a home this home."""
    beneath = Path(environment.get("HOME", "/")) / ".local" / "share"
    data = Path(environment.get("XDG_DATA_HOME") or beneath) / "opencode"
    # A path that is not absolute is one beneath its data; joining leaves one that is as it is.
    return (data / (environment.get("OPENCODE_DB") or "opencode.db")).resolve()


def id_of(cursor: Cursor) -> str:
    """The session's id, if it may be handed to the program at all: an id of another shape makes its server fail."""
    id_ = cursor.native_id
    if cursor.version != CURSOR_VERSION or len(id_) > _LONGEST_ID or _ID.fullmatch(id_) is None:
        raise Refused(
            f"{id_[:80]!r} is not the id of an OpenCode session.", "Use a cursor that OpenCode's provider made."
        )
    return str(id_)


def cursor_of(id_: str) -> Cursor:
    return Cursor(CURSOR_VERSION, NativeId(id_))


def directory_at(path: str) -> Directory:
    """The links in it are resolved, for the program resolves them as well."""
    return Directory(path, os.path.realpath(path))
