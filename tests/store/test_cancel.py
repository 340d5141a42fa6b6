"""Cancelling a run, a wake, or a lane whose thread was reassigned: one outcome each, also under concurrency."""

import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from threading import Barrier, Event
from typing import Any

import pytest
from sqlalchemy import Connection
from sqlalchemy import text as sql

from clew.kernel import Outcome, RunId, RunOutcome, RunState, WakeEnd, WakeId, WakeState
from clew.protocol.orders import Order
from clew.protocol.reports import Completed, Failed, Returned, Stopped
from clew.store.engine.statement import POSTGRESQL
from clew.store.faults import NoSuchRun, NoSuchWake
from clew.store.operations.cancel import Cancelled, cancel_run, cancel_wake, end_pending, open_run, reassign
from clew.store.schema.tables import runs
from tests.store.kit import ADA, BOB, BOBS_LANE, LANE, STOPPED, THREAD, TRANSIENT, Daemon, bodies, pin_of, states


def cancelled(daemon: Daemon, run: RunId, why: RunOutcome = RunOutcome.BY_USER) -> Cancelled:
    return daemon.write(lambda connection: cancel_run(connection, run, why))


@pytest.fixture
def order(daemon: Daemon) -> Order:
    daemon.say("one")
    return daemon.claim_one()


# ---------------------------------------------------------------- a run


def test_a_run_that_waits_ends_at_once_with_what_it_waited_for(daemon: Daemon) -> None:
    for text in ("one", "two"):
        daemon.say(text)
    (run,) = daemon.rows(runs)
    answer = cancelled(daemon, run.id)
    assert (answer.taken, answer.state, answer.words) == (True, RunState.CANCELLED, "It was cancelled.")
    assert daemon.database.read(states) == [("cancelled", "cancelled:by-user")] * 2
    assert (daemon.run(run.id).outcome, daemon.claim()) == ("run:by-user", ())
    # The lane is free again.
    daemon.say("three")
    assert daemon.claim_one().plan.act_on == (3,)


@pytest.mark.parametrize("end", [Stopped(), STOPPED, Completed("too late"), TRANSIENT, Returned("x", "x")])
def test_a_run_that_is_going_is_told_to_stop_and_ends_for_that_reason(
    daemon: Daemon, order: Order, end: Completed | Failed | Returned | Stopped
) -> None:
    answer = cancelled(daemon, order.run)
    assert (answer.taken, answer.state) == (True, RunState.STOPPING)
    assert daemon.database.read(states) == [("cancelled", "cancelled:by-user")]
    later = daemon.say("two")
    assert daemon.claim() == ()
    finished = daemon.finish(order, end)
    assert (finished.taken, finished.state) == (True, RunState.CANCELLED)
    run = daemon.run(order.run)
    assert (run.outcome, run.words) == ("run:by-user", "It was cancelled.")
    after = daemon.claim_one()
    assert [wake.id for wake in after.wakes] == [later.wake]
    assert daemon.run(after.run).tries == 0


def test_a_run_that_has_ended_stays_as_it_ended(daemon: Daemon, order: Order) -> None:
    daemon.prompt(order, "n-1")
    daemon.finish(order)
    answer = cancelled(daemon, order.run)
    assert (answer.taken, answer.state) == (False, RunState.SUCCEEDED)
    assert answer.words == f"Run {order.run} has already ended as succeeded."
    assert daemon.database.read(states) == [("served", "served:by-run")]


def test_the_first_reason_to_stop_stands(daemon: Daemon, order: Order) -> None:
    cancelled(daemon, order.run, RunOutcome.CLOSED)
    assert cancelled(daemon, order.run).state is RunState.STOPPING
    daemon.finish(order, Stopped())
    run = daemon.run(order.run)
    assert (run.outcome, run.words) == ("run:closed", "The thread was closed.")
    assert daemon.database.read(states) == [("cancelled", "cancelled:closed")]


@pytest.mark.case("L03")
def test_a_run_cancelled_after_its_session_was_pinned_leaves_it_to_the_next_turn(daemon: Daemon, order: Order) -> None:
    daemon.prompt(order, "n-1")
    cancelled(daemon, order.run)
    daemon.finish(order, STOPPED)
    daemon.say("two")
    after = daemon.claim_one()
    assert (after.plan.outcome, after.session) == (Outcome.RESUME, order.session)
    assert bodies(after) == ["two"]


