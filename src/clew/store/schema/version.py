"""The schema's version: what this program speaks, what a database has, and the steps between."""

import re
from dataclasses import dataclass
from pathlib import Path

from sqlalchemy import Connection, Text, cast, inspect, select

from clew.store.engine.address import show_url
from clew.store.faults import CannotUpgrade, NewerThanProgram, NotClew, OlderThanProgram
from clew.store.schema.migrations.script import run_script
from clew.store.schema.tables import meta

PROGRAM = 3
"""The schema version this program is written for."""

_ANOTHER = "Nothing was changed. Name another database; if this one was Clew's, restore a backup to that."


@dataclass(frozen=True, slots=True)
class SchemaVersion:
    """What a database has: its version, and the oldest program that may still use it. Zero when it is empty."""

    schema: int
    oldest_program: int


def read_version(connection: Connection) -> SchemaVersion:
    """Zero where there is no table `meta`; one that does not say a version is somebody else's, and is refused."""
    found = inspect(connection)
    if not found.has_table("meta"):
        return SchemaVersion(0, 0)
    # A statement that fails would spoil the caller's transaction.
    if not {"key", "value"} <= {column["name"] for column in found.get_columns("meta")}:
        raise _not_clew(connection)
    # Somebody else's columns may have any type.
    key, value = cast(meta.c.key, Text), cast(meta.c.value, Text)
    rows = connection.execute(select(key, value).where(key.in_(("schema", "oldest-program"))))
    stored = {row[0]: row[1] for row in rows}
    schema, oldest = (_number(stored.get(each)) for each in ("schema", "oldest-program"))
    if schema is None or oldest is None:
        raise _not_clew(connection)
    return SchemaVersion(schema, oldest)


def _number(stored: str | None) -> int | None:
    return int(stored) if stored is not None and re.fullmatch("[1-9][0-9]{0,8}", stored) else None


def _not_clew(connection: Connection) -> NotClew:
    return NotClew(
        f"{_name(connection)} is not a database of Clew: its table meta does not say which schema it has.", _ANOTHER
    )


def _name(connection: Connection) -> str:
    """As it may be shown. A copy that is being made has no name yet."""
    url = connection.engine.url
    return show_url(url) if url.get_backend_name() == "postgresql" else url.database or "The database"


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
    if found.schema == 0 and not only_pre and not inspect(connection).has_table("alembic_version"):
        # All steps at once, for whom Alembic need not be there.
        run_script(connection, "whole")
    else:
        migrate(connection, f"{PROGRAM:04d}_pre" if only_pre else "head")
    made = read_version(connection)
    if made.schema != PROGRAM or (made.oldest_program != PROGRAM and not only_pre):
        # Alembic's mark was ahead of the tables, so steps were left out.
        told = f"schema {made.schema} for programs of {made.oldest_program} and later"
        raise _cannot_upgrade(connection, f"all its steps are marked as done, and yet it has {told}")
    return made


def migrate(connection: Connection, step: str) -> None:
    """Apply the missing steps up to this one, inside the caller's transaction."""
    # Alembic takes long to import, and only an upgrade needs it.
    from alembic import command  # noqa: PLC0415
    from alembic.config import Config  # noqa: PLC0415
    from alembic.util import CommandError  # noqa: PLC0415

    config = Config()
    config.set_main_option("script_location", str(Path(__file__).parent / "migrations"))
    config.set_main_option("path_separator", "os")
    config.attributes["connection"] = connection
    if not connection.in_transaction():
        # SQLite's was begun on the driver; unless Alembic is told that there is one, it commits by itself.
        connection.begin()
    try:
        command.upgrade(config, step)
    except (CommandError, AssertionError) as fault:
        # The table of that name is another program's, or its mark is.
        raise _cannot_upgrade(connection, f"its table alembic_version is not as Clew left it: {fault}") from fault


def _cannot_upgrade(connection: Connection, why: str) -> CannotUpgrade:
    return CannotUpgrade(f"{_name(connection)} cannot be upgraded: {why}.", _ANOTHER)


def _one_at_a_time(connection: Connection) -> None:
    # Servers that start together may all upgrade; on SQLite there is one writer in any case.
    if connection.dialect.name == "postgresql":
        connection.exec_driver_sql("SELECT pg_advisory_xact_lock(hashtext('clew:upgrade'))")
