"""Databases of every schema version, written by hand in golden/: this program upgrades them, and nothing is lost."""

from pathlib import Path

import pytest
from sqlalchemy import Connection

from clew.store.engine.open import open_database
from clew.store.schema.check import check
from clew.store.schema.migrations import run_script
from clew.store.schema.version import PROGRAM, SchemaVersion, migrate, read_version, require, upgrade
from tests.store.test_schema import rows

GOLDEN = Path(__file__).parent / "golden"
LAST_STEP = {1: "0001_pre"}


def load(connection: Connection, version: int) -> None:
    """A database as a program of that version left it."""
    migrate(connection, LAST_STEP[version])
    run_script(connection, GOLDEN / f"v{version:04d}.sql")
    run_script(connection, GOLDEN / connection.dialect.name / f"v{version:04d}.sql")


def test_every_schema_version_has_a_golden_file() -> None:
    expected = [f"v{version:04d}.sql" for version in range(1, PROGRAM + 1)]
    assert sorted(file.name for file in GOLDEN.glob("*.sql")) == expected
    assert list(LAST_STEP) == list(range(1, PROGRAM + 1))


@pytest.mark.parametrize("version", LAST_STEP)
def test_every_version_is_upgraded_to_this_one(address: str, version: int) -> None:
    database = open_database(address)
    database.write(lambda connection: load(connection, version)).result(30)
    assert database.read(read_version) == SchemaVersion(version, version)
    assert database.write(upgrade).result(30) == SchemaVersion(PROGRAM, PROGRAM)
    database.read(require)
    assert database.read(check) == ()
    database.close()


def test_a_database_of_this_version_stays_as_it_is(address: str) -> None:
    database = open_database(address)
    database.write(lambda connection: load(connection, PROGRAM)).result(30)
    before = database.read(rows)
    assert (len(before["sessions"]), len(before["programs"])) == (6, 2)
    database.write(upgrade).result(30)
    assert database.read(rows) == before
    database.close()
