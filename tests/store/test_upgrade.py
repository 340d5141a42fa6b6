"""Upgrades of old databases, made by hand in golden/: nothing is lost, and nothing is known that nobody knew."""

import json
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Connection, MetaData, Table, select, text
from sqlalchemy.exc import DatabaseError

from clew.kernel import (
    Cursor,
    EntrySeq,
    Floor,
    LaneId,
    LaneScope,
    MachineId,
    NativeId,
    Outcome,
    Plan,
    RunId,
    RuntimeId,
    decide,
    write_cursor,
)
from clew.store.engine.database import Database, Operation
from clew.store.engine.open import open_database
from clew.store.faults import NewerThanProgram, OlderThanProgram
from clew.store.operations.sessions import lane_sessions, run_session
from clew.store.schema.check import check
from clew.store.schema.tables import UNKNOWN_RUNTIME, lanes, sessions
from clew.store.schema.version import PROGRAM, SchemaVersion, migrate, read_version, require, upgrade
from tests.kernel.kit import WORKTREE, here, situation
from tests.store.test_schema import reflected

GOLDEN = Path(__file__).parent / "golden"
LAST_STEP = {1: "0001_pre", 2: "0002_post", 3: "0003_post"}


def load(connection: Connection, version: int) -> None:
    """A database as a program of that version left it."""
    migrate(connection, LAST_STEP[version])
    run(connection, (GOLDEN / f"v{version:04d}.sql").read_text(encoding="utf-8"))


def run(connection: Connection, script: str) -> None:
    for statement in script.split(";\n"):
        if statement.strip():
            connection.exec_driver_sql(statement)


def pre(connection: Connection) -> SchemaVersion:
    """The first step from schema 1, which programs 1 and 2 can share. To go further, program 1 has to be gone."""
    migrate(connection, "0002_pre")
    return read_version(connection)


def rows(connection: Connection) -> dict[str, list[Any]]:
    """Every row of every table, alembic's mark included."""
    found = MetaData()
    found.reflect(connection)
    return {
        table.name: sorted((dict(row) for row in connection.execute(select(table)).mappings()), key=str)
        for table in found.sorted_tables
    }


def taken_over(connection: Connection) -> dict[str, Any]:
    """The newest session of each lane."""
    listed = connection.execute(select(text("*")).select_from(sessions).order_by(sessions.c.generation)).mappings()
    return {row["lane_id"]: row for row in listed}


def history(connection: Connection, lane: str) -> list[tuple[int, str, str]]:
    listed = select(sessions.c.generation, sessions.c.native_id, sessions.c.runtime_id).where(
        sessions.c.lane_id == lane
    )
    return [(row[0], row[1], row[2]) for row in connection.execute(listed.order_by(sessions.c.generation))]


@pytest.fixture
def old(address: str) -> Iterator[Database]:
    """The database of schema 1."""
    database = open_database(address)
    try:
        database.write(lambda connection: load(connection, 1)).result(30)
        yield database
    finally:
        database.close()


@pytest.fixture
def upgraded(old: Database) -> Database:
    old.write(upgrade).result(30)
    return old


@pytest.fixture
def shared(old: Database) -> Database:
    """The same after the step that old and new servers can share."""
    old.write(pre).result(30)
    return old


# ---------------------------------------------------------------- golden files


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


def test_what_no_step_is_about_stays_as_it_was(old: Database) -> None:
    before = old.read(rows)
    old.write(upgrade).result(30)
    after = old.read(rows)
    for table in ("agents", "threads", "journal", "machines", "runtimes", "workspaces"):
        # What was added says nothing yet.
        kept = [{name: row[name] for name in old_row} for row, old_row in zip(after[table], before[table], strict=True)]
        assert kept == before[table], table
    for table, gone in (("lanes", ["session_native_id", "session_directory"]), ("runs", ["session_native_id"])):
        old_rows = [{key: row[key] for key in row if key not in (*gone, "session_id")} for row in before[table]]
        by_id = {row["id"]: row for row in after[table]}
        assert [{key: by_id[row["id"]][key] for key in row} for row in old_rows] == old_rows
        assert len(by_id) == len(old_rows)


# ---------------------------------------------------------------- what pointers become


@pytest.mark.case("C11")
def test_a_runtime_is_taken_only_from_a_run_that_was_in_the_session(upgraded: Database) -> None:
    found = {lane: row["runtime_id"] for lane, row in upgraded.read(taken_over).items()}
    assert found == {
        "known": "rt-laptop",
        "newest-of-its-own": "rt-server",
        # Its newest run was on the server, in another session.
        "disagrees": UNKNOWN_RUNTIME,
        "disagrees-but-known": "rt-laptop",
        "shared-older": UNKNOWN_RUNTIME,
        "shared-newer": "rt-laptop",
        "no-directory": UNKNOWN_RUNTIME,
        "half-a-directory": UNKNOWN_RUNTIME,
        "no-run": UNKNOWN_RUNTIME,
        # A run that waits was in no session.
        "only-queued": UNKNOWN_RUNTIME,
        "began-anew": "rt-laptop",
        "other-provider": "rt-laptop",
    }


