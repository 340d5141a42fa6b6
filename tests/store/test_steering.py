"""Steering a live run: messages are carried before they are sent, seen once taken, and never lost."""

from functools import partial
from typing import Any

import pytest

from clew.kernel import AdmissionPolicy, Evidence, Freshness, Outcome, Overlap, RunOutcome
from clew.protocol.orders import Order
from clew.protocol.reports import Asked, Completed, Finish, Report, Steer, Steered, Stopped
from clew.protocol.wakes import Accepted, Said
from clew.store.operations.cancel import cancel_run, cancel_wake
from clew.store.operations.finish import finish
from clew.store.operations.journal import append
from clew.store.operations.leases import end_orphans, expire
from clew.store.operations.report import report
from clew.store.operations.steering import steerable_run
from clew.store.operations.wakes import accept_wake
from clew.store.schema.tables import runs, runtimes, sessions, wakes
from tests.store.kit import (
    AT_ONCE,
    LANE,
    PERSON,
    RUNTIME,
    STOPPED,
    THREAD,
    TRANSIENT,
    Daemon,
    bodies,
    overlapping,
    request,
    sent,
)


def steer(daemon: Daemon, text: str, **changes: Any) -> Accepted:
    asked = request(said=Said(PERSON, text, len(text)), **changes)
    policy = AdmissionPolicy(overlap=Overlap.STEER)
    return daemon.write(lambda connection: accept_wake(connection, asked, policy))


def going(daemon: Daemon, native: str = "n-1") -> Order:
    """A run whose turn is going, and that was told the first entry."""
    daemon.say("one")
    order = daemon.claim_one()
    assert daemon.prompt(order, native).may_prompt
    return order


def asked_for(daemon: Daemon, order: Order) -> Steer:
    steer = daemon.report(order, steers=True).steer
    assert steer is not None
    return steer


def told(steer: Steer) -> list[str]:
    return [entry.body for entry in steer.entries]


def receipt(daemon: Daemon, accepted: Accepted) -> tuple[str, str, str | None]:
    row = daemon.wake(accepted.wake)
    return row.state, row.code, row.run_id


def seen(daemon: Daemon) -> int:
    (row,) = daemon.rows(sessions)
    return int(row.seen)


@pytest.mark.case("W13")
def test_what_is_taken_is_served_by_the_run_and_not_told_again(daemon: Daemon) -> None:
    order = going(daemon)
    said = steer(daemon, "two")
    assert (said.code, receipt(daemon, said)) == ("accepted:steered", ("pending", "accepted:steered", None))
    found = asked_for(daemon, order)
    assert ([wake.id for wake in found.wakes], told(found), found.after, found.through) == ([said.wake], ["two"], 1, 2)
    assert receipt(daemon, said) == ("claimed", "carried:steering", order.run)
    # Before the agent took it the session has not seen it.
    assert daemon.run(order.run).told == 1
    daemon.report(order, steered=Steered(True, found.through))
    assert receipt(daemon, said) == ("claimed", "carried:steered", order.run)
    assert daemon.run(order.run).told == 2
    daemon.finish(order)
    assert receipt(daemon, said) == ("served", "served:by-run", order.run)
    # Its own reply is the third, and seen as well.
    assert seen(daemon) == 3
    assert daemon.claim() == ()
    daemon.say("three")
    after = daemon.claim_one()
    assert (after.plan.outcome, bodies(after), after.plan.act_on) == (Outcome.RESUME, ["three"], (4,))


@pytest.mark.case("W13")
def test_what_is_refused_is_the_next_runs_exactly_once(daemon: Daemon) -> None:
    order = going(daemon)
    said = steer(daemon, "two")
    found = asked_for(daemon, order)
    for _ in range(2):
        daemon.report(order, steered=Steered(False, found.through))
        assert receipt(daemon, said) == ("pending", "accepted:not-steered", None)
    # It is not tried again within this turn.
    assert daemon.report(order, steers=True).steer is None
    daemon.finish(order)
    assert seen(daemon) == 1
    after = daemon.claim_one()
    assert ([wake.id for wake in after.wakes], bodies(after)) == ([said.wake], ["two", "done"])
    daemon.prompt(after)
    daemon.finish(after)
    assert receipt(daemon, said) == ("served", "served:by-run", after.run)
    assert daemon.claim() == ()


