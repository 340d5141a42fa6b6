"""Opening a database by its address."""

from pathlib import Path

from clew.store.address import read_address
from clew.store.database import Database
from clew.store.schema import require
from clew.store.sqlite import SqliteDatabase


def open_current(address: str) -> Database:
    """Open for work: a database that this program must not use is refused, and stays as it is."""
    database = open_database(address)
    try:
        database.read(require)
    except BaseException:
        database.close()
        raise
    return database


def open_database(address: str) -> Database:
    """Open by address, whatever schema is there: a path or sqlite:///path for one server, postgresql://… for many."""
    where = read_address(address)
    if isinstance(where, Path):
        return SqliteDatabase(where)
    # Its driver takes long to import, and most servers have a file.
    from clew.store.postgres import PostgresDatabase  # noqa: PLC0415

    return PostgresDatabase(where)
