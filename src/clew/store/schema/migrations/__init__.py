"""Migrations: the steps from one schema version to the next, run by Alembic.

A `pre` step only adds, so servers of the version before keep working beside new ones. A `post` step runs when none of
them is left: it removes what only they needed, and closes the database to them.

A released step never changes. It therefore spells out its tables and values, and imports nothing of Clew except this
package, which is frozen with it.
"""

from pathlib import Path

from sqlalchemy import Connection


def run_script(connection: Connection, file: Path) -> None:
    """Run a SQL file statement by statement. A statement ends with a semicolon at the end of a line."""
    for statement in file.read_text(encoding="utf-8").split(";\n"):
        if statement.strip():
            connection.exec_driver_sql(statement)
