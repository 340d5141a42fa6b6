"""Opening a database by its address."""

from pathlib import Path

from sqlalchemy.engine import make_url
from sqlalchemy.exc import ArgumentError

from clew.store.database import Database
from clew.store.faults import BadAddress
from clew.store.postgres import PostgresDatabase
from clew.store.sqlite import SqliteDatabase

_HOW = "Give a path, sqlite:///path or postgresql://user@host/name."


def open_database(address: str) -> Database:
    """Open by address: a path or sqlite:///path for one server, postgresql://… for many."""
    if "://" not in address:
        return SqliteDatabase(Path(address))
    try:
        url = make_url(address)
    except ArgumentError as fault:
        raise BadAddress(f"{address!r} is no database address: {fault}.", _HOW) from fault
    match url.get_backend_name():
        case "sqlite" if url.database:
            return SqliteDatabase(Path(url.database))
        case "postgresql":
            return PostgresDatabase(url.set(drivername="postgresql+psycopg"))
        case _:
            raise BadAddress(f"{address!r} is no address of a database that Clew can use.", _HOW)
