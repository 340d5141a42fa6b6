"""A shelf of databases: lent to one test after the other, emptied in between, and thrown away once they are not as they
were."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from sqlalchemy import URL, Connection, create_engine, text
from sqlalchemy.pool import NullPool

from tests.store.kit import empty

_OURS = "'public'::regnamespace"
_ITS_SHAPE = (
    f"SELECT relname, relkind, relnatts, relchecks, relhastriggers FROM pg_class WHERE relnamespace = {_OURS}",
    f"SELECT conname, pg_get_constraintdef(oid) FROM pg_constraint WHERE connamespace = {_OURS}",
    (
        f"SELECT relname, attname, atttypid, attnotnull FROM pg_attribute JOIN pg_class c ON c.oid = attrelid"
        f" WHERE attnum > 0 AND relnamespace = {_OURS}"
    ),
    (
        "SELECT setconfig::text FROM pg_db_role_setting JOIN pg_database d ON d.oid = setdatabase"
        " WHERE datname = current_database()"
    ),
    *(f"SELECT * FROM {table}" for table in ("meta", "machines", "runtimes")),
)
"""All that a test could leave behind, once every row of its own is gone."""

_END_THE_OTHERS = text(
    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
    " WHERE datname = current_database() AND pid <> pg_backend_pid()"
)

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
        yield name
        if self._cleared(name) == self._shape:
            self._free.append(name)

    def _cleared(self, name: str) -> Shape | None:
        """What is left once its rows are gone; None where they cannot be."""
        engine = create_engine(self._server.set(database=name), poolclass=NullPool)
        try:
            with engine.begin() as connection:
                connection.execute(_END_THE_OTHERS)
                empty(connection)
                return _shape(connection)
        except Exception:  # noqa: BLE001 - whatever was done to it, it is not used again
            return None


def _shape(connection: Connection) -> Shape:
    return [sorted(map(tuple, connection.exec_driver_sql(query)), key=repr) for query in _ITS_SHAPE]