@pytest.mark.case("W13")
def test_an_answer_that_was_lost_comes_again_and_carries_nothing_twice(daemon: Daemon) -> None:
    order = going(daemon)
    steer(daemon, "two")
    first = asked_for(daemon, order)
    later = steer(daemon, "three")
    assert asked_for(daemon, order) == first
    assert receipt(daemon, later)[1] == "accepted:steered"
    for _ in range(2):
        daemon.report(order, steered=Steered(True, first.through))
    assert told(asked_for(daemon, order)) == ["three"]


@pytest.mark.case("W13")
def test_nothing_in_between_is_left_out(daemon: Daemon) -> None:
    order = going(daemon)
    queued = daemon.say("two")
    daemon.write(lambda connection: append(connection, THREAD, Said(PERSON, "beside", 1)))
    fresh = daemon.say("anew", freshness=Freshness.FRESH)
    said = steer(daemon, "three")
    later = daemon.say("four")
    found = asked_for(daemon, order)
    assert told(found) == ["two", "beside", "anew", "three"]
    assert [wake.id for wake in found.wakes] == [queued.wake, said.wake]
    assert [receipt(daemon, each)[0] for each in (fresh, later)] == ["pending", "pending"]
    daemon.report(order, steered=Steered(True, found.through))
    daemon.finish(order)
    assert seen(daemon) == 5
    after = daemon.claim_one()
    # A fresh start has its own words, whoever else was told them.
    assert (after.plan.outcome, after.plan.act_on) == (Outcome.BLANK, (4, 6))


@pytest.mark.case("W13")
def test_nothing_is_told_before_the_prompt_nor_while_the_run_is_stopped(daemon: Daemon) -> None:
    daemon.say("one")
    order = daemon.claim_one()
    said = steer(daemon, "two")
    assert daemon.report(order, opens=True, steers=True).steer is None
    daemon.prompt(order, "n-1", opens=False)
    daemon.write(lambda connection: cancel_run(connection, order.run))
    assert daemon.report(order, steers=True).steer is None
    daemon.finish(order, STOPPED)
    assert receipt(daemon, said)[0] == "pending"
    assert [wake.id for wake in daemon.claim_one().wakes] == [said.wake]


@pytest.mark.case("W13")
def test_a_run_that_waits_for_a_person_is_told_all_the_same(daemon: Daemon) -> None:
    order = going(daemon)
    daemon.report(order, asks=(Asked("ap-1", "May I?"),))  # type: ignore[arg-type]
    steer(daemon, "two")
    assert told(asked_for(daemon, order)) == ["two"]
    assert daemon.run(order.run).state == "waiting"


@pytest.mark.case("W13")
@pytest.mark.parametrize("taken", [False, True])
def test_when_the_daemon_is_gone_it_goes_the_way_of_the_runs_other_wakes(daemon: Daemon, taken: bool) -> None:
    order = going(daemon)
    said = steer(daemon, "two")
    found = asked_for(daemon, order)
    if taken:
        daemon.report(order, steered=Steered(True, found.through))
    daemon.write(lambda connection: end_orphans(connection, daemon.by, [RUNTIME]))
    assert receipt(daemon, said) == ("pending", "run:daemon-restarted", None)
    assert seen(daemon) == 0
    daemon.answer(daemon.claim_one(), Evidence.CUT_OFF, steered=Evidence.UNSENT)
    assert seen(daemon) == (2 if taken else 1)
    after = daemon.claim_one()
    assert (after.plan.act_on, after.plan.already_told) == ((1, 2), (1, 2) if taken else (1,))
    assert bodies(after) == ([] if taken else ["two"])
    # The other one speaks no more of it.
    assert daemon.report(order, steered=Steered(True, found.through)).held is False
    assert daemon.run(after.run).told == 0