def continued(database: Database, lane: str, machine: str) -> Plan:
    """What the kernel says when that machine claims the lane."""
    own = select(lanes.c.floor_generation, lanes.c.floor_entry).where(lanes.c.id == lane)
    generation, entry = database.read(lambda connection: connection.execute(own).one())
    return decide(
        situation(
            database.read(lambda connection: lane_sessions(connection, LaneId(lane))),
            lane=LaneId(lane),
            scope=LaneScope(LaneId(lane)),
            here=here(machine=MachineId(machine), runtime=RuntimeId(f"rt-{machine}")),
            place=replace(situation().place, remembered=replace(WORKTREE, machine=None)),
            floor=Floor(generation, EntrySeq(entry)),
        )
    )


@pytest.mark.case("C11")
def test_a_known_session_is_resumed_where_it_was_made_and_nowhere_else(upgraded: Database) -> None:
    for lane, native_id in (("known", "n-known"), ("disagrees-but-known", "n-kept"), ("began-anew", "n-anew")):
        at_home = continued(upgraded, lane, "laptop")
        assert (at_home.outcome, at_home.native_id) == (Outcome.RESUME, native_id)
        assert continued(upgraded, lane, "server").outcome is Outcome.RESEED


@pytest.mark.case("C11")
@pytest.mark.parametrize("lane", ["disagrees", "shared-older", "no-directory", "half-a-directory", "only-queued"])
def test_an_unknown_session_is_resumed_nowhere(upgraded: Database, lane: str) -> None:
    for machine in ("laptop", "server"):
        plan = continued(upgraded, lane, machine)
        assert (plan.outcome, plan.reason.code) == (Outcome.RESEED, "runtime:unknown")


def test_a_pointer_keeps_its_id_and_directory(upgraded: Database) -> None:
    found = upgraded.read(taken_over)
    assert found["known"]["cursor"] == write_cursor(Cursor(1, NativeId("n-known")))
    assert json.loads(found["no-run"]["cursor"]) == {"v": 1, "id": 'n-"odd"\\ü', "extra": ""}
    assert {lane: row["directory"] for lane, row in found.items() if row["directory"] != "/srv/maze"} == {
        # The lane's workspace, or the home of its agent.
        "no-directory": "/srv/work",
        "half-a-directory": "/srv/ada",
    }
    # Its agent is another provider's now.
    assert (found["other-provider"]["provider"], found["other-provider"]["account"]) == ("loom", "me@work")
    assert "ended" not in found


def test_a_pointer_is_kept_even_where_no_place_is_known(old: Database) -> None:
    homeless = text("UPDATE agents SET home = ''")
    old.write(lambda connection: connection.execute(homeless).rowcount).result(30)
    old.write(upgrade).result(30)
    row = old.read(taken_over)["half-a-directory"]
    assert (row["native_id"], row["runtime_id"], row["directory"]) == ("n-half", UNKNOWN_RUNTIME, "/")


def test_a_session_comes_from_a_run_that_was_in_it_or_from_the_upgrade(upgraded: Database) -> None:
    found = upgraded.read(taken_over)
    assert {lane: row["run_id"] for lane, row in found.items()} == {
        "known": "known-3",
        "newest-of-its-own": "moved-2",
        "disagrees": None,
        "disagrees-but-known": "kept-1",
        "shared-older": "older-1",
        "shared-newer": "newer-1",
        "no-directory": "nowhere-1",
        "half-a-directory": "half-1",
        "no-run": None,
        "only-queued": None,
        "began-anew": "anew-1",
        "other-provider": "loom-1",
    }
    assert {lane for lane, row in found.items() if row["adopted_at"] is not None} == {
        "disagrees",
        "no-run",
        "only-queued",
    }
    born = {lane: found[lane]["born_at"] for lane in ("known", "newest-of-its-own", "disagrees-but-known")}
    assert born == {"known": 110, "newest-of-its-own": 120, "disagrees-but-known": 110}
    assert found["no-run"]["born_at"] == found["no-run"]["adopted_at"] > 1e9


def test_a_session_has_seen_what_runs_that_did_well_there_were_told(upgraded: Database) -> None:
    found = upgraded.read(taken_over)
    # The last run of `known` failed, so what it was told is told again.
    assert {lane: row["seen"] for lane, row in found.items() if row["seen"]} == {
        "known": 3,
        "newest-of-its-own": 2,
        "disagrees-but-known": 1,
        "shared-newer": 1,
        "began-anew": 5,
        "other-provider": 1,
    }


