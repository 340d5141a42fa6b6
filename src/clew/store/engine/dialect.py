"""What the two databases spell differently: the clock, upserts, lists of values, and which text they can store."""

from typing import Any

from sqlalchemy import ARRAY, ColumnElement, Connection, Float, Table, Text, any_, bindparam, cast, func, select
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql.functions import FunctionElement

from clew.kernel import Instant
from clew.store.engine.statement import POSTGRESQL

Insert = sqlite.Insert | postgresql.Insert


def insert(connection: Connection, table: Table) -> Insert:
    """An insert with ON CONFLICT."""
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
    """The values of a column as one text, separated by commas."""
    result: ColumnElement[str] = (
        func.string_agg(cast(column, postgresql.TEXT), ",") if dialect == POSTGRESQL else func.group_concat(column, ",")
    )
    return result


class now(FunctionElement[float]):  # noqa: N801 - read as the SQL function it is
    """Seconds since the epoch when the statement runs, by the database's clock: all servers that share a database agree
    on it, and so on every lease."""

    type = Float(53)
    inherit_cache = True


@compiles(now, "sqlite")
def _sqlite(_element: now, _compiler: Any, **_options: Any) -> str:
    return "((julianday('now') - 2440587.5) * 86400.0)"


@compiles(now, "postgresql")
def _postgresql(_element: now, _compiler: Any, **_options: Any) -> str:
    # In a subquery: PostgreSQL evaluates it once per statement, so that an index can be searched with its value.
    return "(SELECT CAST(extract(epoch FROM clock_timestamp()) AS double precision))"


def read_clock(connection: Connection) -> Instant:
    return connection.execute(select(now())).scalar_one()


def storable(text: str) -> str:
    """The text without what a database cannot store: NUL becomes its symbol, a lone surrogate becomes a question mark.

    An agent may say anything, and losing its message would be worse than changing two characters."""
    if "\0" in text:
        text = text.replace("\0", "\N{SYMBOL FOR NULL}")
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode(errors="replace").decode()
    return text


def among(dialect: str, column: ColumnElement[str], name: str) -> ColumnElement[bool]:
    """Whether the column is in the list that is bound to that name. One statement serves lists of any length."""
    if dialect == POSTGRESQL:
        return column == any_(bindparam(name, type_=ARRAY(Text)))
    each = func.json_each(bindparam(name)).table_valued("value")
    return column.in_(select(each.c.value))