@pytest.mark.case("W13")
def test_a_failed_run_takes_what_it_was_told_along_into_the_next_try(daemon: Daemon) -> None:
    order = going(daemon)
    said = steer(daemon, "two")
    daemon.report(order, steered=Steered(True, asked_for(daemon, order).through))
    daemon.finish(order, TRANSIENT)
    assert receipt(daemon, said)[:2] == ("pending", "run:retrying")
    assert seen(daemon) == 2


@pytest.mark.case("W13")
@pytest.mark.parametrize("why", [RunOutcome.BY_USER, RunOutcome.STOPPED])
@pytest.mark.parametrize("became", ["taken", "refused", "unknown", "lost"])
def test_a_person_who_stops_the_run_ends_what_its_agent_took_and_the_next_run_has_the_rest(
    daemon: Daemon, why: RunOutcome, became: str
) -> None:
    order = going(daemon)
    said = steer(daemon, "two")
    found = asked_for(daemon, order)
    daemon.write(lambda connection: cancel_run(connection, order.run, why))
    assert receipt(daemon, said) == ("claimed", "carried:steering", order.run), "only its daemon knows"
    if became in ("taken", "refused"):
        for _ in range(2):
            daemon.report(order, steered=Steered(became == "taken", found.through))
    if became == "lost":
        daemon.write(lambda connection: end_orphans(connection, daemon.by, [RUNTIME]))
    else:
        daemon.finish(order, STOPPED)
    if became == "taken":
        assert receipt(daemon, said) == ("cancelled", "cancelled:by-user", order.run)
        assert (daemon.claim(), seen(daemon)) == ((), 2)
        return
    code = "run:daemon-restarted" if became == "lost" else "accepted:not-steered"
    assert receipt(daemon, said) == ("pending", code, None)
    if became != "refused":
        # Whether it was told cannot be known without asking.
        daemon.answer(daemon.claim_one(), Evidence.CUT_OFF, steered=Evidence.UNSENT)
    after = daemon.claim_one()
    assert ([wake.id for wake in after.wakes], after.plan.act_on, bodies(after)) == ([said.wake], (2,), ["two"])


@pytest.mark.case("W13")
@pytest.mark.parametrize("why", [RunOutcome.CLOSED, RunOutcome.REASSIGNED])
def test_who_takes_the_thread_away_ends_what_is_being_told_with_all_else(daemon: Daemon, why: RunOutcome) -> None:
    order = going(daemon)
    said = steer(daemon, "two")
    found = asked_for(daemon, order)
    daemon.write(lambda connection: cancel_run(connection, order.run, why))
    daemon.report(order, steered=Steered(False, found.through))
    daemon.finish(order, Stopped())
    assert receipt(daemon, said)[:2] == ("cancelled", why.code.replace("run:", "cancelled:"))
    assert daemon.claim() == ()


@pytest.mark.case("W13")
@pytest.mark.parametrize("others", [False, True])
def test_a_run_that_ends_without_a_word_of_it_has_not_served_it(daemon: Daemon, others: bool) -> None:
    order = going(daemon)
    said = steer(daemon, "two")
    asked_for(daemon, order)
    if others:
        daemon.say("three")
    daemon.finish(order)
    assert receipt(daemon, said) == ("pending", "accepted:not-steered", None)
    assert said.wake in [wake.id for wake in daemon.claim_one().wakes]


@pytest.mark.case("W13")
def test_what_interrupts_leaves_what_was_taken_to_the_next_run(daemon: Daemon) -> None:
    order = going(daemon)
    said = steer(daemon, "two")
    found = asked_for(daemon, order)
    daemon.write(lambda connection: cancel_run(connection, order.run, RunOutcome.INTERRUPTED))
    daemon.report(order, steered=Steered(True, found.through))
    daemon.finish(order, STOPPED)
    assert receipt(daemon, said)[0] == "pending"
    after = daemon.claim_one()
    assert (after.plan.already_told, bodies(after)) == ((1, 2), [])


