"""Opening a database by its address."""

from pathlib import Path

from sqlalchemy.exc import DatabaseError

from clew.store.engine.address import read_address, show_address
from clew.store.engine.database import Database
from clew.store.engine.sqlite import SqliteDatabase
from clew.store.faults import CannotUpgrade
from clew.store.schema.version import SchemaVersion, require, upgrade


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
    from clew.store.engine.postgres import PostgresDatabase  # noqa: PLC0415

    return PostgresDatabase(where)


def upgrade_database(address: str, only_pre: bool = False) -> SchemaVersion:
    """Make it if there is none; a SQLite file must not be held by a server."""
    database = open_database(address)
    try:
        return database.do(lambda connection: upgrade(connection, only_pre))
    except DatabaseError as fault:
        said = str(fault.orig).strip().splitlines()[0]
        raise CannotUpgrade(
            f"{show_address(address)} cannot be upgraded: {said}.",
            "Nothing was changed. Check that its user may make tables, and that nobody else has made them.",
        ) from fault
    finally:
        database.close()
