"""Statements: built once with SQLAlchemy, cached as text for each database, and run on the driver itself.

One wake takes about fifteen. SQLAlchemy's own execution of each would take longer than the disk does. Row locks
(`with_for_update`) are for PostgreSQL: SQLAlchemy leaves them out on SQLite, where the one writer needs none.
"""

import json
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import TYPE_CHECKING, Any

from sqlalchemy import Column, ColumnElement, Connection, bindparam, func, select, true
from sqlalchemy.dialects import sqlite
from sqlalchemy.sql import ClauseElement

if TYPE_CHECKING:
    from clew.store.engine.pipeline import Answer, Pipeline

Row = Mapping[str, Any]

SQLITE, POSTGRESQL = "sqlite", "postgresql"

_MARK = re.compile(r"%\((\w+)\)s|%%")


@dataclass(frozen=True, slots=True)
class Numbered:
    """A statement in libpq's form: $1, $2 for the values, and their names in that order."""

    sql: bytes
    names: tuple[str, ...]


def numbered(sql: str) -> Numbered:
    """The statement with $1, $2 in place of %(names)s."""
    names: dict[str, int] = {}

    def number(mark: re.Match[str]) -> str:
        name = mark[1]
        return "%" if name is None else f"${names.setdefault(name, len(names) + 1)}"

    text = _MARK.sub(number, sql)
    return Numbered(text.encode(), tuple(names))


Call = tuple[Numbered, Mapping[str, Any]]
"""A statement and its values."""


@cache
def dialect_called(name: str) -> Any:
    if name == SQLITE:
        return sqlite.dialect(paramstyle="named")
    # Imported only here: psycopg is slow to import, and most servers use SQLite.
    from sqlalchemy.dialects.postgresql import psycopg  # noqa: PLC0415

    return psycopg.dialect()  # type: ignore[no-untyped-call]


@dataclass(slots=True)
class _Text:
    """A compiled statement: its SQL, the values that never change, and the names of its result columns."""

    sql: str
    fixed: Mapping[str, Any]
    numbered: Numbered | None = None
    columns: tuple[str, ...] = field(default=())

    def row(self, values: Iterable[Any]) -> Row:
        return dict(zip(self.columns, values, strict=True))


class Statement:
    """One statement for both databases. `build` gets the dialect's name and returns SQLAlchemy's expression."""

    def __init__(self, build: Callable[[str], ClauseElement]) -> None:
        self._build = build
        self._texts: dict[str, _Text] = {}

    def rows(self, connection: Connection, **values: Any) -> list[Row]:
        return in_one_trip(connection, (self, values))[0].rows

    def first(self, connection: Connection, **values: Any) -> Row | None:
        rows = self.rows(connection, **values)
        return rows[0] if rows else None

    def count(self, connection: Connection, **values: Any) -> int:
        """Run it; how many rows it changed."""
        return in_one_trip(connection, (self, values))[0].count

    def many(self, connection: Connection, each: Iterable[Mapping[str, Any]]) -> int:
        """Run it for several sets of values, in one trip; how many rows they changed."""
        if connection.dialect.name == SQLITE:
            return _many_on_sqlite(connection.connection.driver_connection, self.text(SQLITE), each)
        return sum(done.count for done in in_one_trip(connection, *((self, values) for values in each)))

    def defer(self, connection: Connection, **values: Any) -> None:
        """Run it without waiting for its result: on PostgreSQL it is sent with the next statement that is waited for,
        or with the commit."""
        self.defer_all(connection, (values,))

    def defer_all(self, connection: Connection, each: Iterable[Mapping[str, Any]]) -> None:
        """The same for several sets of values."""
        if connection.dialect.name == SQLITE:
            self.many(connection, each)
            return
        pipeline = pipeline_of(connection)
        for values in each:
            pipeline.defer(self.call(values))

    def sql(self, dialect: str) -> str:
        return self.text(dialect).sql

    def call(self, values: Mapping[str, Any]) -> Call:
        """The statement and its values, for the pipeline to PostgreSQL."""
        text = self.text(POSTGRESQL)
        text.numbered = text.numbered or numbered(text.sql)
        return text.numbered, {**text.fixed, **values}

    def text(self, dialect: str) -> _Text:
        text = self._texts.get(dialect)
        if text is None:
            compiled = self._build(dialect).compile(dialect=dialect_called(dialect))
            fixed = {name: value for name, value in compiled.params.items() if value is not None}
            text = self._texts[dialect] = _Text(compiled.string, fixed)
        return text