def test_an_interrupted_run_hands_its_wakes_to_the_next(daemon: Daemon, order: Order) -> None:
    daemon.prompt(order, "n-1")
    later = daemon.say("stop, do this instead")
    answer = cancelled(daemon, order.run, RunOutcome.INTERRUPTED)
    assert answer.state is RunState.STOPPING
    first = order.wakes[0].id
    assert (daemon.wake(first).state, daemon.wake(first).code) == ("pending", "run:interrupted")
    assert daemon.claim() == ()
    daemon.finish(order, STOPPED)
    after = daemon.claim_one()
    assert [wake.id for wake in after.wakes] == [first, later.wake]
    assert (after.session, after.plan.already_told) == (order.session, (1,))


def test_an_interruption_of_a_run_that_waits_ends_no_wake(daemon: Daemon) -> None:
    accepted = daemon.say("one")
    (run,) = daemon.rows(runs)
    cancelled(daemon, run.id, RunOutcome.INTERRUPTED)
    assert daemon.wake(accepted.wake).state == "pending"
    assert [wake.id for wake in daemon.claim_one().wakes] == [accepted.wake]


def test_a_run_that_is_not_there_is_named(daemon: Daemon) -> None:
    with pytest.raises(NoSuchRun, match="There is no run nothing"):
        cancelled(daemon, RunId("nothing"))


# ---------------------------------------------------------------- a wake


def test_a_wake_that_was_not_taken_yet_can_be_cancelled_alone(daemon: Daemon) -> None:
    one, two = daemon.say("one"), daemon.say("two")
    answer = daemon.write(lambda connection: cancel_wake(connection, one.wake))
    assert (answer.taken, answer.state, answer.words) == (True, WakeState.CANCELLED, "It was cancelled.")
    order = daemon.claim_one()
    assert [wake.id for wake in order.wakes] == [two.wake]


def test_with_its_last_wake_a_run_ends_that_waited_for_it(daemon: Daemon) -> None:
    accepted = daemon.say("one")
    daemon.write(lambda connection: cancel_wake(connection, accepted.wake))
    (run,) = daemon.rows(runs)
    assert (run.state, run.outcome) == ("cancelled", "run:by-user")
    assert daemon.claim() == ()


def test_a_wake_that_is_being_served_or_has_ended_is_left_alone(daemon: Daemon, order: Order) -> None:
    wake = order.wakes[0].id
    answer = daemon.write(lambda connection: cancel_wake(connection, wake))
    assert (answer.taken, answer.state, answer.words) == (False, WakeState.CLAIMED, f"Taken by run {order.run}.")
    daemon.prompt(order, "n-1")
    daemon.finish(order)
    answer = daemon.write(lambda connection: cancel_wake(connection, wake))
    assert (answer.taken, answer.state) == (False, WakeState.SERVED)


def test_a_wake_that_is_not_there_is_named(daemon: Daemon) -> None:
    with pytest.raises(NoSuchWake, match="There is no wake 'nothing'"):
        daemon.write(lambda connection: cancel_wake(connection, WakeId("nothing")))


# ---------------------------------------------------------------- a lane that changes hands


@pytest.mark.case("W06")
def test_a_thread_that_changes_hands_ends_what_its_former_agent_was_still_to_do(daemon: Daemon) -> None:
    mine = daemon.say("one")
    theirs = daemon.say("two", agent=BOB)
    assert daemon.write(lambda connection: reassign(connection, THREAD, ADA, BOB)) == 1
    wake = daemon.wake(mine.wake)
    assert (wake.state, wake.code) == ("cancelled", "cancelled:reassigned")
    assert wake.words == "The thread was assigned to another agent."
    (run,) = daemon.rows(runs, lane_id=LANE)
    assert (run.state, run.outcome) == ("cancelled", "run:reassigned")
    order = daemon.claim_one()
    assert (order.lane, [each.id for each in order.wakes]) == (BOBS_LANE, [theirs.wake])


@pytest.mark.case("W06")
def test_a_run_that_is_going_goes_on_when_its_thread_changes_hands(daemon: Daemon, order: Order) -> None:
    pending = daemon.say("two")
    assert daemon.write(lambda connection: reassign(connection, THREAD, ADA, BOB)) == 1
    assert daemon.wake(pending.wake).code == "cancelled:reassigned"
    daemon.prompt(order, "n-1")
    daemon.finish(order)
    assert daemon.wake(order.wakes[0].id).state == "served"
    assert daemon.claim() == ()


