"""What the two databases spell differently."""

from typing import Any

from sqlalchemy import (
    ColumnElement,
    Connection,
    Float,
    Table,
    cast,
    func,
    select,
)
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql.functions import FunctionElement

from clew.kernel import Instant
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


class now(FunctionElement[float]):  # noqa: N801 - read as the SQL function it is
    """Seconds since the epoch at the moment the statement runs."""

    type = Float(53)
    inherit_cache = True


@compiles(now, "sqlite")
def _sqlite(_element: now, _compiler: Any, **_options: Any) -> str:
    return "((julianday('now') - 2440587.5) * 86400.0)"


@compiles(now, "postgresql")
def _postgresql(_element: now, _compiler: Any, **_options: Any) -> str:
    # Asked once for a statement, so that an index can be searched by it.
    return "(SELECT CAST(extract(epoch FROM clock_timestamp()) AS double precision))"


def read_clock(connection: Connection) -> Instant:
    return connection.execute(select(now())).scalar_one()


def storable(text: str) -> str:
    """The same text without what cannot be stored: a NUL becomes its picture, half a character a question mark."""
    if "\0" in text:
        text = text.replace("\0", "\N{SYMBOL FOR NULL}")
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode(errors="replace").decode()
    return text
