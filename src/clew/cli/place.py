"""Where Clew keeps what it keeps, unless somebody says otherwise."""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter, Token

from clew.cli.texts import BadText


def usual_data() -> Path:
    """In the user's data directory. What is not an absolute path there is to be ignored, says its standard."""
    named = Path(os.environ.get("XDG_DATA_HOME", ""))
    home = named if named.is_absolute() else Path("~/.local/share").expanduser()
    return home / "clew"


def _data(_: object, tokens: Sequence[Token]) -> Path:
    """An empty one would be the directory in which the command is typed, and nobody means that."""
    words = tokens[0].value
    if not words.strip():
        raise BadText("--data or CLEW_DATA is empty, and names no directory.", "Name one, or leave it out.")
    try:
        return Path(words).expanduser()
    except RuntimeError as fault:
        raise BadText(f"{words} names no directory: nobody here is called so.", "Name another.") from fault


DataDirectory = Annotated[
    Path,
    Parameter(
        name="--data",
        env_var="CLEW_DATA",
        metavar="DIR",
        converter=_data,
        show_default=True,
        help="The directory in which Clew keeps its database, token and workspaces.",
    ),
]

DatabaseAddress = Annotated[
    str | None,
    Parameter(
        name="--database",
        env_var="CLEW_DATABASE",
        metavar="ADDRESS",
        help="A path, sqlite:///path, or postgresql://user@host/name. Without it, clew.db in the data directory.",
    ),
]
