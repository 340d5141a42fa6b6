"""Checking a database: every promise is asked for the rows that break it."""

import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from sqlalchemy import Connection, func, select
from sqlalchemy.exc import DatabaseError

from clew.store.schema.checks.file import FILE
from clew.store.schema.checks.promise import Promise
from clew.store.schema.checks.runs import RUNS
from clew.store.schema.checks.sessions import SESSIONS
from clew.store.schema.checks.structure import STRUCTURE
from clew.store.schema.checks.wakes import WAKES
from clew.store.schema.checks.written import WRITTEN
from clew.store.schema.tables import metadata

OF_ROWS: tuple[Promise, ...] = (*STRUCTURE, *WAKES, *RUNS, *SESSIONS, *WRITTEN)
PROMISES: tuple[Promise, ...] = (FILE, *OF_ROWS)

NAMED = 10
"""How many of the rows that break a promise are named; the others are counted."""


@dataclass(frozen=True, slots=True)
class Violation:
    """A promise that does not hold: for how many rows, and the first of them by name."""

    promise: str
    words: str
    count: int
    rows: tuple[str, ...]


def check(connection: Connection) -> tuple[Violation, ...]:
    """Every promise that is broken. The connection must show one moment, or what changes meanwhile looks broken."""
    return _ask((FILE,), connection) or _ask(OF_ROWS, connection)


def count_rows(connection: Connection) -> int:
    counts = [select(func.count()).select_from(table).scalar_subquery() for table in metadata.sorted_tables]
    return sum(connection.execute(select(*counts)).one())


def _ask(promises: Iterable[Promise], connection: Connection) -> tuple[Violation, ...]:
    with _any_text(connection):
        asked = [(promise, *_tally(promise, connection)) for promise in promises]
    return tuple(Violation(promise.name, promise.words, count, rows) for promise, count, rows in asked if count)


def _tally(promise: Promise, connection: Connection) -> tuple[int, tuple[str, ...]]:
    count, rows = 0, []
    try:
        # Apart, so that PostgreSQL goes on to the next question after one that it cannot answer.
        with connection.begin_nested():
            for name in promise.broken(connection):
                count += 1
                if count <= NAMED:
                    rows.append(name)
    except DatabaseError as fault:
        count += 1
        rows = [*rows[: NAMED - 1], f"it cannot be asked: {str(fault.orig).splitlines()[0]}"]
    return count, tuple(rows)


@contextmanager
def _any_text(connection: Connection) -> Iterator[None]:
    """A damaged name is shown as it is; on SQLite it would end the search for damage."""
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
