"""What the two databases spell differently."""

from typing import Any

from sqlalchemy import (
    ColumnElement,
    Connection,
    FromClause,
    Table,
    cast,
    func,
    literal_column,
    select,
)
from sqlalchemy.dialects import postgresql, sqlite

from clew.store.statement import POSTGRESQL

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


def looked_up(
    rows: FromClause, name: str, *fits: ColumnElement[bool], held: bool = False, put: bool = False
) -> FromClause:
    """PostgreSQL only: the rows that fit, asked for by themselves for each row they are joined to. A join that was
    planned while the table was empty would read all of it each time. `held` ones stay as they are until the end; `put`
    ones are not moved (moving.py), and may change otherwise."""
    found = select(rows).where(*fits).offset(literal_column("0"))
    if held or put:
        found = found.with_for_update(read=True, key_share=put)
    return found.lateral(name)
