"""Addresses of databases: a path or sqlite:///path for one server, postgresql://… for many."""

from pathlib import Path

from sqlalchemy.engine import URL, make_url
from sqlalchemy.exc import ArgumentError

from clew.store.faults import BadAddress

_HOW = "Give a path, sqlite:///path or postgresql://user@host/name."


def read_address(address: str) -> Path | URL:
    """The file of a SQLite database, or the address of a PostgreSQL one."""
    if not address.strip():
        raise BadAddress("The address of the database is empty.", f"{_HOW} Leave it out for the usual one.")
    if address == ":memory:":
        raise BadAddress(f"{address!r} would forget everything when it is closed.", _HOW)
    if "://" not in address:
        return Path(address)
    try:
        url = make_url(address)
    except (ArgumentError, ValueError) as fault:
        raise BadAddress(f"{address!r} is no database address: {fault}.", _HOW) from fault
    match url.get_backend_name():
        case "sqlite" if url.database:
            return Path(url.database)
        case "postgresql":
            return url.set(drivername="postgresql+psycopg")
        case _:
            raise BadAddress(f"{address!r} is no address of a database that Clew can use.", _HOW)


def show_address(address: str) -> str:
    """The address as it may be shown."""
    where = read_address(address)
    return str(where) if isinstance(where, Path) else show_url(where)


def show_url(url: URL) -> str:
    """Without the password, and without the name of a driver that nobody chose."""
    return url.set(drivername="postgresql").render_as_string(hide_password=True)
