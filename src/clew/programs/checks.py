"""Checks of values that a person names, before they reach a program: paths, homes, variables, ids and options."""

import re
from collections.abc import Iterable, Mapping
from pathlib import Path

from clew.kernel import Cursor, Directory
from clew.programs.faults import BadArguments, BadOptions, CannotStart, Refused

MALFORMED = "malformed-id"
"""The signal of a probe for an id that can never lead to a session."""


class MalformedId(Refused):
    code = "program:malformed-id"


def check_paths(*paths: Directory | object) -> None:
    """Refuse text that no system takes for a path: with a zero byte, or with half a character."""
    for path in paths:
        text = path.path if isinstance(path, Directory) else str(path)
        if not _is_encodable(text):
            raise Refused(
                f"{text[:200]!r} cannot be a path.", "Remove the zero byte or the half of a character from it."
            )


def check_directory(path: Path) -> None:
    """Before a start: the system's own error does not tell a missing directory from a missing program."""
    if not path.is_dir():
        raise CannotStart(f"The directory {path} is not there.", "Make it, or name another.")


def check_homes(environment: Mapping[str, str], names: Iterable[str]) -> None:
    """Require absolute paths in the variables that locate a home.

    A relative path depends on where a program is started, and an empty one leads to another person's home.
    """
    for name in sorted(names):
        value = environment.get(name)
        if value is not None and not (value.startswith("/") and _is_encodable(value)):
            raise Refused(
                f"{name} is {value[:200]!r}, which is not an absolute path.", "Begin it with /, or leave it out."
            )


def check_variables(environment: Mapping[str, str], errors: str = "surrogateescape") -> None:
    """The system accepts some wrong names and values, and the program gets another variable, or none."""
    for name, value in environment.items():
        if not name or "=" in name or not _is_encodable(f"{name}{value}", errors):
            raise BadArguments(f"{name[:80]!r} cannot be a variable of a program.", "Remove it, or correct it.")


def check_id(cursor: Cursor, version: int, shape: str, whose: str) -> None:
    """Refuse a cursor whose id is not of that shape: a program would take it for a name, a title or a path."""
    if cursor.version != version:
        raise Refused(f"Cursors of {whose} have version {version}, not {cursor.version}.", "Use a newer Clew.")
    if re.fullmatch(shape, cursor.native_id) is None:
        raise MalformedId(f"{cursor.native_id[:80]!r} is not a session id of {whose}.", "Start a new session.")


def check_options(options: Mapping[str, str], known: Iterable[str], whose: str) -> None:
    """Refuse an option that a provider does not know. `whose` begins the sentence, as in "An ACP agent"."""
    there = sorted(known)
    unknown = sorted(set(options) - set(there))
    if unknown:
        words = f"{whose} has no option {', '.join(unknown)}."
        raise BadOptions(words, f"It has {', '.join(there)}." if there else "It has none: leave it out.")


def _is_encodable(text: str, errors: str = "surrogateescape") -> bool:
    try:
        return b"\0" not in text.encode("utf-8", errors)
    except UnicodeEncodeError:
        return False
