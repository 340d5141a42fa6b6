"""What is done with a database as a whole, by its address."""

from dataclasses import dataclass

from clew.store.address import show_address
from clew.store.backup import Kept, backup
from clew.store.check import PROMISES, Violation, check, count_rows
from clew.store.restore import Restored, restore
from clew.store.schema import require
from clew.store.snapshot import recognise, snapshot
from clew.store.upgrading import upgrade_database

__all__ = [
    "Checked",
    "Kept",
    "Restored",
    "Violation",
    "backup",
    "check_database",
    "restore",
    "show_address",
    "upgrade_database",
]


@dataclass(frozen=True, slots=True)
class Checked:
    """How many promises were asked for, over how many rows, and which are broken."""

    promises: int
    rows: int
    broken: tuple[Violation, ...]


def check_database(address: str) -> Checked:
    with snapshot(address) as connection:
        recognise(connection, show_address(address))
        require(connection)
        broken = check(connection)
        return Checked(len(PROMISES), 0 if broken else count_rows(connection), broken)