@pytest.mark.case("W13")
def test_only_a_run_whose_agent_can_is_steered(daemon: Daemon) -> None:
    def found() -> str | None:
        return daemon.write(lambda connection: steerable_run(connection, LANE))

    assert found() is None
    daemon.say("one")
    assert found() is None, "one that is queued is not going"
    order = daemon.claim_one()
    assert found() is None, "its agent cannot"
    daemon.put_capability("steers", True)
    assert found() == order.run
    daemon.put(runs, {"id": order.run}, scope_run=order.run)
    assert found() is None, "it is in a context of its own"
    daemon.put(runs, {"id": order.run}, scope_run="")
    daemon.write(lambda connection: cancel_run(connection, order.run))
    assert found() is None, "it is being stopped"


@pytest.mark.case("W13")
@pytest.mark.parametrize("first", ["steer", "finish"])
def test_the_end_of_the_run_and_the_asking_meet(daemon: Daemon, first: str) -> None:
    """Whichever is first: the wake is carried by exactly one of two runs."""
    order = going(daemon)
    said = steer(daemon, "two")
    asks = partial(report, said=Report(order.run, order.attempt, steers=True))
    ends = partial(finish, said=Finish(order.run, order.attempt, Completed("done")))
    acts = (asks, ends) if first == "steer" else (ends, asks)
    one, two = overlapping(daemon.database, *acts)
    reported = (one if first == "steer" else two).result(30)
    (two if first == "steer" else one).result(30)
    if first == "steer":
        # A daemon never ends a run while it is telling; were it to, the agent was told nothing.
        assert reported.steer is not None
    else:
        assert reported.steer is None
    assert receipt(daemon, said)[0] == "pending"
    assert [wake.id for wake in daemon.claim_one().wakes] == [said.wake]


@pytest.mark.case("W13")
@pytest.mark.parametrize("first", ["steer", "cancel"])
def test_taking_a_wake_back_and_telling_it_meet(daemon: Daemon, first: str) -> None:
    order = going(daemon)
    said = steer(daemon, "two")
    asks = partial(report, said=Report(order.run, order.attempt, steers=True))
    back = partial(cancel_wake, wake=said.wake)
    one, two = overlapping(daemon.database, *((asks, back) if first == "steer" else (back, asks)))
    reported, cancelled = (one, two) if first == "steer" else (two, one)
    assert (reported.result(30).steer is None) == cancelled.result(30).taken
    assert receipt(daemon, said)[0] == ("claimed" if first == "steer" else "cancelled")


@pytest.mark.case("W13")
def test_a_lease_that_is_over_lets_go_of_it(daemon: Daemon) -> None:
    order = going(daemon)
    said = steer(daemon, "two")
    asked_for(daemon, order)
    daemon.put(runs, {"id": order.run}, lease_until=1.0)
    daemon.put(runtimes, {"id": RUNTIME}, seen_at=1.0)
    (ended,) = daemon.write(lambda connection: expire(connection, 0.0, AT_ONCE))
    assert (ended.run, receipt(daemon, said)[0]) == (order.run, "pending")
    daemon.answer(daemon.claim_one(), Evidence.CUT_OFF, steered=Evidence.UNSENT)
    assert bodies(daemon.claim_one()) == ["two"]


@pytest.mark.case("W13")
def test_a_report_that_asks_for_nothing_takes_no_statement_more(daemon: Daemon) -> None:
    order = going(daemon)
    steer(daemon, "two")
    plain = partial(report, said=Report(order.run, order.attempt))
    _, statements = sent(daemon.database, plain)
    assert len(statements) == 1
    assert daemon.rows(wakes, state="pending")
