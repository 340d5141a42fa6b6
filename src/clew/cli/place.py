"""Where Clew keeps what it keeps, unless somebody says otherwise."""

import os
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter


def usual_data() -> Path:
    """In the user's data directory. What is not an absolute path there is to be ignored, says its standard."""
    named = Path(os.environ.get("XDG_DATA_HOME", ""))
    home = named if named.is_absolute() else Path("~/.local/share").expanduser()
    return home / "clew"


DataDirectory = Annotated[
    Path,
    Parameter(
        name="--data",
        env_var="CLEW_DATA",
        metavar="DIR",
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
