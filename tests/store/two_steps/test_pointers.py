"""How a pointer becomes a session: its runtime is taken from a run that proves it, or stays unknown."""

import json
from dataclasses import replace
from functools import partial

import pytest
from sqlalchemy import text

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
    RuntimeId,
    Session,
    decide,
    write_cursor,
)
from clew.store.engine.database import Database, Operation
from clew.store.operations.rows import read_session
from clew.store.schema.version import SchemaVersion
from tests.kernel.kit import WORKTREE, here, situation
from tests.store.two_steps.kit import (
    UNKNOWN,
    adds_session,
    history,
    points_at,
    runs_in,
    sessions,
    taken_over,
    upgrade_to_2,
)

SINCE = dict.fromkeys(("archive_format", "archive_seen", "archive_turns", "archive_state", "busy_with", "credential"))
"""What today's rows say besides; schema 2 did not know it."""


@pytest.mark.case("C11")
def test_a_runtime_is_taken_only_from_a_run_that_was_in_the_session(upgraded: Database) -> None:
    found = {lane: row["runtime_id"] for lane, row in upgraded.read(taken_over).items()}
    assert found == {
        "known": "rt-laptop",
        "newest-of-its-own": "rt-server",
        # Its newest run was on the server, in another session.
        "disagrees": UNKNOWN,
        "disagrees-but-known": "rt-laptop",
        "shared-older": UNKNOWN,
        "shared-newer": "rt-laptop",
        "no-directory": UNKNOWN,
        "half-a-directory": UNKNOWN,
        "no-run": UNKNOWN,
        # A run that waits was in no session.
        "only-queued": UNKNOWN,
        "began-anew": "rt-laptop",
        "other-provider": "rt-laptop",
    }


def candidates(database: Database, lane: str) -> list[Session]:
    """The lane's sessions as the kernel is given them, newest first."""
    found = database.read(lambda connection: sessions(connection, lane))
    return [read_session({**row, **SINCE, "cut_off": 0}) for row in reversed(found)]


def continued(database: Database, lane: str, machine: str) -> Plan:
    """What the kernel decides when that machine claims the lane."""
    floor = text("SELECT floor_generation, floor_entry FROM lanes WHERE id = :lane")
    generation, entry = database.read(lambda connection: connection.execute(floor, {"lane": lane}).one())
    return decide(
        situation(
            candidates(database, lane),
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
    old.write(upgrade_to_2).result(30)
    row = old.read(taken_over)["half-a-directory"]
    assert (row["native_id"], row["runtime_id"], row["directory"]) == ("n-half", UNKNOWN, "/")


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
    # The last run of `known` failed, so its entries will be handed over again.
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
    asked = text("SELECT s.lane_id FROM runs r JOIN sessions s ON s.id = r.session_id WHERE r.id = :run")

    def session_of(run: str) -> list[str]:
        return upgraded.read(lambda connection: list(connection.execute(asked, {"run": run}).scalars()))

    assert session_of("known-1") == session_of("known-2") == ["known"]
    assert (session_of("older-1"), session_of("newer-1")) == (["shared-older"], ["shared-newer"])
    assert session_of("kept-2") == session_of("queued-1") == session_of("ended-1") == []


# ---------------------------------------------------------------- between the two steps


def finish(database: Database, *written: Operation[None]) -> None:
    """Servers write these between the two steps; then the second step runs."""
    for operation in written:
        database.write(operation).result(30)
    assert database.write(upgrade_to_2).result(30) == SchemaVersion(2, 2)


@pytest.mark.case("C11")
def test_a_pointer_that_an_old_server_moved_is_one_more_generation(shared: Database) -> None:
    finish(
        shared,
        partial(points_at, lane="known", native_id="n-next"),
        partial(runs_in, lane="known", native_id="n-next", runtime="rt-server", at=200.0),
        # Moved as well, but its run was in the session before.
        partial(points_at, lane="disagrees-but-known", native_id="n-guess"),
        partial(runs_in, lane="disagrees-but-known", native_id="n-kept", runtime="rt-laptop", at=200.0),
    )
    assert shared.read(lambda connection: history(connection, "known")) == [
        (1, "n-known", "rt-laptop"),
        (2, "n-next", "rt-server"),
    ]
    assert shared.read(lambda connection: history(connection, "disagrees-but-known")) == [
        (1, "n-kept", "rt-laptop"),
        (2, "n-guess", UNKNOWN),
    ]
    assert continued(shared, "known", "server").native_id == "n-next"


@pytest.mark.case("C11")
@pytest.mark.parametrize("pointer", ["n-guess", None])
def test_a_session_that_an_old_server_left_does_not_come_back(shared: Database, pointer: str | None) -> None:
    # An upgrade in one go would not have known it. In two steps it stays on record, and the lane does not return to it.
    finish(shared, partial(points_at, lane="known", native_id=pointer))
    assert (1, "n-known", "rt-laptop") in shared.read(lambda connection: history(connection, "known"))
    assert continued(shared, "known", "laptop").outcome is Outcome.RESEED


@pytest.mark.case("C11")
def test_a_runtime_that_an_old_server_proved_meanwhile_is_known(shared: Database) -> None:
    # A heartbeat in its own scope has its own generations.
    own_scope = partial(
        adds_session, lane="disagrees", id="s-alone", scope_run="disagree-1", generation=7, native_id="n-alone"
    )
    finish(shared, own_scope, partial(runs_in, lane="disagrees", native_id="n-lost", runtime="rt-server", at=200.0))
    found = candidates(shared, "disagrees")
    assert [(each.generation, each.runtime) for each in found] == [(2, "rt-server"), (1, None)]
    stands = text("SELECT generation FROM sessions WHERE native_id = 'n-lost' AND superseded = 0")
    assert shared.read(lambda connection: connection.execute(stands).scalars().all()) == [2]
    assert continued(shared, "disagrees", "server").outcome is Outcome.RESUME
    assert continued(shared, "disagrees", "laptop").outcome is Outcome.RESEED


def test_what_a_new_server_wrote_meanwhile_stands(shared: Database) -> None:
    goes_on = partial(
        adds_session, lane="disagrees", id="s-new", generation=2, native_id="n-new", runtime_id="rt-laptop"
    )
    finish(shared, goes_on, partial(runs_in, lane="disagrees", native_id="n-lost", runtime="rt-server", at=200.0))
    assert shared.read(lambda connection: history(connection, "disagrees")) == [
        (1, "n-lost", UNKNOWN),
        (2, "n-new", "rt-laptop"),
    ]


def test_a_session_that_another_lane_holds_is_not_taken_from_it(shared: Database) -> None:
    finish(
        shared,
        partial(points_at, lane="ended", native_id="n-known"),
        partial(runs_in, lane="ended", native_id="n-known", runtime="rt-laptop", at=900.0),
    )
    assert shared.read(lambda connection: history(connection, "ended")) == [(1, "n-known", UNKNOWN)]
    assert shared.read(lambda connection: history(connection, "known")) == [(1, "n-known", "rt-laptop")]
