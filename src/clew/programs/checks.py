"""Checks of what a provider is asked for, before it reaches a program: paths, homes, variables, options and modes."""

import os
from collections.abc import Iterable, Mapping
from pathlib import Path

from clew.kernel import Directory, PermissionMode, choose_mode
from clew.ports.provider import OpenSpec, Settings
from clew.programs.faults import BadArguments, BadOptions, CannotStart, NotAble, Refused


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


def check_options(options: Mapping[str, str], known: Iterable[str], whose: str) -> None:
    """Refuse an option that a provider does not know. `whose` begins the sentence, as in "An ACP agent"."""
    there = sorted(known)
    unknown = sorted(set(options) - set(there))
    if unknown:
        words = f"{whose} has no option {', '.join(unknown)}."
        raise BadOptions(words, f"It has {', '.join(there)}." if there else "It has none: leave it out.")


def check_opening(spec: OpenSpec, whose: str) -> None:
    """For an agent that chooses the ids of its sessions itself."""
    check_paths(spec.directory)
    check_fork(spec)
    if spec.fresh_id is not None:
        raise NotAble(f"{whose} chooses the ids of its sessions itself.", "Open the session without an id.")


def check_fork(spec: OpenSpec) -> None:
    if spec.fork and spec.cursor is None:
        raise Refused("A fork needs a session to fork.", "Name one, or start a new session.")


def expressed(wanted: PermissionMode, modes: Iterable[PermissionMode], whose: str) -> PermissionMode:
    """The wanted mode, or the widest stricter one that the agent has."""
    there = frozenset(modes)
    mode = choose_mode(wanted, (), there).mode
    if mode is None:
        raise NotAble(
            f"{whose} has neither the mode {wanted} nor a stricter one.",
            f"Choose one of its modes: {', '.join(map(str, sorted(there)))}.",
        )
    return mode


def home_name(program: str, settings: Settings) -> str:
    """The name of a home of which only the program and the variables that locate it are known."""
    where = settings.home or {"HOME": os.environ.get("HOME", "/")}
    check_paths(*where.values())
    return " ".join([program, *(f"{name}={os.path.realpath(value)}" for name, value in sorted(where.items()))])


def directory_at(path: str) -> Directory:
    """With links resolved."""
    return Directory(path, os.path.realpath(path))


def _is_encodable(text: str, errors: str = "surrogateescape") -> bool:
    try:
        return b"\0" not in text.encode("utf-8", errors)
    except UnicodeEncodeError:
        return False