def test_a_session_comes_after_its_lanes_fresh_start(upgraded: Database) -> None:
    row = upgraded.read(taken_over)["began-anew"]
    assert (row["generation"], row["begins"]) == (3, 4)
    assert all(row["generation"] == 1 for lane, row in upgraded.read(taken_over).items() if lane != "began-anew")


def test_an_earlier_run_finds_its_session(upgraded: Database) -> None:
    def session_of(name: str) -> list[str]:
        return [each.lane for each in upgraded.read(lambda connection: run_session(connection, RunId(name)))]

    assert session_of("known-1") == session_of("known-2") == ["known"]
    assert (session_of("older-1"), session_of("newer-1")) == (["shared-older"], ["shared-newer"])
    assert session_of("kept-2") == session_of("queued-1") == session_of("ended-1") == []


# ---------------------------------------------------------------- old and new servers on one database


def test_after_the_first_step_old_and_new_programs_share_the_database(shared: Database) -> None:
    assert shared.read(read_version) == SchemaVersion(2, 1)
    shared.read(lambda connection: require(connection, program=1))
    shared.read(lambda connection: require(connection, program=2))
    assert len(shared.read(taken_over)) == 12
    shared.write(partial(runs_in, lane="known", native_id="n-known", runtime="rt-laptop", at=200)).result(30)
    shared.write(partial(points_at, lane="known", native_id="n-next")).result(30)
    assert shared.read(pointer_of_known) == ("n-next", "/srv/maze")


def test_programs_of_schema_2_and_3_share_a_database_after_the_first_step(address: str) -> None:
    database = open_database(address)
    database.write(lambda connection: load(connection, 2)).result(30)
    database.write(lambda connection: upgrade(connection, only_pre=True)).result(30)
    assert database.read(read_version) == SchemaVersion(3, 2)
    database.read(lambda connection: require(connection, program=2))
    database.read(require)
    # Nobody knew with which key a session was made, or how an agent was started.
    assert {row["credential"] for row in database.read(rows)["sessions"]} == {None}
    assert {row["program"] for row in database.read(rows)["agents"]} == {""}
    assert database.read(rows)["programs"] == []
    # As a program of schema 2 keeps an agent, which stands beside what is new.
    added = text(
        "INSERT INTO agents (id, name, provider, mode, home) VALUES ('eve', 'eve', 'loom', 'edit', '/srv/eve')"
    )
    database.write(lambda connection: connection.execute(added).rowcount).result(30)
    assert database.write(upgrade).result(30) == SchemaVersion(3, 3)
    assert database.read(check) == ()
    database.close()


def runs_in(connection: Connection, lane: str, native_id: str, runtime: str, at: float) -> None:
    """As a program of schema 1 keeps a run."""
    connection.execute(
        text(
            "INSERT INTO runs (id, lane_id, agent_id, runtime_id, state, rank, queued_at, started_at, ended_at,"
            " session_native_id) VALUES (:id, :lane, 'ada', :runtime, 'succeeded', 0, :at, :at, :at, :native_id)"
        ),
        {"id": f"{lane}-{at:.0f}", "lane": lane, "runtime": runtime, "at": at, "native_id": native_id},
    )


def points_at(connection: Connection, lane: str, native_id: str | None) -> None:
    """As a program of schema 1 keeps where a lane goes on."""
    connection.execute(
        text("UPDATE lanes SET session_native_id = :native_id, session_directory = '/srv/maze' WHERE id = :lane"),
        {"native_id": native_id, "lane": lane},
    )


def pointer_of_known(connection: Connection) -> tuple[str, str]:
    row = connection.execute(text("SELECT session_native_id, session_directory FROM lanes WHERE id = 'known'")).one()
    return row[0], row[1]


def keeps(connection: Connection, lane: str, **changes: Any) -> None:
    """As a program of schema 2 keeps a session."""
    kept = Table("sessions", MetaData(), autoload_with=connection)
    own = connection.execute(select(kept).where(kept.c.lane_id == lane)).mappings().first()
    assert own is not None
    connection.execute(kept.insert().values(**(dict(own) | changes)))


def finish(database: Database, *written: Operation[None]) -> None:
    """What servers write between the two steps, then the second step."""
    for operation in written:
        database.write(operation).result(30)
    assert database.write(upgrade).result(30) == SchemaVersion(PROGRAM, PROGRAM)


