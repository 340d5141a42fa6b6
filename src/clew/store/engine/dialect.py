"""What the two databases spell differently."""

from typing import Any

from sqlalchemy import (
    ColumnElement,
    Connection,
    Table,
    cast,
    func,
)
from sqlalchemy.dialects import postgresql, sqlite

from clew.store.engine.statement import POSTGRESQL

Insert = sqlite.Insert | postgresql.Insert


def insert(connection: Connection, table: Table) -> Insert:
    """An insert that knows what to do about a row that is there already."""
    return insert_in(connection.dialect.name, table)


def insert_in(dialect: str, table: Table) -> Insert:
    return postgresql.insert(table) if dialect == POSTGRESQL else sqlite.insert(table)


def lesser(dialect: str, one: Any, other: Any) -> ColumnElement[Any]:
    """The smaller of two values in one row."""
    result: ColumnElement[Any] = (func.least if dialect == POSTGRESQL else func.min)(one, other)
    return result


def greater(dialect: str, one: Any, other: Any) -> ColumnElement[Any]:
    """The greater of two values in one row."""
    result: ColumnElement[Any] = (func.greatest if dialect == POSTGRESQL else func.max)(one, other)
    return result


def listed(dialect: str, column: ColumnElement[Any]) -> ColumnElement[str]:
    """The values of a column as one text, with commas between."""
    if dialect == POSTGRESQL:
        result: ColumnElement[str] = func.string_agg(cast(column, postgresql.TEXT), ",")
        return result
    joined: ColumnElement[str] = func.group_concat(column, ",")
    return joined
