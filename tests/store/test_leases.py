"""Leases: a silent daemon's runs are kept for a while, then ended or queued again, depending on how far they came."""

from collections.abc import Callable
from dataclasses import replace

import pytest
from sqlalchemy import Connection

from clew.kernel import HELD_BY_AGENT, Evidence, Outcome, Patience, RunState, with_observed_work
from clew.protocol.control import Expired, Held, Renewed
from clew.protocol.orders import Order
from clew.store.engine.dialect import read_clock
from clew.store.operations.cancel import cancel_run
from clew.store.operations.leases import end_orphans, expire, mark_seen, renew
from clew.store.schema.tables import agents, runs, runtimes, threads, wakes
from tests.store.kit import ADA, ELSEWHERE, RUNTIME, TRANSIENT, Daemon, bodies, numbers, pin_of, said

HOUR = 3600.0


def now(daemon: Daemon) -> float:
    return daemon.database.read(read_clock)


def sweep(daemon: Daemon, listening_since: float = 0.0, patience: Patience | None = None) -> tuple[Expired, ...]:
    return daemon.write(lambda connection: expire(connection, listening_since, patience))


def lapse(daemon: Daemon, order: Order, ago: float = 1.0) -> None:
    daemon.put(runs, {"id": order.run}, lease_until=now(daemon) - ago)


def silent(daemon: Daemon, seconds: float) -> None:
    daemon.put(runtimes, {"id": RUNTIME}, seen_at=now(daemon) - seconds)


def renewed(daemon: Daemon, *held: Held) -> Renewed:
    return daemon.write(lambda connection: renew(connection, [RUNTIME], held, daemon.patience))


# ---------------------------------------------------------------- a claim whose answer was lost


@pytest.mark.case("R02")
def test_a_claim_whose_answer_was_lost_comes_back_after_its_lease_and_not_before(daemon: Daemon) -> None:
    accepted = daemon.say("one")
    order = daemon.claim_one()
    assert sweep(daemon) == ()
    assert daemon.claim() == ()
    lapse(daemon, order)
    (ended,) = sweep(daemon)
    assert (ended.run, ended.state) == (order.run, RunState.QUEUED)
    assert ended.why == "The daemon never confirmed the claim, and its lease has expired."
    wake = daemon.wake(accepted.wake)
    assert (wake.state, wake.run_id, wake.began) == ("pending", None, 0)
    again = daemon.claim_one()
    assert (again.run, again.attempt, bodies(again)) == (order.run, 2, ["one"])


@pytest.mark.case("R02")
def test_a_short_lease_is_over_soon(daemon: Daemon) -> None:
    daemon.say("one")
    hasty = replace(daemon, patience=Patience(lease=0.0))
    order = hasty.claim_one()
    (ended,) = sweep(daemon, patience=Patience(lease=0.0))
    assert ended.run == order.run


# ---------------------------------------------------------------- silence


@pytest.mark.case("R04")
def test_a_silent_runtime_keeps_its_run_until_its_grace_is_over(daemon: Daemon) -> None:
    accepted = daemon.say("one")
    order = daemon.claim_one()
    daemon.prompt(order, "n-1")
    lapse(daemon, order, ago=500)
    silent(daemon, 600)
    assert sweep(daemon) == ()
    assert daemon.run(order.run).state == "running"
    silent(daemon, 691)
    (ended,) = sweep(daemon)
    assert (ended.run, ended.state) == (order.run, RunState.LOST)
    assert daemon.run(order.run).outcome == "run:lease-lost"
    wake = daemon.wake(accepted.wake)
    assert (wake.state, wake.code, wake.began) == ("pending", "run:lease-lost", 1)
    daemon.answer(daemon.claim_one(), Evidence.CUT_OFF)
    again = daemon.claim_one()
    assert (again.plan.outcome, again.session, again.plan.already_told) == (Outcome.RESUME, order.session, (1,))


@pytest.mark.case("R04")
def test_a_server_that_was_away_itself_listens_before_it_gives_anybody_up(daemon: Daemon) -> None:
    daemon.say("one")
    order = daemon.claim_one()
    daemon.prompt(order, "n-1")
    lapse(daemon, order, ago=HOUR)
    silent(daemon, HOUR)
    assert sweep(daemon, listening_since=now(daemon) - 10) == ()
    assert daemon.report(order).held
    assert sweep(daemon, listening_since=now(daemon) - HOUR) == ()


@pytest.mark.case("R04")
def test_a_runtime_that_speaks_but_not_of_its_run_has_forgotten_it(daemon: Daemon) -> None:
    daemon.say("one")
    order = daemon.claim_one()
    daemon.prompt(order, "n-1")
    lapse(daemon, order)
    daemon.write(lambda connection: mark_seen(connection, [RUNTIME]))
    (ended,) = sweep(daemon)
    assert ended.state is RunState.LOST


