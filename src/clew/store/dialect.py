"""What the two databases spell differently."""

from sqlalchemy import ColumnElement, Connection, Table, func
from sqlalchemy.dialects import postgresql, sqlite

Insert = sqlite.Insert | postgresql.Insert


def insert(connection: Connection, table: Table) -> Insert:
    """An insert that knows what to do about a row that is there already."""
    if connection.dialect.name == "postgresql":
        return postgresql.insert(table)
    return sqlite.insert(table)


def lesser(connection: Connection, one: ColumnElement[float], other: ColumnElement[float]) -> ColumnElement[float]:
    """The smaller of two values in one row."""
    spelled = func.least if connection.dialect.name == "postgresql" else func.min
    result: ColumnElement[float] = spelled(one, other)
    return result
