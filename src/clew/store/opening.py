"""Opening a database by its address."""

from pathlib import Path

from clew.store.address import read_address
from clew.store.database import Database
from clew.store.postgres import PostgresDatabase
from clew.store.sqlite import SqliteDatabase


def open_database(address: str) -> Database:
    """Open by address: a path or sqlite:///path for one server, postgresql://… for many."""
    where = read_address(address)
    return SqliteDatabase(where) if isinstance(where, Path) else PostgresDatabase(where)
