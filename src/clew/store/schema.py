"""The schema's version: what this program speaks, what a database has, and the steps between."""

from dataclasses import dataclass
from pathlib import Path

from sqlalchemy import Connection, inspect, select

from clew.store.faults import NewerThanProgram, OlderThanProgram
from clew.store.migrations.script import run_script
from clew.store.tables import meta

PROGRAM = 2
"""The schema version this program is written for."""


@dataclass(frozen=True, slots=True)
class SchemaVersion:
    """What a database has: its version, and the oldest program that may still use it. Zero when it is empty."""

    schema: int
    oldest_program: int


def read_version(connection: Connection) -> SchemaVersion:
    if not inspect(connection).has_table("meta"):
        return SchemaVersion(0, 0)
    stored = {row.key: row.value for row in connection.execute(select(meta.c.key, meta.c.value))}
    return SchemaVersion(int(stored.get("schema", 0)), int(stored.get("oldest-program", 0)))


def require(connection: Connection, program: int = PROGRAM) -> None:
    """Refuse a database that a program must not use. One that is only ahead by added things is fine."""
    found = read_version(connection)
    if found.oldest_program > program:
        raise NewerThanProgram(
            f"The database has schema {found.schema} and needs a program that speaks {found.oldest_program}"
            f" or later; this one speaks {program}.",
            "Use a newer Clew, or restore a backup from before the upgrade.",
        )
    if found.schema < program:
        raise OlderThanProgram(
            f"The database has schema {found.schema}; this program needs {program}.",
            "Run `clew db upgrade`.",
        )


def upgrade(connection: Connection, only_pre: bool = False) -> SchemaVersion:
    """Apply the missing steps inside the caller's transaction; with `only_pre`, those that older servers can share."""
    _one_at_a_time(connection)
    found = read_version(connection)
    if found.oldest_program > PROGRAM:
        require(connection)
    # The steps of a database that is ahead are a newer program's.
    if found.schema > PROGRAM:
        return found
    if found.schema == 0 and not only_pre:
        # All steps at once, for whom Alembic need not be there.
        run_script(connection, "whole")
    else:
        migrate(connection, f"{PROGRAM:04d}_pre" if only_pre else "head")
    return read_version(connection)


def migrate(connection: Connection, step: str) -> None:
    """Apply the missing steps up to this one, inside the caller's transaction."""
    # Alembic takes long to import, and only an upgrade needs it.
    from alembic import command  # noqa: PLC0415
    from alembic.config import Config  # noqa: PLC0415

    config = Config()
    config.set_main_option("script_location", str(Path(__file__).parent / "migrations"))
    config.set_main_option("path_separator", "os")
    config.attributes["connection"] = connection
    if not connection.in_transaction():
        # SQLite's was begun on the driver; unless Alembic is told that there is one, it commits by itself.
        connection.begin()
    command.upgrade(config, step)


def _one_at_a_time(connection: Connection) -> None:
    # Servers that start together may all upgrade; on SQLite there is one writer in any case.
    if connection.dialect.name == "postgresql":
        connection.exec_driver_sql("SELECT pg_advisory_xact_lock(hashtext('clew:upgrade'))")
