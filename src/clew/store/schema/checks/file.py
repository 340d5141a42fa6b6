"""The promise about a SQLite file: its pages and indexes are intact. If not, no other answer can be trusted."""

from collections.abc import Iterator

from sqlalchemy import Connection
from sqlalchemy.exc import DatabaseError

from clew.store.schema.checks.promise import Promise


def _damage(connection: Connection) -> Iterator[str]:
    if connection.dialect.name != "sqlite":
        return
    # Rows that break a CHECK constraint have promises of their own; this one is about the file only.
    before = connection.exec_driver_sql("PRAGMA ignore_check_constraints").scalar_one()
    connection.exec_driver_sql("PRAGMA ignore_check_constraints = 1")
    try:
        said = connection.exec_driver_sql("PRAGMA integrity_check").scalars().all()
        yield from (line for line in said if line != "ok")
    except DatabaseError as fault:
        yield str(fault.orig)
    finally:
        connection.exec_driver_sql(f"PRAGMA ignore_check_constraints = {before}")


FILE = Promise("file-whole", "The file is whole: every page, every index.", _damage)
