"""Input of commands: the options they share, and text that is typed or read from stdin."""

import os
import re
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

from cyclopts import Parameter, Token, convert

from clew.control.validation import LONGEST, MOST, check_size
from clew.ports.fault import Fault


class BadText(Fault):
    code = "cli:bad-text"


class BadNumber(Fault):
    code = "cli:bad-number"


def _default_data() -> Path:
    """$XDG_DATA_HOME/clew. The XDG standard says to ignore a relative path there."""
    named = Path(os.environ.get("XDG_DATA_HOME", ""))
    home = named if named.is_absolute() else Path("~/.local/share").expanduser()
    return home / "clew"


def _data(_: object, tokens: Sequence[Token]) -> Path:
    """Refuses an empty value, which would mean the current directory."""
    value = tokens[0].value
    if not value.strip():
        raise BadText("--data or CLEW_DATA is empty.", "Name a directory, or leave it out.")
    try:
        return Path(value).expanduser()
    except RuntimeError as fault:
        raise BadText(f"{value} names no directory: there is no such user.", "Name another directory.") from fault


DataDirectory = Annotated[
    Path,
    Parameter(
        name="--data",
        env_var="CLEW_DATA",
        metavar="DIR",
        converter=_data,
        show_default=True,
        help="The data directory: database, token and workspaces.",
    ),
]

DatabaseAddress = Annotated[
    str | None,
    Parameter(
        name="--database",
        env_var="CLEW_DATABASE",
        metavar="ADDRESS",
        help="A path, sqlite:///path, or postgresql://user@host/name. Default: clew.db in the data directory.",
    ),
]

DEFAULT_DATA = _default_data()


@Parameter(name="*")
@dataclass(frozen=True, slots=True)
class Options:
    """Options of every command that calls the server."""

    data: DataDirectory = DEFAULT_DATA
    json: Annotated[bool, Parameter(help="Print the API's answer as JSON.")] = False


OPTIONS = Options()
"""The default of every command; frozen, so it can be shared."""

Text = Annotated[str, Parameter(allow_leading_hyphen=True)]
"""Text that may start with a hyphen; a single hyphen means stdin."""


def _value(kind: Any, tokens: Sequence[Token]) -> object:
    """Cyclopts reads `none` and `null` as None for an optional option, as if it was not given. `kind` is without
    None, so that they are refused like any other wrong value."""
    return convert(kind, [token.value for token in tokens])


NoNone = Parameter(converter=_value)
"""For an optional option that is a choice or a number."""

Wait = Annotated[bool, Parameter(alias="-w", help="Show the work live, and return when it is done.")]


def _check_limit(_: object, value: int) -> None:
    """Checked here, because the server's error would name a query parameter that nobody typed."""
    if not 1 <= value <= MOST:
        raise BadNumber(f"{value} is out of range.", f"Give a number from 1 to {MOST}.")


Limit = Annotated[
    int,
    Parameter(help=f"Show at most this many, newest first; up to {MOST}.", show_default=True, validator=_check_limit),
]

Last = Annotated[int, Parameter(show_default=True, validator=_check_limit)]
"""A number of journal entries."""


def given(text: str, what: str = "text") -> str:
    """Text that must not be empty."""
    text = piped() if text == "-" else text
    if not text.strip():
        raise BadText(f"The {what} is empty.", "Type it, or write - to read it from stdin.")
    return checked(text, what)


def checked(text: str, what: str = "text") -> str:
    """Applies the server's limits before anything is started."""
    check_size(text, f"The {what}")
    try:
        text.encode()
    except UnicodeEncodeError as fault:
        raise BadText(f"The {what} is not valid UTF-8.", "Convert it first.") from fault
    return text


def piped() -> str:
    if sys.stdin is None:
        raise BadText("Cannot read from stdin: it is closed.", "Give the text as an argument.")
    try:
        return sys.stdin.read(LONGEST + 1).rstrip("\n")
    except UnicodeDecodeError as fault:
        raise BadText("The text on stdin is not valid UTF-8.", "Convert it first.") from fault


def messages() -> Iterator[str]:
    """Every non-empty line of stdin, as it arrives."""
    while line := _line():
        if line.strip():
            yield checked(line.rstrip("\n"))


def _line() -> str:
    try:
        return sys.stdin.readline()
    except UnicodeDecodeError as fault:
        raise BadText("The text on stdin is not valid UTF-8.", "Convert it first.") from fault


def pairs(values: tuple[str, ...], option: str) -> dict[str, str]:
    """Parses NAME=VALUE items."""
    found: dict[str, str] = {}
    for each in values:
        name, equals, value = each.partition("=")
        if not (name and equals):
            raise BadText(f"{option} takes NAME=VALUE, not {each!r}.", f"Write {option} NAME=VALUE.")
        found[name] = checked(value, option)
    return found


def source(text: str) -> str:
    """A URL that git can clone is kept; a path becomes absolute."""
    if "://" in text or re.match(r"[\w.-]+@[\w.-]+:", text):
        return text
    return absolute(text)


def absolute(path: str) -> str:
    if not path.strip():
        raise BadText("The path is empty.", "Name a directory.")
    return str(Path(path).expanduser().absolute())
