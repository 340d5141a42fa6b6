"""Opening the database for a server: made where there is none, and brought to this program's schema."""

from pathlib import Path

from clew.store.engine.address import read_address
from clew.store.engine.database import Database
from clew.store.engine.open import open_current, open_database, upgrade_database
from clew.store.faults import OlderThanProgram
from clew.store.schema.version import read_version


def open_for_work(address: str) -> Database:
    try:
        return open_current(address)
    except OlderThanProgram:
        if not _is_ours_to_upgrade(address):
            raise
    upgrade_database(address)
    return open_current(address)


def _is_ours_to_upgrade(address: str) -> bool:
    """A file has one server. A database that older servers may share is a person's to upgrade, unless it is empty."""
    if isinstance(read_address(address), Path):
        return True
    database = open_database(address)
    try:
        return database.read(read_version).schema == 0
    finally:
        database.close()
