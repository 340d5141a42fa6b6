"""Check a database: each promise is a query for the rows that break it."""

import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from sqlalchemy import Connection, func, select
from sqlalchemy.exc import DatabaseError

from clew.store.schema.file_promises import FILES
from clew.store.schema.integrity import FILE, STORED_VALUES, STRUCTURE
from clew.store.schema.promises import RUNS, SESSIONS, WAKES, Promise
from clew.store.schema.search_promises import SEARCH
from clew.store.schema.tables import metadata

_OF_ROWS: tuple[Promise, ...] = (*STRUCTURE, *WAKES, *RUNS, *SESSIONS, *STORED_VALUES, *SEARCH, *FILES)
PROMISES: tuple[Promise, ...] = (FILE, *_OF_ROWS)

NAMED = 10
"""How many of the rows that break a promise are listed by name; the rest are only counted."""


@dataclass(frozen=True, slots=True)
class Violation:
    """A broken promise: how many rows break it, and the names of the first ones."""

    promise: str
    words: str
    count: int
    rows: tuple[str, ...]


def check(connection: Connection) -> tuple[Violation, ...]:
    """Every broken promise. The connection must read one snapshot, or rows that change meanwhile look broken.

    A damaged file is reported alone: no other answer from it can be trusted.
    """
    return _violations((FILE,), connection) or _violations(_OF_ROWS, connection)


def count_rows(connection: Connection) -> int:
    counts = [select(func.count()).select_from(table).scalar_subquery() for table in metadata.sorted_tables]
    return sum(connection.execute(select(*counts)).one())


def _violations(promises: Iterable[Promise], connection: Connection) -> tuple[Violation, ...]:
    with _any_text(connection):
        checked = [(promise, *_tally(promise, connection)) for promise in promises]
    return tuple(Violation(promise.name, promise.words, count, rows) for promise, count, rows in checked if count)


def _tally(promise: Promise, connection: Connection) -> tuple[int, tuple[str, ...]]:
    count, rows = 0, []
    try:
        # A savepoint: after a failed query PostgreSQL would refuse all others in the transaction.
        with connection.begin_nested():
            for name in promise.broken(connection):
                count += 1
                if count <= NAMED:
                    rows.append(name)
    except DatabaseError as fault:
        count += 1
        rows = [*rows[: NAMED - 1], f"the query failed: {str(fault.orig).splitlines()[0]}"]
    return count, tuple(rows)


@contextmanager
def _any_text(connection: Connection) -> Iterator[None]:
    """Read invalid UTF-8 with backslash escapes. SQLite's driver raises on it, which would end the check."""
    raw = connection.connection.driver_connection
    if not isinstance(raw, sqlite3.Connection):
        yield
        return
    before = raw.text_factory
    raw.text_factory = lambda stored: stored.decode(errors="backslashreplace")
    try:
        yield
    finally:
        raw.text_factory = before
