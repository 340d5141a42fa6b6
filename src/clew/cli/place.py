"""Where the database is, unless somebody says otherwise."""

import os
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter


def usual_place() -> str:
    """A file in the user's data directory. What is not an absolute path there is to be ignored, says its standard."""
    named = Path(os.environ.get("XDG_DATA_HOME", ""))
    home = named if named.is_absolute() else Path("~/.local/share").expanduser()
    return str(home / "clew" / "clew.db")


DatabaseAddress = Annotated[
    str,
    Parameter(
        name="--database",
        env_var="CLEW_DATABASE",
        metavar="ADDRESS",
        show_default=True,
        help="A path, sqlite:///path, or postgresql://user@host/name.",
    ),
]
