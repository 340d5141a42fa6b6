"""The schema version: the one this program needs, the one a database has, and the upgrade between them."""

import re
from dataclasses import dataclass
from pathlib import Path

from sqlalchemy import Connection, Text, cast, inspect, select

from clew.store.engine.address import show_url
from clew.store.faults import CannotUpgrade, NewerThanProgram, NotClew, OlderThanProgram
from clew.store.schema.migrations import run_script
from clew.store.schema.tables import meta

PROGRAM = 1
"""The schema version this program is written for."""

STEPS = Path(__file__).parent / "migrations"
"""The Alembic script location of this program's migrations."""

_BASELINE = 1
"""The oldest version there are steps for. Its one step creates all its tables from a SQL file."""

_OTHER_DATABASE = "Nothing was changed. Use another database; if this one was Clew's, restore a backup to it."


@dataclass(frozen=True, slots=True)
class SchemaVersion:
    """The schema of a database, and the oldest program that may still use it. Both are 0 for an empty database."""

    schema: int
    oldest_program: int


def read_version(connection: Connection) -> SchemaVersion:
    """The version in `meta`; 0 without that table. A `meta` without a version is refused: another program made it."""
    found = inspect(connection)
    if not found.has_table("meta"):
        return SchemaVersion(0, 0)
    # Check the columns first: on PostgreSQL a failing SELECT would abort the caller's transaction.
    if not {"key", "value"} <= {column["name"] for column in found.get_columns("meta")}:
        raise _not_clew(connection)
    # Cast, because another program's columns can have any type.
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
        f"{_name(connection)} is not a database of Clew: its table meta does not say which schema it has.",
        _OTHER_DATABASE,
    )


def _name(connection: Connection) -> str:
    """The address without its password. A copy that is still being written has no name yet."""
    url = connection.engine.url
    return show_url(url) if url.get_backend_name() == "postgresql" else url.database or "The database"


def require(connection: Connection, program: int = PROGRAM) -> None:
    """Refuse a database that the program must not use. A newer schema that still admits the program is accepted."""
    found = read_version(connection)
    if found.oldest_program > program:
        raise NewerThanProgram(
            f"The database has schema {found.schema}, which needs a program for schema {found.oldest_program}"
            f" or later; this program is for schema {program}.",
            "Use a newer Clew, or restore a backup from before the upgrade.",
        )
    if found.schema < program:
        raise OlderThanProgram(
            f"The database has schema {found.schema}; this program needs schema {program}.",
            "Run `clew db upgrade`.",
        )


def upgrade(
    connection: Connection, only_pre: bool = False, *, program: int = PROGRAM, steps: Path = STEPS
) -> SchemaVersion:
    """Bring the database to the schema of `program` inside the caller's transaction.

    An empty database gets the baseline without Alembic; then, as in any other, the missing steps run. With `only_pre`,
    stop before the last post step, so that servers of the version before can still use the database.
    """
    _lock_out_other_upgrades(connection)
    found = read_version(connection)
    if found.oldest_program > program:
        require(connection, program)
    # A newer schema that still admits this program: its steps belong to the newer program.
    if found.schema > program:
        return found
    baseline = found.schema == 0 and not inspect(connection).has_table("alembic_version")
    if baseline:
        _create_baseline(connection, steps)
    if not baseline or program > _BASELINE:
        migrate(connection, f"{program:04d}_pre" if only_pre else "head", steps)
    made = read_version(connection)
    if made.schema != program or (made.oldest_program != program and not only_pre):
        # alembic_version was ahead of the tables, so Alembic skipped steps.
        has = f"schema {made.schema} for programs of schema {made.oldest_program} and later"
        raise _cannot_upgrade(connection, f"all its steps are marked as done, but it has {has}")
    return made


def _create_baseline(connection: Connection, steps: Path) -> None:
    """Do what the first step does without Alembic, whose import would slow down the first start."""
    run_script(connection, steps / "versions" / f"v{_BASELINE:04d}_{connection.dialect.name}.sql")
    connection.exec_driver_sql(
        "CREATE TABLE alembic_version"
        " (version_num VARCHAR(32) NOT NULL, CONSTRAINT alembic_version_pkc PRIMARY KEY (version_num))"
    )
    connection.exec_driver_sql(f"INSERT INTO alembic_version (version_num) VALUES ('{_BASELINE:04d}_pre')")


def migrate(connection: Connection, step: str, steps: Path = STEPS) -> None:
    """Run the missing steps up to and including `step`, inside the caller's transaction."""
    # Alembic is slow to import, and only an upgrade needs it.
    from alembic import command  # noqa: PLC0415
    from alembic.config import Config  # noqa: PLC0415
    from alembic.util import CommandError  # noqa: PLC0415

    config = Config()
    config.set_main_option("script_location", str(steps))
    config.set_main_option("path_separator", "os")
    config.attributes["connection"] = connection
    if not connection.in_transaction():
        # On SQLite the transaction was begun on the driver's connection. Without begin() here SQLAlchemy does not know
        # of it, and Alembic would commit each step.
        connection.begin()
    try:
        command.upgrade(config, step)
    except (CommandError, AssertionError) as fault:
        # alembic_version has another program's columns, or names a step that Clew does not have.
        raise _cannot_upgrade(connection, f"its table alembic_version is not as Clew left it: {fault}") from fault


def _cannot_upgrade(connection: Connection, why: str) -> CannotUpgrade:
    return CannotUpgrade(f"{_name(connection)} cannot be upgraded: {why}.", _OTHER_DATABASE)


def _lock_out_other_upgrades(connection: Connection) -> None:
    # Servers that start together may all upgrade. PostgreSQL: a transaction-level advisory lock makes them queue, and
    # the later ones find nothing to do. SQLite: the caller's BEGIN IMMEDIATE already holds the only write lock.
    if connection.dialect.name == "postgresql":
        connection.exec_driver_sql("SELECT pg_advisory_xact_lock(hashtext('clew:upgrade'))")