def test_a_daemon_that_speaks_of_its_runs_keeps_them_and_hears_what_it_must_stop(daemon: Daemon) -> None:
    daemon.put(agents, {"id": ADA}, max_live=3)
    for thread in ("issue-7", "issue-8"):
        daemon.accept(thread=thread)
    one, two = daemon.claim(most=2)
    daemon.write(lambda connection: cancel_run(connection, two.run))
    for order in (one, two):
        lapse(daemon, order)
    said = renewed(daemon, Held(one.run, 1), Held(two.run, 1), Held(one.run, 7))
    assert (said.held, said.stop) == (frozenset({one.run, two.run}), frozenset({two.run}))
    assert sweep(daemon) == ()
    assert daemon.rows(runtimes, id=RUNTIME)[0].seen_at == pytest.approx(now(daemon), abs=60)
    assert renewed(daemon, Held(one.run, 2)).held == frozenset()


# ---------------------------------------------------------------- how far it had come


@pytest.mark.case("P09", "P19")
def test_a_lost_run_that_prompted_is_not_sent_again_before_its_store_was_asked(daemon: Daemon) -> None:
    accepted = daemon.say("one")
    order = daemon.claim_one()
    daemon.prompt(order)
    lapse(daemon, order)
    (ended,) = sweep(daemon, patience=Patience(offline_after=0.0, grace=0.0))
    assert (ended.state, daemon.run(order.run).outcome) == (RunState.LOST, "run:lease-lost")
    assert ended.why.startswith("First checking in the agent's own store whether it took the prompt:")
    wake = daemon.wake(accepted.wake)
    assert (wake.state, wake.code, wake.began) == ("pending", "run:lease-lost", 0)
    asks = daemon.claim_one()
    assert (asks.plan.outcome, [question.run for question in asks.questions]) == (Outcome.HOLD, [order.run])
    assert (bodies(asks), daemon.sessions()) == ([], [])


@pytest.mark.case("P12", "R05")
def test_a_daemon_that_was_started_anew_settles_its_runs_at_once_and_the_retry_resumes(daemon: Daemon) -> None:
    accepted = daemon.say("one")
    order = daemon.claim_one()
    daemon.prompt(order, "n-1")
    (ended,) = daemon.write(lambda connection: end_orphans(connection, "daemon-1", [RUNTIME]))
    assert (ended.run, ended.state) == (order.run, RunState.LOST)
    assert daemon.wake(accepted.wake).code == "run:daemon-restarted"
    daemon.answer(daemon.claim_one(), Evidence.CUT_OFF)
    again = daemon.claim_one()
    assert (again.plan.outcome, again.session) == (Outcome.RESUME, order.session)
    assert (again.plan.already_told, numbers(again)) == ((1,), [])
    daemon.prompt(again)
    daemon.finish(again)
    assert daemon.wake(accepted.wake).state == "served"


@pytest.mark.case("R05")
def test_what_a_restarted_daemon_still_holds_and_what_others_hold_is_left_alone(daemon: Daemon) -> None:
    daemon.put(agents, {"id": ADA}, max_live=5)
    for number in range(4):
        daemon.add(threads, id=f"t-{number}", kind="issue", created_at=0.0)
        daemon.accept(thread=f"t-{number}")
    other = replace(daemon, by="daemon-2")
    mine, kept, fenced = daemon.claim(most=3)
    theirs = other.claim_one()
    held = [Held(kept.run, 1), Held(fenced.run, 9)]
    ended = daemon.write(lambda connection: end_orphans(connection, "daemon-1", [RUNTIME], held))
    assert {each.run for each in ended} == {mine.run, fenced.run}
    assert {row.id for row in daemon.rows(runs, state="claimed")} == {kept.run, theirs.run}
    # Another of its runtimes is not this one's business.
    elsewhere = daemon.write(lambda connection: end_orphans(connection, "daemon-1", [ELSEWHERE]))
    assert elsewhere == ()


def test_a_run_whose_session_is_resumed_is_not_told_twice_after_it_was_lost_while_stopping(daemon: Daemon) -> None:
    daemon.say("one")
    daemon.serve("n-1")
    daemon.say("two")
    order = daemon.claim_one()
    daemon.prompt(order)
    daemon.write(lambda connection: cancel_run(connection, order.run))
    lapse(daemon, order)
    (ended,) = sweep(daemon, patience=Patience(offline_after=0.0, grace=0.0))
    assert (ended.state, daemon.run(order.run).outcome) == (RunState.CANCELLED, "run:by-user")
    daemon.say("three")
    daemon.answer(daemon.claim_one(), Evidence.CUT_OFF)
    assert bodies(daemon.claim_one()) == ["three"]