def test_a_thread_that_stays_with_its_agent_loses_nothing(daemon: Daemon) -> None:
    daemon.say("one")
    assert daemon.write(lambda connection: reassign(connection, THREAD, ADA, ADA)) == 0
    assert len(daemon.claim()) == 1


def test_a_closed_thread_ends_what_is_pending_in_it(daemon: Daemon) -> None:
    daemon.say("one")
    ended = daemon.write(lambda connection: end_pending(connection, LANE, WakeEnd.CLOSED, RunOutcome.CLOSED))
    assert ended == 1
    assert daemon.database.read(states) == [("cancelled", "cancelled:closed")]
    assert daemon.write(lambda connection: end_pending(connection, LANE, WakeEnd.CLOSED, RunOutcome.CLOSED)) == 0


# ---------------------------------------------------------------- at the same moment

ENDS: dict[str, Callable[[Daemon, Order], Any]] = {
    "completed": lambda daemon, order: daemon.finish(order, Completed("done")),
    "completed and pinned": lambda daemon, order: daemon.finish(
        order, Completed("done"), pin=pin_of(order.plan, "n-1")
    ),
    "failed": lambda daemon, order: daemon.finish(order, TRANSIENT),
    "stopped": lambda daemon, order: daemon.finish(order, STOPPED),
}


@pytest.mark.case("L03")
@pytest.mark.parametrize("how", ENDS)
def test_a_cancellation_and_an_end_at_the_same_moment_have_one_outcome(daemon: Daemon, how: str) -> None:
    with ThreadPoolExecutor(2) as pool:
        for number in range(6):
            daemon.say(f"entry {number}")
            order = daemon.claim_one()
            daemon.prompt(order, None if "pinned" in how else "n-1")
            both = Barrier(2)

            def end(order: Order = order, both: Barrier = both) -> Any:
                both.wait(10)
                return ENDS[how](daemon, order)

            def cancel(order: Order = order, both: Barrier = both) -> Cancelled:
                both.wait(10)
                return cancelled(daemon, order.run)

            ended, asked = pool.submit(end), pool.submit(cancel)
            finished, answer = ended.result(30), asked.result(30)
            assert finished.taken
            run, wake = daemon.run(order.run), daemon.wake(order.wakes[0].id)
            assert run.state in ("succeeded", "failed", "cancelled")
            # Either the cancellation came first, and the end completed it, or it came too late and changed nothing.
            assert answer.taken == (run.outcome == "run:by-user")
            assert (wake.state == "cancelled") == (answer.taken or how == "stopped")
            if wake.state == "pending":
                daemon.write(partial(cancel_wake, wake=wake.id))


def test_many_cancellations_at_once_are_one(daemon: Daemon, order: Order) -> None:
    daemon.prompt(order, "n-1")
    answers = [daemon.database.write(lambda connection: cancel_run(connection, order.run)) for _ in range(8)]
    assert {answer.result(30).state for answer in answers} == {RunState.STOPPING}
    assert daemon.finish(order, Stopped()).state is RunState.CANCELLED


@pytest.mark.parametrize("address", [POSTGRESQL], indirect=True)
def test_who_waits_for_a_run_that_is_replaced_meanwhile_finds_the_one_in_its_place(daemon: Daemon) -> None:
    daemon.say("one")
    (queued,) = daemon.rows(runs)
    replaced, may_end = Event(), Event()

    def replaces(connection: Connection) -> None:
        cancel_run(connection, queued.id, RunOutcome.INTERRUPTED)
        replaced.set()
        may_end.wait(60)

    def waits() -> bool:
        asked = sql("SELECT count(*) FROM pg_locks WHERE NOT granted")
        return bool(daemon.database.read(lambda connection: connection.execute(asked).scalar_one()))

    replacing = daemon.database.write(replaces)
    try:
        assert replaced.wait(30)
        found = daemon.database.write(lambda connection: open_run(connection, LANE))
        limit = time.monotonic() + 30
        while not waits():
            assert time.monotonic() < limit, "it does not wait for the lock"
    finally:
        may_end.set()
    replacing.result(30)
    row = found.result(30)
    assert row is not None
    assert (row["id"] != queued.id, row["state"]) == (True, "queued")
