"""Upgrading a database by its address."""

from sqlalchemy.exc import DatabaseError

from clew.store.address import show_address
from clew.store.faults import CannotUpgrade
from clew.store.opening import open_database
from clew.store.schema import SchemaVersion, upgrade


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