def test_runs_in_their_grace_do_not_hide_those_that_are_over(daemon: Daemon) -> None:
    for number in range(3):
        daemon.add(threads, id=f"t-{number}", kind="issue", created_at=0.0)
        daemon.accept(thread=f"t-{number}")
    daemon.put(agents, {"id": ADA}, max_live=3)
    kept = daemon.claim(most=2)
    for order in kept:
        daemon.prompt(order, f"n-{order.thread.id}")
        lapse(daemon, order, ago=50)
    silent(daemon, 60)
    over = daemon.claim_one()
    lapse(daemon, over)
    ended = daemon.write(lambda connection: expire(connection, 0.0, most=1))
    assert [each.run for each in ended] == [over.run]


# ---------------------------------------------------------------- killed at any point

STEPS: dict[str, Callable[[Daemon, Order], object]] = {
    "claimed": lambda _daemon, _order: None,
    "opened": lambda daemon, order: daemon.report(order, opens=True),
    "pinned": lambda daemon, order: daemon.report(order, opens=True, pin=pin_of(order.plan, "n-1")),
    "prompted": lambda daemon, order: daemon.prompt(order),
    "prompted and pinned": lambda daemon, order: daemon.prompt(order, "n-1"),
    "at work": lambda daemon, order: (daemon.prompt(order, "n-1"), daemon.report(order, tool_ran=True)),
    "stopping": lambda daemon, order: (
        daemon.prompt(order, "n-1"),
        daemon.write(lambda connection: cancel_run(connection, order.run)),
    ),
    "ended": lambda daemon, order: (daemon.prompt(order, "n-1"), daemon.finish(order)),
}


def restart(connection: Connection) -> object:
    return end_orphans(connection, "daemon-1", [RUNTIME])


def silence(connection: Connection) -> object:
    return expire(connection, 0.0, Patience(lease=0.0, offline_after=0.0, grace=0.0))


PROMPTED = ("prompted", "prompted and pinned", "at work", "stopping")
KNOWN = (Evidence.UNSENT, Evidence.TAKEN, Evidence.CUT_OFF, Evidence.FINISHED)
TRUTHS = [(step, truth) for step in STEPS for truth in (KNOWN if step in PROMPTED else (Evidence.UNSENT,))]
"""What the agent's own store holds of the prompt, however far the run was reported to have come."""


@pytest.mark.case("L01", "P19", "W07")
@pytest.mark.parametrize(("step", "truth"), TRUTHS)
@pytest.mark.parametrize("recover", [restart, silence])
def test_killed_at_any_point_no_wake_is_lost_and_none_is_served_twice(
    daemon: Daemon, step: str, truth: Evidence, recover: Callable[[Connection], object]
) -> None:
    daemon.say("one")
    order = daemon.claim_one()
    STEPS[step](daemon, order)
    daemon.say("two")
    if daemon.run(order.run).lease_until is not None:
        lapse(daemon, order)
    daemon.write(recover)
    assert [row for row in daemon.rows(runs) if row.lease_until is not None] == []
    first = daemon.rows(wakes, "accepted_at")[0].state
    expected = {"stopping": "cancelled", "ended": "served"}
    assert first == expected.get(step, "pending")
    # Whoever was thought dead is refused, and the queue drains.
    assert not daemon.finish(order, replace(TRANSIENT, heard=None)).taken
    told: list[str] = []
    while orders := daemon.claim():
        asks = bool(orders[0].questions)
        assert asks is (step in PROMPTED and daemon.run(order.run).evidence == "")
        told += bodies(orders[0])
        if asks:
            assert daemon.answer(orders[0], truth, "the answer").taken
            continue
        daemon.prompt(orders[0], orders[0].plan.native_id or "n-2")
        daemon.finish(orders[0])
    assert [row.state for row in daemon.rows(wakes, "accepted_at")] == [
        "served" if first == "pending" else first,
        "served",
    ]
    # Told once, whichever attempt it was: what its agent has taken already is not told it again.
    has_it = step == "ended" or (
        step in PROMPTED and with_observed_work(said(truth), step == "at work").evidence in HELD_BY_AGENT
    )
    assert told.count("two") == 1
    assert told.count("one") == (0 if has_it else 1)
    read_back = [row for row in daemon.rows(wakes) if row.code == "served:read-back"]
    assert [row.run_id for row in read_back] == (
        [order.run] if truth is Evidence.FINISHED and first == "pending" else []
    )
    assert all(row.state in ("succeeded", "lost", "cancelled") for row in daemon.rows(runs))


def test_a_session_that_was_pinned_before_the_prompt_is_resumed_and_told_everything(daemon: Daemon) -> None:
    daemon.say("one")
    order = daemon.claim_one()
    daemon.report(order, opens=True, pin=pin_of(order.plan, "n-1"))
    daemon.write(restart)
    again = daemon.claim_one()
    assert (again.run, again.plan.outcome, again.session) == (order.run, Outcome.RESUME, order.session)
    assert (again.plan.already_told, bodies(again)) == ((), ["one"])
