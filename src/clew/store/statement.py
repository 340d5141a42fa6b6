"""Statements: built once with SQLAlchemy, kept as text for each database, and run on the driver itself.

One wake takes some fifteen of them. SQLAlchemy's own execution of each would take longer than the disk does.
"""

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from sqlalchemy import ARRAY, ColumnElement, Connection, Text, any_, bindparam, func, select
from sqlalchemy.dialects import sqlite
from sqlalchemy.dialects.postgresql import psycopg
from sqlalchemy.sql import ClauseElement

Row = Mapping[str, Any]

SQLITE, POSTGRESQL = "sqlite", "postgresql"
_DIALECTS: Mapping[str, Any] = {
    SQLITE: sqlite.dialect(paramstyle="named"),
    POSTGRESQL: psycopg.dialect(),  # type: ignore[no-untyped-call]
}


@dataclass(slots=True)
class _Text:
    """What is sent: the text, the values that are the same every time, and the names of what comes back."""

    sql: str
    fixed: Mapping[str, Any]
    columns: tuple[str, ...] = field(default=())


class Statement:
    """One statement for both databases. `build` is given the database's name and returns it in SQLAlchemy's words."""

    def __init__(self, build: Callable[[str], ClauseElement]) -> None:
        self._build = build
        self._texts: dict[str, _Text] = {}

    def rows(self, connection: Connection, **values: Any) -> list[Row]:
        text, cursor = self._run(connection, values)
        columns = text.columns = text.columns or tuple(column[0] for column in cursor.description)
        return [dict(zip(columns, row, strict=True)) for row in cursor.fetchall()]

    def first(self, connection: Connection, **values: Any) -> Row | None:
        rows = self.rows(connection, **values)
        return rows[0] if rows else None

    def count(self, connection: Connection, **values: Any) -> int:
        """How many rows it changed."""
        _, cursor = self._run(connection, values)
        changed: int = cursor.rowcount
        return changed

    def many(self, connection: Connection, each: Iterable[Mapping[str, Any]]) -> int:
        """The same for several sets of values, in one go; how many rows they changed."""
        dialect = connection.dialect.name
        text = self._text(dialect)
        batch = [{**text.fixed, **_given(dialect, values)} for values in each]
        if not batch:
            return 0
        if len(batch) == 1:
            # psycopg opens a pipeline for several, which one alone does not need.
            cursor = _driver(connection).execute(text.sql, batch[0])
        else:
            cursor = _driver(connection).cursor()
            cursor.executemany(text.sql, batch)
        changed: int = cursor.rowcount
        return changed

    def sql(self, dialect: str) -> str:
        return self._text(dialect).sql

    def _run(self, connection: Connection, values: Mapping[str, Any]) -> tuple[_Text, Any]:
        dialect = connection.dialect.name
        text = self._text(dialect)
        return text, _driver(connection).execute(text.sql, {**text.fixed, **_given(dialect, values)})

    def _text(self, dialect: str) -> _Text:
        text = self._texts.get(dialect)
        if text is None:
            compiled = self._build(dialect).compile(dialect=_DIALECTS[dialect])
            fixed = {name: value for name, value in compiled.params.items() if value is not None}
            text = self._texts[dialect] = _Text(compiled.string, fixed)
        return text


def among(dialect: str, column: ColumnElement[str], name: str) -> ColumnElement[bool]:
    """Whether the column is one of a list that is handed in under that name, however long it is."""
    if dialect == POSTGRESQL:
        return column == any_(bindparam(name, type_=ARRAY(Text)))
    each = func.json_each(bindparam(name)).table_valued("value")
    return column.in_(select(each.c.value))


def _given(dialect: str, values: Mapping[str, Any]) -> Mapping[str, Any]:
    if dialect == SQLITE:
        return {name: json.dumps(value) if type(value) is list else value for name, value in values.items()}
    return values


def _driver(connection: Connection) -> Any:
    return connection.connection.driver_connection
