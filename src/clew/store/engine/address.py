"""Addresses of databases: a path or sqlite:///path for one server, postgresql://… for several."""

from pathlib import Path

from sqlalchemy.engine import URL, make_url
from sqlalchemy.exc import ArgumentError

from clew.store.faults import BadAddress

_HOW = "Give a path, sqlite:///path or postgresql://user@host/name."


def read_address(address: str) -> Path | URL:
    """The file of a SQLite database, or the address of a PostgreSQL one."""
    if not address.strip():
        raise BadAddress("The address of the database is empty.", f"{_HOW} Leave it out for the default.")
    if address == ":memory:":
        raise BadAddress(f"{address!r} would forget everything when Clew stops.", _HOW)
    if "://" not in address:
        return Path(address)
    try:
        url = make_url(address)
    except (ArgumentError, ValueError) as fault:
        raise BadAddress(f"{address!r} is not a database address: {fault}.", _HOW) from fault
    match url.get_backend_name():
        case "sqlite" if url.database:
            return Path(url.database)
        case "postgresql":
            return url.set(drivername="postgresql+psycopg")
        case _:
            raise BadAddress(f"{address!r} is not the address of a database that Clew can use.", _HOW)


def show_address(address: str) -> str:
    """The address without its password."""
    where = read_address(address)
    return str(where) if isinstance(where, Path) else show_url(where)


def show_url(url: URL) -> str:
    """The address without its password, and without the driver's name, which the user did not give."""
    return url.set(drivername="postgresql").render_as_string(hide_password=True)
