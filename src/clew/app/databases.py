"""What is done with a database as a whole, by its address."""

from dataclasses import dataclass

from clew.store.backup.backup import Kept, backup
from clew.store.backup.restore import Restored, restore
from clew.store.backup.snapshot import recognise, snapshot
from clew.store.engine.address import show_address
from clew.store.engine.open import upgrade_database
from clew.store.schema.check import PROMISES, Violation, check, count_rows
from clew.store.schema.version import require

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
