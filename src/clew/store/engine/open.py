"""Open or upgrade a database by its address."""

from pathlib import Path

from sqlalchemy.exc import DatabaseError

from clew.store.engine.address import read_address, show_address
from clew.store.engine.database import Database
from clew.store.engine.sqlite import SqliteDatabase
from clew.store.faults import CannotUpgrade
from clew.store.schema.version import SchemaVersion, require, upgrade


def open_current(address: str) -> Database:
    """Open a database for work. One whose schema this program must not use is refused and not changed."""
    database = open_database(address)
    try:
        database.read(require)
    except BaseException:
        database.close()
        raise
    return database


def open_database(address: str) -> Database:
    """Open a database whatever schema it has."""
    where = read_address(address)
    if isinstance(where, Path):
        return SqliteDatabase(where)
    # Imported only here: psycopg is slow to import, and most servers use SQLite.
    from clew.store.engine.postgres import PostgresDatabase  # noqa: PLC0415

    return PostgresDatabase(where)


def upgrade_database(address: str, only_pre: bool = False) -> SchemaVersion:
    """Upgrade the schema, or create an empty database. A running server must not have the SQLite file open."""
    database = open_database(address)
    try:
        return database.do(lambda connection: upgrade(connection, only_pre))
    except DatabaseError as fault:
        said = str(fault.orig).strip().splitlines()[0]
        raise CannotUpgrade(
            f"{show_address(address)} cannot be upgraded: {said}.",
            "Nothing was changed. Check that its user may create tables, and that no other program has created them.",
        ) from fault
    finally:
        database.close()
