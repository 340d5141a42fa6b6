"""Paths that somebody names: what cannot be one is refused in words, before the system does it in its own."""

from collections.abc import Iterable, Mapping

from clew.kernel import Directory
from clew.programs.faults import Refused


def must_be_paths(*paths: Directory | object) -> None:
    """None of them is a path of nothing: a zero byte or half a letter in it, and no system takes it."""
    for path in paths:
        text = path.path if isinstance(path, Directory) else str(path)
        if not _is_text(text):
            raise Refused(
                f"{text[:200]!r} cannot be a path.", "Take the zero byte, or the half of a letter, out of it."
            )


def must_be_homes(environment: Mapping[str, str], names: Iterable[str]) -> None:
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
