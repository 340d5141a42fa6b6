"""Input of commands: the options they share, and text that is typed or read from stdin."""

import os
import re
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

from cyclopts import CoercionError, Parameter, Token, convert

from clew.cli.misuse import Misused
from clew.control.validation import LONGEST, MOST, check_size
from clew.ports.fault import Fault


class BadText(Misused):
    code = "cli:bad-text"


class NotUtf8(BadText):
    def __init__(self, what: str) -> None:
        super().__init__(f"{what} is not valid UTF-8.", "Convert it first.")


class BadStdin(Fault):
    """What comes on stdin is not a matter of the command line."""

    code = "cli:bad-text"


class BadNumber(Misused):
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
    return at_home(value)


def _file(_: object, tokens: Sequence[Token]) -> Path:
    """Refuses an empty value, which would mean the current directory, and a directory."""
    value = tokens[0].value
    if not value.strip():
        raise BadText("The name of the file is empty.", "Name a file.")
    path = at_home(value)
    if path.is_dir():
        raise BadText(f"{value} is a directory.", "Name a file.")
    return path


FileName = Annotated[Path, Parameter(converter=_file)]

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
    None, so that they are refused like any other wrong value. Nor is a number rounded: 1.5 is not an int."""
    (token,) = tokens
    if kind is int and not re.fullmatch(r"[+-]?[0-9]+", token.value):
        raise CoercionError(token=token, target_type=int)
    try:
        return convert(kind, [token.value])
    except CoercionError as fault:
        # The one that it made of the text does not know the option.
        fault.token = token
        raise


Exact = Parameter(converter=_value)
"""For an optional option that is a choice, and for every whole number."""

Wait = Annotated[bool, Parameter(alias="-w", help="Show the work live, and return when it is done.")]


def _up_to_most(option: str) -> Callable[[object, int | None], None]:
    """Checked here, because the server's error would name a query parameter that nobody typed."""

    def check(_: object, value: int | None) -> None:
        if value is not None and not 1 <= value <= MOST:
            raise BadNumber(f"{option} cannot be {value}.", f"Give a number from 1 to {MOST}.")

    return check


Limit = Annotated[
    int,
    Exact,
    Parameter(
        help=f"Show at most this many, newest first; up to {MOST}.", show_default=True, validator=_up_to_most("--limit")
    ),
]

Last = Annotated[int, Exact, Parameter(show_default=True, validator=_up_to_most("--last"))]
"""A number of journal entries."""


def given(text: str, what: str = "text") -> str:
    """Text that must not be empty."""
    text = piped() if text == "-" else text
    if not text.strip():
        raise BadText(f"The {what} is empty.", "Type it, or write - to read it from stdin.")
    return checked(text, what)


def name_given(name: str, what: str = "name") -> str:
    """A name that must not be empty. It is never read from stdin."""
    if not name.strip():
        raise BadText(f"The {what} is empty.", f"Give a {what}.")
    return checked(name, what)


def optional(text: str, what: str) -> str:
    """Text that may be empty if it is typed; nothing on stdin is a mistake of the command before the pipe."""
    return given(text, what) if text == "-" else checked(text, what)


def checked(text: str, what: str = "text") -> str:
    """Applies the server's limits before anything is started."""
    check_size(text, f"The {what}")
    try:
        text.encode()
    except UnicodeEncodeError as fault:
        raise NotUtf8(f"The {what}") from fault
    return text


def piped() -> str:
    if sys.stdin is None:
        raise BadStdin("Cannot read from stdin: it is closed.", "Give the text as an argument.")
    try:
        return _whole(sys.stdin.read(LONGEST + 1).rstrip("\n"))
    except UnicodeError as fault:
        raise BadStdin("The text on stdin is not valid UTF-8.", "Convert it first.") from fault


def messages() -> Iterator[str]:
    """Every non-empty line of stdin, as it arrives."""
    while line := _line():
        if line.strip():
            yield checked(line.rstrip("\n"))


def _line() -> str:
    try:
        return _whole(sys.stdin.readline())
    except UnicodeError as fault:
        raise BadStdin("The text on stdin is not valid UTF-8.", "Convert it first.") from fault


def _whole(text: str) -> str:
    """In the UTF-8 mode of Python, bytes that are no text come as halves of surrogate pairs."""
    text.encode()
    return text


def source(text: str) -> str:
    """A URL that git can clone is kept; a path becomes absolute."""
    if "://" in text or re.match(r"[\w.-]+@[\w.-]+:", text):
        return text
    return absolute(text)


def absolute(path: str) -> str:
    if not path.strip():
        raise BadText("The path is empty.", "Name a directory.")
    return str(at_home(path).absolute())


def at_home(path: str) -> Path:
    """With ~ as the home directory of a user."""
    try:
        return Path(path).expanduser()
    except RuntimeError as fault:
        raise BadText(f"{path} names no directory: there is no such user.", "Name another directory.") from fault
