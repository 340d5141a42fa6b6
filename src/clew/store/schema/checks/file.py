"""What is promised of a SQLite file: its pages are whole. Where they are not, no other answer can be trusted."""

from collections.abc import Iterator

from sqlalchemy import Connection
from sqlalchemy.exc import DatabaseError

from clew.store.schema.checks.promise import Promise


def _damage(connection: Connection) -> Iterator[str]:
    if connection.dialect.name != "sqlite":
        return
    # Rows that break a condition are named by promises of their own; here it is the file that is asked.
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