@pytest.mark.case("C11")
def test_a_pointer_that_an_old_server_moved_is_one_more_generation(shared: Database) -> None:
    finish(
        shared,
        partial(points_at, lane="known", native_id="n-next"),
        partial(runs_in, lane="known", native_id="n-next", runtime="rt-server", at=200.0),
        # Pointed elsewhere too, but its run was in the session before.
        partial(points_at, lane="disagrees-but-known", native_id="n-guess"),
        partial(runs_in, lane="disagrees-but-known", native_id="n-kept", runtime="rt-laptop", at=200.0),
    )
    assert shared.read(lambda connection: history(connection, "known")) == [
        (1, "n-known", "rt-laptop"),
        (2, "n-next", "rt-server"),
    ]
    assert shared.read(lambda connection: history(connection, "disagrees-but-known")) == [
        (1, "n-kept", "rt-laptop"),
        (2, "n-guess", UNKNOWN_RUNTIME),
    ]
    assert continued(shared, "known", "server").native_id == "n-next"


@pytest.mark.case("C11")
@pytest.mark.parametrize("pointer", ["n-guess", None])
def test_a_session_that_an_old_server_left_does_not_come_back(shared: Database, pointer: str | None) -> None:
    # In one go the upgrade would have known nothing of it; in two it stays on record, and is not gone back to.
    finish(shared, partial(points_at, lane="known", native_id=pointer))
    assert (1, "n-known", "rt-laptop") in shared.read(lambda connection: history(connection, "known"))
    assert continued(shared, "known", "laptop").outcome is Outcome.RESEED


@pytest.mark.case("C11")
def test_a_runtime_that_an_old_server_proved_meanwhile_is_known(shared: Database) -> None:
    # A heartbeat in a scope of its own has generations of its own.
    own_scope = partial(
        keeps, lane="disagrees", id="s-alone", scope_run="disagree-1", generation=7, native_id="n-alone"
    )
    finish(shared, own_scope, partial(runs_in, lane="disagrees", native_id="n-lost", runtime="rt-server", at=200.0))
    found = shared.read(lambda connection: lane_sessions(connection, LaneId("disagrees")))
    assert [(each.generation, each.runtime) for each in found] == [(2, "rt-server"), (1, None)]
    stands = select(sessions.c.generation).where(sessions.c.native_id == "n-lost", sessions.c.superseded == 0)
    assert shared.read(lambda connection: connection.execute(stands).scalars().all()) == [2]
    assert continued(shared, "disagrees", "server").outcome is Outcome.RESUME
    assert continued(shared, "disagrees", "laptop").outcome is Outcome.RESEED


def test_what_a_new_server_wrote_meanwhile_stands(shared: Database) -> None:
    goes_on = partial(keeps, lane="disagrees", id="s-new", generation=2, native_id="n-new", runtime_id="rt-laptop")
    finish(shared, goes_on, partial(runs_in, lane="disagrees", native_id="n-lost", runtime="rt-server", at=200.0))
    assert shared.read(lambda connection: history(connection, "disagrees")) == [
        (1, "n-lost", UNKNOWN_RUNTIME),
        (2, "n-new", "rt-laptop"),
    ]


def test_a_session_that_another_lane_holds_is_not_taken_from_it(shared: Database) -> None:
    finish(
        shared,
        partial(points_at, lane="ended", native_id="n-known"),
        partial(runs_in, lane="ended", native_id="n-known", runtime="rt-laptop", at=900.0),
    )
    assert shared.read(lambda connection: history(connection, "ended")) == [(1, "n-known", UNKNOWN_RUNTIME)]
    assert shared.read(lambda connection: history(connection, "known")) == [(1, "n-known", "rt-laptop")]


def test_after_the_second_step_an_old_program_is_refused(upgraded: Database) -> None:
    with pytest.raises(NewerThanProgram) as refused:
        upgraded.read(lambda connection: require(connection, program=1))
    assert refused.value.words == (
        "The database has schema 3 and needs a program that speaks 3 or later; this one speaks 1."
    )
    assert refused.value.remedy == "Use a newer Clew, or restore a backup from before the upgrade."


def test_before_the_first_step_this_program_is_refused(old: Database) -> None:
    with pytest.raises(OlderThanProgram, match="has schema 1; this program needs 3"):
        old.read(require)
    old.read(lambda connection: require(connection, program=1))


# ---------------------------------------------------------------- all or nothing


@pytest.mark.parametrize(
    "in_the_way",
    [
        # The first step makes one table and then fails at the second.
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
        old.write(upgrade).result(30)
    assert (old.read(rows), old.read(reflected)) == before
    assert old.read(read_version) == SchemaVersion(1, 1)


def test_a_caller_that_fails_after_an_upgrade_undoes_it(old: Database) -> None:
    def fails(connection: Connection) -> None:
        upgrade(connection)
        raise ValueError("no")

    before = old.read(rows), old.read(reflected)
    with pytest.raises(ValueError, match="no"):
        old.write(fails).result(30)
    assert (old.read(rows), old.read(reflected)) == before
