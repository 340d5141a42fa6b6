"""A shelf of databases: lent to one test after the other, emptied in between, and thrown away once they are not as they
were."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from sqlalchemy import URL, Connection, create_engine, text
from sqlalchemy.exc import DBAPIError
from sqlalchemy.pool import NullPool

from tests.store.kit import empty

_OURS = "'public'::regnamespace"
_ITS_SHAPE = (
    f"SELECT relname, relkind, relnatts, relchecks, relhastriggers FROM pg_class WHERE relnamespace = {_OURS}",
    f"SELECT conname, pg_get_constraintdef(oid) FROM pg_constraint WHERE connamespace = {_OURS}",
    (
        "SELECT table_name, column_name, data_type, is_nullable, column_default FROM information_schema.columns"
        " WHERE table_schema = 'public'"
    ),
    "SELECT indexdef FROM pg_indexes WHERE schemaname = 'public'",
    (
        "SELECT setconfig::text FROM pg_db_role_setting JOIN pg_database d ON d.oid = setdatabase"
        " WHERE datname = current_database()"
    ),
    *(f"SELECT * FROM {table}" for table in ("meta", "machines", "runtimes")),
)
"""All that a test could leave behind, once every row of its own is gone."""

_OTHERS = text(
    "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()"
    " AND backend_type = 'client backend'"
)
PATIENCE = 2.0
"""Seconds in which connections that were closed are gone."""

Shape = list[list[tuple[object, ...]]]


class Shelf:
    def __init__(self, server: URL, make: Callable[[], str]) -> None:
        self._server, self._make = server, make
        self._free: list[str] = []
        self._shape: Shape | None = None

    @contextmanager
    def lend(self) -> Iterator[str]:
        name = self._free.pop() if self._free else self._make()
        if self._shape is None:
            self._shape = self._cleared(name)
            assert self._shape is not None
        yield name
        if self._cleared(name) == self._shape:
            self._free.append(name)

    def _cleared(self, name: str) -> Shape | None:
        """What is left once its rows are gone; None where they cannot be, or where somebody is still there."""
        engine = create_engine(self._server.set(database=name), poolclass=NullPool)
        try:
            with engine.begin() as connection:
                if not _is_left(connection):
                    return None
                connection.execute(text("SET LOCAL lock_timeout = '5s'"))
                empty(connection)
                return _shape(connection)
        except DBAPIError:
            return None


def _is_left(connection: Connection) -> bool:
    until = time.monotonic() + PATIENCE
    while connection.execute(_OTHERS).scalar_one():
        if time.monotonic() > until:
            return False
        time.sleep(0.01)
        # Else the same is seen until the end of the transaction.
        connection.execute(text("SELECT pg_stat_clear_snapshot()"))
    return True


def _shape(connection: Connection) -> Shape:
    return [sorted(map(tuple, connection.exec_driver_sql(query)), key=repr) for query in _ITS_SHAPE]
