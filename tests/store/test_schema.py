"""The schema: its steps build exactly the tables, and a database says whom it is for."""

import pytest
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from sqlalchemy import update

from clew.store.database import Database
from clew.store.faults import NewerThanProgram, OlderThanProgram
from clew.store.opening import open_database
from clew.store.schema import PROGRAM, SchemaVersion, read_version, require, upgrade
from clew.store.tables import meta, metadata


def test_the_steps_build_the_tables(database: Database) -> None:
    assert database.read(lambda connection: compare_metadata(MigrationContext.configure(connection), metadata)) == []


def test_an_upgrade_can_be_repeated(database: Database) -> None:
    assert database.write(upgrade).result(30) == SchemaVersion(PROGRAM, PROGRAM)
    database.read(require)


def test_an_empty_database_must_be_upgraded_first(address: str) -> None:
    database = open_database(address)
    assert database.read(read_version) == SchemaVersion(0, 0)
    with pytest.raises(OlderThanProgram, match=f"has schema 0; this program needs {PROGRAM}"):
        database.read(require)
    database.close()


def test_a_database_that_is_closed_to_this_program_is_refused(database: Database) -> None:
    later = update(meta).where(meta.c.key.in_(["schema", "oldest-program"])).values(value=str(PROGRAM + 1))
    database.write(lambda connection: connection.execute(later).rowcount).result(30)
    with pytest.raises(NewerThanProgram, match=f"this one speaks {PROGRAM}"):
        database.read(require)
    with pytest.raises(NewerThanProgram):
        database.write(upgrade).result(30)


def test_a_database_that_only_has_more_is_shared_with_this_program(database: Database) -> None:
    ahead = update(meta).where(meta.c.key == "schema").values(value=str(PROGRAM + 1))
    database.write(lambda connection: connection.execute(ahead).rowcount).result(30)
    database.read(require)
