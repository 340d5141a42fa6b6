"""What every command that asks the server can be told."""

from dataclasses import dataclass
from typing import Annotated

from cyclopts import Parameter

from clew.cli.place import DataDirectory, usual_data

_USUAL = usual_data()


@Parameter(name="*")
@dataclass(frozen=True, slots=True)
class Options:
    data: DataDirectory = _USUAL
    json: Annotated[bool, Parameter(help="Print what the API answers, as it is.")] = False


OPTIONS = Options()
"""Frozen, so one of them stands as everybody's default."""

Text = Annotated[str, Parameter(allow_leading_hyphen=True)]
"""Words of a person: they may begin with a hyphen, and a single one means stdin."""

Wait = Annotated[bool, Parameter(alias="-w", help="Show the work as it goes on, until it is done.")]

Limit = Annotated[int, Parameter(help="How many at most, the newest first.", show_default=True)]
