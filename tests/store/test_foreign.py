"""Databases of another program, or whose parts contradict each other: refused with a reason, and left as they are."""

from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Connection

from clew.app.database import open_for_server
from clew.store.engine.open import open_current, open_database, upgrade_database
from clew.store.faults import CannotUpgrade, NotClew, StoreFault
from clew.store.schema.version import PROGRAM, SchemaVersion
from tests.store.next_version import NEXT, become_next_version
from tests.store.test_schema import reflected, rows

META = "CREATE TABLE meta (key TEXT, value TEXT);\n"
MARK = "CREATE TABLE alembic_version (version_num VARCHAR(32) NOT NULL);\n"

FOREIGN = {
    "other columns": "CREATE TABLE meta (x TEXT)",
    "other types": "CREATE TABLE meta (key INTEGER, value INTEGER);\nINSERT INTO meta VALUES (1, 2)",
    "no number": f"{META}INSERT INTO meta VALUES ('schema', 'banana')",
    "no value": f"{META}INSERT INTO meta VALUES ('schema', NULL), ('oldest-program', '1')",
    "a number alone": f"{META}INSERT INTO meta VALUES ('schema', '99')",
    "a number too long": f"{META}INSERT INTO meta VALUES ('schema', '{'9' * 5000}'), ('oldest-program', '1')",
    "other keys": f"{META}INSERT INTO meta VALUES ('colour', 'red')",
}


def made_with(address: str, script: str) -> Any:
    """Such a database, and all that it holds."""
    database = open_database(address)

    def run(connection: Connection) -> None:
        for statement in filter(str.strip, script.split(";\n")):
            connection.exec_driver_sql(statement)

    try:
        database.write(run).result(30)
        return database.read(whole)
    finally:
        database.close()


def whole(connection: Connection) -> Any:
    return rows(connection), reflected(connection)


def refused(address: str, only_pre: bool, fault: type[StoreFault]) -> str:
    """In one line that names it and shows no password."""
    with pytest.raises(fault) as told:
        upgrade_database(address, only_pre)
    name = address.replace("+psycopg", "").replace(":@", ":***@")
    assert told.value.words.startswith(f"{name} ")
    assert told.value.remedy.startswith("Nothing was changed. ")
    assert "\n" not in str(told.value)
    return told.value.words


@pytest.mark.parametrize("only_pre", [False, True])
@pytest.mark.parametrize("script", [pytest.param(script, id=name) for name, script in FOREIGN.items()])
def test_a_database_of_another_program_is_refused(address: str, script: str, only_pre: bool) -> None:
    before = made_with(address, script)
    assert "is not a database of Clew" in refused(address, only_pre, NotClew)
    for opens in (open_current, open_for_server):
        with pytest.raises(NotClew):
            opens(address)
    assert made_with(address, "") == before


@pytest.mark.parametrize("only_pre", [False, True])
def test_the_steps_of_another_program_are_refused(address: str, only_pre: bool) -> None:
    before = made_with(address, f"{MARK}INSERT INTO alembic_version VALUES ('deadbeef')")
    told = refused(address, only_pre, CannotUpgrade)
    assert "its table alembic_version is not as Clew left it: Can't locate revision" in told
    with pytest.raises(CannotUpgrade):
        open_for_server(address)
    assert made_with(address, "") == before


@pytest.mark.parametrize(("only_pre", "oldest"), [(False, NEXT), (True, PROGRAM)])
def test_a_mark_that_marks_nothing_is_no_hindrance(
    address: str, only_pre: bool, oldest: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    become_next_version(monkeypatch, tmp_path)
    made_with(address, MARK)
    assert upgrade_database(address, only_pre) == SchemaVersion(NEXT, oldest)


@pytest.mark.proof("postgresql")
@pytest.mark.parametrize("only_pre", [False, True])
@pytest.mark.parametrize(
    ("script", "fault"),
    [
        ("DROP TABLE meta", CannotUpgrade),
        ("DELETE FROM meta", NotClew),
        ("UPDATE meta SET value = '-1' WHERE key = 'schema'", NotClew),
        ("UPDATE meta SET value = '0'", NotClew),
        (f"UPDATE meta SET value = '{PROGRAM}'", CannotUpgrade),
    ],
)
def test_a_database_that_would_not_say_its_schema_after_an_upgrade_is_refused(
    address: str,
    script: str,
    fault: type[StoreFault],
    only_pre: bool,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    become_next_version(monkeypatch, tmp_path)
    upgrade_database(address)
    before = made_with(address, script)
    refused(address, only_pre, fault)
    assert made_with(address, "") == before


def test_a_database_that_would_stay_open_to_older_programs_after_an_upgrade_is_refused(
    address: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    become_next_version(monkeypatch, tmp_path)
    upgrade_database(address)
    made_with(address, f"UPDATE meta SET value = '{PROGRAM}' WHERE key = 'oldest-program'")
    with pytest.raises(CannotUpgrade):
        upgrade_database(address)
