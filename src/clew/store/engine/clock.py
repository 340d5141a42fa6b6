"""The database's own clock: every server that shares a database agrees on it, and so on every lease."""

from typing import Any

from sqlalchemy import Connection, Float, select
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql.functions import FunctionElement

from clew.kernel import Instant


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
