"""What every command that asks the server can be told."""

from dataclasses import dataclass
from typing import Annotated

from cyclopts import Parameter

from clew.cli.place import DataDirectory, usual_data
from clew.control.validation import MOST
from clew.ports.fault import Fault


class BadNumber(Fault):
    code = "cli:bad-number"


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


def _how_many(_: object, wanted: int) -> None:
    """Asked here, because the server's answer is about a call that nobody typed."""
    if not 1 <= wanted <= MOST:
        raise BadNumber(f"{wanted} cannot be shown: a list has from 1 to {MOST}.", f"Give a number from 1 to {MOST}.")


Limit = Annotated[
    int, Parameter(help=f"How many at most, the newest first; up to {MOST}.", show_default=True, validator=_how_many)
]

Last = Annotated[int, Parameter(show_default=True, validator=_how_many)]
"""How many entries of a thread."""
