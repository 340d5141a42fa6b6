"""Moving a lane: its queued run goes along, a live run ends where it is, and no session is overwritten."""

from dataclasses import replace

import pytest

from clew.kernel import Evidence, LaneId, Outcome, RuntimeId
from clew.store.faults import NoSuchLane, NoSuchRuntime
from clew.store.operations.agents import change_agent
from clew.store.operations.leases import end_orphans
from clew.store.operations.moves import Moved, move_lane
from clew.store.operations.updates import AgentUpdate
from clew.store.schema.tables import runs, runtimes
from tests.store.kit import ADA, ELSEWHERE, LANE, RUNTIME, Daemon, bodies

GONE = "its machine is gone for good"


def move(daemon: Daemon, to: RuntimeId = ELSEWHERE, lane: LaneId = LANE) -> Moved:
    return daemon.write(lambda connection: move_lane(connection, lane, to, GONE))


@pytest.fixture
def other(daemon: Daemon) -> Daemon:
    return replace(daemon, runtime=ELSEWHERE, by="daemon-2")


@pytest.mark.case("R08")
def test_what_waits_for_a_runtime_that_is_gone_goes_on_elsewhere(daemon: Daemon, other: Daemon) -> None:
    daemon.say("one")
    daemon.serve("n-1")
    accepted = daemon.say("two")
    assert other.claim() == ()
    moved = move(daemon)
    (run,) = daemon.rows(runs, state="queued")
    assert (moved.before, moved.now, moved.run) == (None, ELSEWHERE, run.id)
    assert (run.runtime_id, run.words) == (ELSEWHERE, f"Moved to {ELSEWHERE}: {GONE}")
    assert daemon.claim() == ()
    order = other.claim_one()
    assert [wake.id for wake in order.wakes] == [accepted.wake]
    # Its session stayed behind; nothing is resumed that is not here.
    assert (order.plan.outcome, order.plan.reason.code) == (Outcome.RESEED, "archive:missing")
    assert bodies(order) == ["one", "done", "two"]
    other.prompt(order, "n-2")
    other.finish(order)
    assert daemon.sessions() == [(1, "n-1", "healthy"), (2, "n-2", "healthy")]
    daemon.say("three")
    assert other.claim_one().plan.native_id == "n-2"


@pytest.mark.case("R08")
def test_what_is_going_ends_where_it_is_and_what_follows_goes_along(daemon: Daemon, other: Daemon) -> None:
    daemon.say("one")
    order = daemon.claim_one()
    daemon.prompt(order, "n-1")
    assert move(daemon).run is None
    daemon.say("two")
    daemon.finish(order)
    assert daemon.claim() == ()
    assert other.claim_one().lane == LANE


@pytest.mark.case("R08")
def test_a_retry_goes_where_the_lane_was_put_and_not_to_the_machine_that_is_gone(daemon: Daemon, other: Daemon) -> None:
    daemon.say("one")
    order = daemon.claim_one()
    daemon.prompt(order, "n-1")
    move(daemon)
    daemon.write(lambda connection: end_orphans(connection, "daemon-1", [RUNTIME]))
    assert daemon.claim() == ()
    asks = other.claim_one()
    # The store that is asked is on the machine that the prompt went to.
    assert (asks.runtime, asks.questions[0].runtime) == (ELSEWHERE, RUNTIME)
    other.answer(asks, Evidence.UNSENT)
    after = other.claim_one()
    assert (after.runtime, after.plan.outcome) == (ELSEWHERE, Outcome.RESEED)


@pytest.mark.case("R08")
def test_what_went_back_to_the_queue_goes_where_its_lane_was_put_meanwhile(daemon: Daemon, other: Daemon) -> None:
    daemon.say("one")
    daemon.claim_one()
    assert move(daemon).run is None
    daemon.write(lambda connection: end_orphans(connection, "daemon-1", [RUNTIME]))
    assert daemon.claim() == ()
    assert other.claim_one().attempt == 2


@pytest.mark.case("R08")
def test_what_went_back_to_the_queue_goes_where_its_agent_was_put_meanwhile(daemon: Daemon, other: Daemon) -> None:
    daemon.say("one")
    daemon.claim_one()
    daemon.write(lambda connection: change_agent(connection, ADA, AgentUpdate(runtime=ELSEWHERE)))
    hints = daemon.database.subscribe()
    daemon.write(lambda connection: end_orphans(connection, "daemon-1", [RUNTIME]))
    assert f"queue:{ELSEWHERE}" in hints.wait(5)
    assert daemon.claim() == ()
    assert other.claim_one().attempt == 2


def test_what_held_a_run_where_it_was_does_not_hold_it_elsewhere(daemon: Daemon, other: Daemon) -> None:
    daemon.say("one")
    daemon.put(runs, {"lane_id": LANE}, hold="person", hold_code="place:unreachable")
    assert daemon.claim() == ()
    move(daemon)
    assert other.claim_one().lane == LANE


def test_a_retry_that_is_parked_stays_parked(daemon: Daemon, other: Daemon) -> None:
    daemon.say("one")
    daemon.put(runs, {"lane_id": LANE}, not_before=1e12)
    move(daemon)
    assert other.claim() == ()
    assert daemon.rows(runs)[0].not_before == 1e12


def test_moving_twice_is_moving_once(daemon: Daemon, other: Daemon) -> None:
    daemon.say("one")
    first, again = move(daemon), move(daemon)
    assert (first.run, again.run, again.before) == (first.run, first.run, ELSEWHERE)
    assert len(other.claim(most=5)) == 1


def test_what_is_not_there_is_named_and_nothing_moves(daemon: Daemon) -> None:
    with pytest.raises(NoSuchLane, match=f"There is no lane {LANE}"):
        move(daemon)
    daemon.say("one")
    for nowhere in ("rt-none", "unknown"):
        with pytest.raises(NoSuchRuntime, match=f"There is no runtime {nowhere}"):
            move(daemon, RuntimeId(nowhere))
    assert (daemon.lane().runtime_id, daemon.rows(runs)[0].runtime_id) == (None, RUNTIME)
    assert len(daemon.rows(runtimes, id="unknown")) == 1
