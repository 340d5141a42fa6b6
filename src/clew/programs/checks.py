"""Paths that somebody names: what cannot be one is refused in words, before the system does it in its own."""

import re
from collections.abc import Iterable, Mapping

from clew.kernel import Cursor, Directory
from clew.programs.faults import BadOptions, Refused


def check_paths(*paths: Directory | object) -> None:
    """None of them is a path of nothing: a zero byte or half a letter in it, and no system takes it."""
    for path in paths:
        text = path.path if isinstance(path, Directory) else str(path)
        if not _is_text(text):
            raise Refused(
                f"{text[:200]!r} cannot be a path.", "Take the zero byte, or the half of a letter, out of it."
            )


def check_homes(environment: Mapping[str, str], names: Iterable[str]) -> None:
    """What locates a store is a whole path: a part of one leads to wherever a program happens to be, and nothing at all
    to somebody else's."""
    for name in sorted(names):
        value = environment.get(name)
        if value is not None and not (value.startswith("/") and _is_text(value)):
            raise Refused(f"{name} is {value[:200]!r}, which is no whole path.", "Begin it with /, or leave it out.")


def _is_text(text: str) -> bool:
    try:
        return b"\0" not in text.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        return False


MALFORMED = "malformed-id"
"""By this a probe says it: such an id leads nowhere, now or later."""


class MalformedId(Refused):
    code = "program:malformed-id"


def check_id(cursor: Cursor, version: int, shape: str, whose: str) -> None:
    if cursor.version != version:
        raise Refused(f"Cursors of {whose} have version {version}, not {cursor.version}.", "Use a newer Clew.")
    if re.fullmatch(shape, cursor.native_id) is None:
        raise MalformedId(f"{cursor.native_id[:80]!r} is no session id of {whose}.", "Start a new session.")


def check_options(options: Mapping[str, str], known: Iterable[str], whose: str) -> None:
    """`whose` begins the sentence, as in "An ACP agent"."""
    there = sorted(known)
    unknown = sorted(set(options) - set(there))
    if unknown:
        words = f"{whose} has no option {', '.join(unknown)}."
        raise BadOptions(words, f"It has {', '.join(there)}." if there else "It has none: leave it out.")
