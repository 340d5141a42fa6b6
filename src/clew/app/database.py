"""A whole database, given its address: opened by the server, upgraded, backed up, restored and checked."""

from dataclasses import dataclass
from pathlib import Path

from clew.store.backup.backup import backup
from clew.store.backup.restore import restore
from clew.store.backup.snapshot import recognise, snapshot
from clew.store.engine.address import read_address, show_address
from clew.store.engine.database import Database
from clew.store.engine.open import open_current, open_database, upgrade_database
from clew.store.faults import OlderThanProgram
from clew.store.schema.check import PROMISES, Violation, check, count_rows
from clew.store.schema.version import read_version, require

__all__ = ["backup", "check_database", "open_for_server", "restore", "show_address", "upgrade_database"]


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


def open_for_server(address: str) -> Database:
    """Creates the database if there is none, and upgrades it to this program's schema where that is safe."""
    try:
        return open_current(address)
    except OlderThanProgram:
        if not _may_upgrade(address):
            raise
    upgrade_database(address)
    return open_current(address)


def _may_upgrade(address: str) -> bool:
    """A SQLite file has one server. PostgreSQL may be shared with older servers, so unless it is empty a person runs
    `clew db upgrade`."""
    if isinstance(read_address(address), Path):
        return True
    database = open_database(address)
    try:
        return database.read(read_version).schema == 0
    finally:
        database.close()