Given = Mapping[str, ColumnElement[Any]]
"""Bound values of a statement, by their names."""


def named(columns: Mapping[str, Column[Any]]) -> Given:
    """Bound values with these names, each of the type of a column."""
    return {name: bindparam(name, type_=column.type) for name, column in columns.items()}


@dataclass(frozen=True, slots=True)
class Done:
    """The result of a statement: the rows it returned, and how many it changed."""

    rows: list[Row]
    count: int


def in_one_trip(connection: Connection, *asked: tuple[Statement, Mapping[str, Any]]) -> list[Done]:
    """Run the statements in order; PostgreSQL gets them in one trip, so none may depend on another's result."""
    if not asked:
        return []
    if connection.dialect.name == SQLITE:
        driver = connection.connection.driver_connection
        return [_on_sqlite(driver, statement.text(SQLITE), values) for statement, values in asked]
    pipeline = pipeline_of(connection)
    answers = pipeline.ask([statement.call(values) for statement, values in asked])
    return [_read(pipeline, each[0].text(POSTGRESQL), answer) for each, answer in zip(asked, answers, strict=True)]


_impatient = Statement(lambda _: select(func.set_config("lock_timeout", "50ms", true())))


def wait_briefly(connection: Connection) -> None:
    """PostgreSQL only: from here on the transaction waits at most 50 ms for a lock (lock_timeout), then fails and is
    run again. For operations that lock rows in another order than the rest do: it avoids deadlocks."""
    if connection.dialect.name == POSTGRESQL:
        _impatient.defer(connection)


def pipeline_of(connection: Connection) -> "Pipeline":
    """The pipeline of a connection to PostgreSQL. It lives as long as the connection."""
    pooled: Any = connection.connection
    pipeline: Pipeline = pooled.info.get("pipeline") or _pipeline(pooled)
    return pipeline


def _pipeline(pooled: Any) -> "Pipeline":
    from clew.store.engine.pipeline import Pipeline  # noqa: PLC0415 - imports the driver, which SQLite does not need

    made: Pipeline = pooled.info.setdefault("pipeline", Pipeline(pooled.driver_connection))
    return made


def may_be_done(connection: Connection) -> bool:
    """Whether this operation was tried before and its answer was lost with the connection: it may be committed."""
    return connection.dialect.name == POSTGRESQL and pipeline_of(connection).lost


def _on_sqlite(driver: Any, text: _Text, values: Mapping[str, Any]) -> Done:
    cursor = driver.execute(text.sql, _given(text, values))
    if cursor.description is None:
        return Done([], cursor.rowcount)
    text.columns = text.columns or tuple(column[0] for column in cursor.description)
    return Done([text.row(row) for row in cursor.fetchall()], cursor.rowcount)


def _many_on_sqlite(driver: Any, text: _Text, each: Iterable[Mapping[str, Any]]) -> int:
    changed: int = driver.executemany(text.sql, [_given(text, values) for values in each]).rowcount
    return max(changed, 0)


def _given(text: _Text, values: Mapping[str, Any]) -> dict[str, Any]:
    given = {name: json.dumps(value) if type(value) is list else value for name, value in values.items()}
    return {**text.fixed, **given}


def _read(pipeline: "Pipeline", text: _Text, answer: "Answer") -> Done:
    if not answer.nfields:
        return Done([], answer.command_tuples or 0)
    text.columns = text.columns or tuple((answer.fname(at) or b"").decode() for at in range(answer.nfields))
    return Done(pipeline.rows(answer, text.row), answer.command_tuples or 0)
