"""Programs of two schema versions on one database: who may use it after which step, and all or nothing."""

from concurrent.futures import Future

import pytest
from sqlalchemy import Connection, text
from sqlalchemy.exc import DatabaseError

from clew.store.engine.database import Database
from clew.store.faults import NewerThanProgram, OlderThanProgram
from clew.store.schema.version import SchemaVersion, read_version, require
from tests.store.test_schema import reflected, rows
from tests.store.two_steps.kit import points_at, pre, runs_in, taken_over, upgrade_to_2


def test_before_the_first_step_the_new_program_is_refused(old: Database) -> None:
    with pytest.raises(OlderThanProgram, match="has schema 1; this program needs schema 2"):
        old.read(lambda connection: require(connection, program=2))
    old.read(lambda connection: require(connection, program=1))


def test_after_the_first_step_old_and_new_programs_share_the_database(shared: Database) -> None:
    assert shared.read(read_version) == SchemaVersion(2, 1)
    shared.read(lambda connection: require(connection, program=1))
    shared.read(lambda connection: require(connection, program=2))
    assert len(shared.read(taken_over)) == 12
    shared.write(lambda connection: runs_in(connection, "known", "n-known", "rt-laptop", 200)).result(30)
    shared.write(lambda connection: points_at(connection, "known", "n-next")).result(30)
    pointer = text("SELECT session_native_id, session_directory FROM lanes WHERE id = 'known'")
    assert shared.read(lambda connection: tuple(connection.execute(pointer).one())) == ("n-next", "/srv/maze")


def test_the_first_step_can_be_repeated(shared: Database) -> None:
    before = shared.read(rows)
    assert shared.write(pre).result(30) == SchemaVersion(2, 1)
    assert shared.read(rows) == before


def test_after_the_second_step_an_old_program_is_refused(upgraded: Database) -> None:
    assert upgraded.read(read_version) == SchemaVersion(2, 2)
    with pytest.raises(NewerThanProgram) as refused:
        upgraded.read(lambda connection: require(connection, program=1))
    assert refused.value.words == (
        "The database has schema 2, which needs a program for schema 2 or later; this program is for schema 1."
    )
    assert refused.value.remedy == "Use a newer Clew, or restore a backup from before the upgrade."


def test_servers_that_start_together_may_all_upgrade(old: Database) -> None:
    answers: list[Future[SchemaVersion]] = [old.write(upgrade_to_2) for _ in range(4)]
    assert [answer.result(60) for answer in answers] == [SchemaVersion(2, 2)] * 4
    assert len(old.read(taken_over)) == 12


def test_what_no_step_is_about_stays_as_it_was(old: Database) -> None:
    before = old.read(rows)
    old.write(upgrade_to_2).result(30)
    after = old.read(rows)
    for table in ("agents", "threads", "journal", "machines", "runtimes", "workspaces", "wakes"):
        assert after[table] == before[table], table
    for table, gone in (("lanes", ["session_native_id", "session_directory"]), ("runs", ["session_native_id"])):
        old_rows = [{key: row[key] for key in row if key not in (*gone, "session_id")} for row in before[table]]
        by_id = {row["id"]: row for row in after[table]}
        assert [{key: by_id[row["id"]][key] for key in row} for row in old_rows] == old_rows
        assert len(by_id) == len(old_rows)


@pytest.mark.parametrize(
    "in_the_way",
    [
        # The first step creates one table and then fails at the second.
        "CREATE TABLE archives (id TEXT)",
        # The second step drops two columns and then fails at the third.
        "CREATE VIEW reader AS SELECT session_native_id FROM runs",
    ],
)
def test_a_step_that_fails_leaves_the_database_as_it_was(old: Database, in_the_way: str) -> None:
    def plant(connection: Connection) -> None:
        connection.exec_driver_sql(in_the_way)

    old.write(plant).result(30)
    before = old.read(rows), old.read(reflected)
    with pytest.raises(DatabaseError):
        old.write(upgrade_to_2).result(30)
    assert (old.read(rows), old.read(reflected)) == before
    assert old.read(read_version) == SchemaVersion(1, 1)


def test_a_caller_that_fails_after_an_upgrade_undoes_it(old: Database) -> None:
    def fails(connection: Connection) -> None:
        upgrade_to_2(connection)
        raise ValueError("no")

    before = old.read(rows), old.read(reflected)
    with pytest.raises(ValueError, match="no"):
        old.write(fails).result(30)
    assert (old.read(rows), old.read(reflected)) == before
