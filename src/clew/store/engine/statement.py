"""Statements: built once with SQLAlchemy, kept as text for each database, and run on the driver itself.

One wake takes some fifteen of them. SQLAlchemy's own execution of each would take longer than the disk does.
"""

import json
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import TYPE_CHECKING, Any

from sqlalchemy import ARRAY, Column, ColumnElement, Connection, Text, any_, bindparam, func, select, true
from sqlalchemy.dialects import sqlite
from sqlalchemy.sql import ClauseElement

if TYPE_CHECKING:
    from clew.store.engine.pipeline import Answer, Pipeline

Row = Mapping[str, Any]

SQLITE, POSTGRESQL = "sqlite", "postgresql"


_MARK = re.compile(r"%\((\w+)\)s|%%")


@dataclass(frozen=True, slots=True)
class Numbered:
    """A statement as the server takes it: its values by number, and their names in that order."""

    sql: bytes
    names: tuple[str, ...]


def numbered(sql: str) -> Numbered:
    """The same statement with $1, $2 in the place of %(names)s."""
    names: dict[str, int] = {}

    def number(mark: re.Match[str]) -> str:
        name = mark[1]
        return "%" if name is None else f"${names.setdefault(name, len(names) + 1)}"

    text = _MARK.sub(number, sql)
    return Numbered(text.encode(), tuple(names))


Call = tuple[Numbered, Mapping[str, Any]]
"""A statement and its values."""


@cache
def _dialect(name: str) -> Any:
    if name == SQLITE:
        return sqlite.dialect(paramstyle="named")
    # Only where it is used: most servers have a file.
    from sqlalchemy.dialects.postgresql import psycopg  # noqa: PLC0415

    return psycopg.dialect()  # type: ignore[no-untyped-call]


@dataclass(slots=True)
class _Text:
    """What is sent: the text, the values that are the same every time, and the names of what comes back."""

    sql: str
    fixed: Mapping[str, Any]
    numbered: Numbered | None = None
    columns: tuple[str, ...] = field(default=())

    def row(self, values: Iterable[Any]) -> Row:
        return dict(zip(self.columns, values, strict=True))


class Statement:
    """One statement for both databases. `build` is given the database's name and returns it in SQLAlchemy's words."""

    def __init__(self, build: Callable[[str], ClauseElement]) -> None:
        self._build = build
        self._texts: dict[str, _Text] = {}

    def rows(self, connection: Connection, **values: Any) -> list[Row]:
        return in_one_trip(connection, (self, values))[0].rows

    def first(self, connection: Connection, **values: Any) -> Row | None:
        rows = self.rows(connection, **values)
        return rows[0] if rows else None

    def count(self, connection: Connection, **values: Any) -> int:
        """How many rows it changed."""
        return in_one_trip(connection, (self, values))[0].count

    def many(self, connection: Connection, each: Iterable[Mapping[str, Any]]) -> int:
        """The same for several sets of values, in one go; how many rows they changed."""
        if connection.dialect.name == SQLITE:
            return _many_on_sqlite(connection.connection.driver_connection, self.text(SQLITE), each)
        return sum(done.count for done in in_one_trip(connection, *((self, values) for values in each)))

    def defer(self, connection: Connection, **values: Any) -> None:
        """Done before whatever is asked next, or with the commit: nobody waits to hear how it went."""
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
        """As the pipeline to PostgreSQL takes it."""
        text = self.text(POSTGRESQL)
        text.numbered = text.numbered or numbered(text.sql)
        return text.numbered, {**text.fixed, **values}

    def text(self, dialect: str) -> _Text:
        text = self._texts.get(dialect)
        if text is None:
            compiled = self._build(dialect).compile(dialect=_dialect(dialect))
            fixed = {name: value for name, value in compiled.params.items() if value is not None}
            text = self._texts[dialect] = _Text(compiled.string, fixed)
        return text


Given = Mapping[str, ColumnElement[Any]]
"""The values that a statement is handed, by their names."""


def named(columns: Mapping[str, Column[Any]]) -> Given:
    """Values that are handed in by themselves, each of the type of a column."""
    return {name: bindparam(name, type_=column.type) for name, column in columns.items()}


@dataclass(frozen=True, slots=True)
class Done:
    """What became of a statement: the rows that came back, and how many it changed."""

    rows: list[Row]
    count: int


def in_one_trip(connection: Connection, *asked: tuple[Statement, Mapping[str, Any]]) -> list[Done]:
    """All of them, in order. PostgreSQL is sent them in one go: none may need what another brings."""
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
    """PostgreSQL only: what follows fails, and is run again, rather than wait long for what another holds. For whoever
    takes things in an order in which others do not: nobody waits for it in a circle."""
    if connection.dialect.name == POSTGRESQL:
        _impatient.defer(connection)


def pipeline_of(connection: Connection) -> "Pipeline":
    """The pipeline of a connection to PostgreSQL, which lives as long as the connection itself."""
    pooled: Any = connection.connection
    pipeline: Pipeline = pooled.info.get("pipeline") or _pipeline(pooled)
    return pipeline


def _pipeline(pooled: Any) -> "Pipeline":
    from clew.store.engine.pipeline import Pipeline  # noqa: PLC0415 - imports the driver, which SQLite does not need

    made: Pipeline = pooled.info.setdefault("pipeline", Pipeline(pooled.driver_connection))
    return made


def may_be_done(connection: Connection) -> bool:
    """Whether an operation was tried before, and its answer lost with the connection."""
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


def among(dialect: str, column: ColumnElement[str], name: str) -> ColumnElement[bool]:
    """Whether the column is one of a list that is handed in under that name, however long it is."""
    if dialect == POSTGRESQL:
        return column == any_(bindparam(name, type_=ARRAY(Text)))
    each = func.json_each(bindparam(name)).table_valued("value")
    return column.in_(select(each.c.value))
