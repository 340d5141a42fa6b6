"""A snapshot: one moment of a database, to be read. Servers keep writing; nothing is locked."""

import os
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from sqlalchemy import URL, Connection, create_engine
from sqlalchemy.exc import DatabaseError
from sqlalchemy.pool import NullPool

from clew.store.engine.address import read_address, show_url
from clew.store.engine.sqlite import fault_of
from clew.store.faults import NotADatabase, NotClew, StoreFault, Unreachable
from clew.store.schema.version import SchemaVersion, read_version


class NoDatabase(StoreFault):
    code = "store:no-database"


@contextmanager
def snapshot(address: str) -> Iterator[Connection]:
    """A read-only connection that sees the database as it is now, for as long as it is open."""
    where = read_address(address)
    with _of_file(where) if isinstance(where, Path) else _of_server(where) as connection:
        yield connection


def recognise(connection: Connection, name: object) -> SchemaVersion:
    """The schema version of a database of Clew; any other database is refused."""
    try:
        found = read_version(connection)
    except (DatabaseError, NotClew):
        # Another program may have a table of the same name.
        found = SchemaVersion(0, 0)
    if found.schema == 0:
        raise NotClew(f"{name} is not a database of Clew.", "Name one that is, or create one with `clew db upgrade`.")
    return found


@contextmanager
def beside_server(path: Path) -> Iterator[Connection]:
    """A connection to an existing SQLite file, also while a server uses it. It begins no transaction."""
    try:
        there = path.is_file()
    except OSError as fault:
        raise Unreachable(f"{path} cannot be read: {fault.strerror}.", "Run this as the user who owns it.") from fault
    if not there:
        raise NoDatabase(
            f"There is no database at {path}.", "Name one that exists, or create it with `clew db upgrade`."
        )
    engine = create_engine("sqlite://", creator=lambda: _open(path), isolation_level="AUTOCOMMIT", poolclass=NullPool)
    try:
        with engine.connect() as connection:
            yield connection
    except DatabaseError as fault:
        if not isinstance(fault.orig, sqlite3.Error):
            raise
        if "decode" in str(fault.orig):
            raise NotADatabase(f"{path} contains invalid text: {fault.orig}.", "Restore a backup.") from fault
        raise fault_of(fault.orig, path) from fault


def _open(path: Path) -> sqlite3.Connection:
    # Read-write where possible: only then can SQLite remove the -wal and -shm files that it creates while reading.
    mode = "rw" if os.access(path, os.W_OK) and os.access(path.parent, os.W_OK) else "ro"
    raw = sqlite3.connect(f"{path.absolute().as_uri()}?mode={mode}", uri=True, isolation_level=None)
    raw.execute("PRAGMA busy_timeout = 10000")
    return raw


@contextmanager
def _of_file(path: Path) -> Iterator[Connection]:
    with beside_server(path) as connection:
        connection.exec_driver_sql("PRAGMA query_only = 1")
        connection.exec_driver_sql("BEGIN")
        # SQLite takes its snapshot at the first read.
        connection.exec_driver_sql("SELECT count(*) FROM sqlite_master")
        yield connection
        connection.exec_driver_sql("ROLLBACK")


@contextmanager
def _of_server(url: URL) -> Iterator[Connection]:
    # Imported only here: psycopg is slow to import, and most servers use SQLite.
    import psycopg  # noqa: PLC0415

    engine = create_engine(url, poolclass=NullPool)
    try:
        with engine.connect() as connection:
            connection.execution_options(isolation_level="REPEATABLE READ", postgresql_readonly=True)
            connection.exec_driver_sql("SELECT 1")
            yield connection
    except DatabaseError as fault:
        if not isinstance(fault.orig, psycopg.Error):
            raise
        said = str(fault.orig).strip().splitlines()[0]
        raise Unreachable(
            f"{show_url(url)} cannot be read: {said}.", "Check the address, that it runs, and that you may read it."
        ) from fault
