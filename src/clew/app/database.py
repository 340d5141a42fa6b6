"""Operations on a whole database, given its address: upgrade, backup, restore and check."""

from dataclasses import dataclass

from clew.store.backup.backup import backup
from clew.store.backup.restore import restore
from clew.store.backup.snapshot import recognise, snapshot
from clew.store.engine.address import show_address
from clew.store.engine.open import upgrade_database
from clew.store.schema.check import PROMISES, Violation, check, count_rows
from clew.store.schema.version import require

__all__ = ["backup", "check_database", "restore", "show_address", "upgrade_database"]


@dataclass(frozen=True, slots=True)
class Checked:
    """Number of promises checked, number of rows they cover, and the promises that are broken."""

    promises: int
    rows: int
    broken: tuple[Violation, ...]


def check_database(address: str) -> Checked:
    with snapshot(address) as connection:
        recognise(connection, show_address(address))
        require(connection)
        broken = check(connection)
        return Checked(len(PROMISES), 0 if broken else count_rows(connection), broken)
