"""A person decides where no store can say whether a prompt was taken, and every retry asks the store first."""

import pytest

from clew.kernel import HUMAN, Evidence, FailureKind, Freshness, Outcome, WaitsFor, WakeReason
from clew.protocol.orders import Order
from clew.protocol.reports import Completed, Failed
from clew.protocol.wakes import Said
from clew.store.operations.evidence import attest_by_person
from clew.store.operations.journal import append
from clew.store.operations.leases import end_orphans
from clew.store.operations.retry import ask_again, go_now
from clew.store.schema.tables import runs, wakes
from tests.store.kit import (
    LANE,
    PERSON,
    RUNTIME,
    STOPPED,
    THREAD,
    TRANSIENT,
    Daemon,
    bodies,
    prompted_of,
    said,
    said_in,
)

UNSENT, TAKEN, CUT_OFF = Evidence.UNSENT, Evidence.TAKEN, Evidence.CUT_OFF
FINISHED, UNKNOWN = Evidence.FINISHED, Evidence.UNKNOWN
NATIVE = "n-1"


def lost(daemon: Daemon, session: str = "pinned") -> Order:
    """A run of an agent whose store tells nothing. Its session is pinned, or only named, or not even that."""
    daemon.put_capability("hears", False)
    daemon.say("one")
    order = daemon.claim_one()
    prompted = prompted_of(order, session=None) if session == "unnamed" else prompted_of(order, NATIVE)
    daemon.prompt(order, NATIVE if session == "pinned" else None, prompted=prompted)
    daemon.write(lambda connection: end_orphans(connection, daemon.by, [RUNTIME]))
    return order


def decided(daemon: Daemon, taken: bool) -> int:
    """As `clew retry --taken` does it, or `--not-taken`."""

    def decide(connection: object) -> int:
        about = attest_by_person(connection, LANE, taken)  # type: ignore[arg-type]
        go_now(connection, LANE, THREAD)  # type: ignore[arg-type]
        return about

    return daemon.write(decide)


def retried(daemon: Daemon, order: Order) -> list[str]:
    """As `clew retry` does it: the wakes that are asked for once more."""
    return daemon.write(
        lambda connection: [
            each.wake for each in ask_again(connection, order.run, HUMAN, only_unserved=True, resume=None)
        ]
    )


def held_for_a_person(daemon: Daemon) -> bool:
    (waiting,) = daemon.rows(runs, state="queued")
    return (waiting.hold, waiting.hold_code) == (WaitsFor.PERSON.value, "prompt:unknown")


# ---------------------------------------------------------------- a person decides


@pytest.mark.case("P20")
@pytest.mark.parametrize("session", ["pinned", "named", "unnamed"])
def test_a_prompt_that_a_person_says_was_not_taken_goes_out_again_in_full(daemon: Daemon, session: str) -> None:
    order = lost(daemon, session)
    assert daemon.claim() == ()
    assert held_for_a_person(daemon)
    assert decided(daemon, taken=False) == 1
    run = daemon.run(order.run)
    assert (run.evidence, run.evidence_words) == ("unsent", "a person said that it was not taken")
    after = daemon.claim_one()
    assert (after.questions, after.plan.already_told, bodies(after)) == ((), (), ["one"])
    assert (after.plan.outcome is Outcome.RESUME) is (session == "pinned")
    assert after.plan.notices == ()
    daemon.prompt(after, NATIVE)
    daemon.finish(after)
    assert [row.state for row in daemon.rows(wakes)] == ["served"]


@pytest.mark.case("P20")
@pytest.mark.parametrize("session", ["pinned", "named"])
def test_a_prompt_that_a_person_says_was_taken_is_gone_on_with(daemon: Daemon, session: str) -> None:
    order = lost(daemon, session)
    assert daemon.claim() == ()
    assert decided(daemon, taken=True) == 1
    run = daemon.run(order.run)
    assert (run.evidence, run.evidence_words) == ("taken", "a person said that it was taken")
    after = daemon.claim_one()
    assert (after.plan.outcome, after.plan.native_id) == (Outcome.RESUME, NATIVE)
    assert (after.plan.already_told, bodies(after)) == ((1,), [])
    # Nobody knows that its turn was cut off.
    assert after.plan.notices == ()


@pytest.mark.case("P20", "W07")
@pytest.mark.parametrize("more", [False, True])
def test_a_prompt_that_was_taken_by_a_session_without_a_name_is_asked_for_no_more(daemon: Daemon, more: bool) -> None:
    order = lost(daemon, "unnamed")
    later = daemon.say("two") if more else None
    assert daemon.claim() == ()
    assert decided(daemon, taken=True) == 1
    wake = daemon.wake(order.wakes[0].id)
    assert (wake.state, wake.code) == ("cancelled", "cancelled:by-user")
    if later is None:
        assert (daemon.claim(), daemon.rows(runs, state="queued")) == ((), [])
        return
    after = daemon.claim_one()
    assert ([each.id for each in after.wakes], after.plan.act_on) == ([later.wake], (2,))


@pytest.mark.case("P20")
@pytest.mark.parametrize("taken", [True, False])
def test_where_everything_is_known_there_is_nothing_to_decide(daemon: Daemon, taken: bool) -> None:
    order = lost(daemon)
    assert decided(daemon, taken=True) == 1
    kept = daemon.run(order.run)
    assert decided(daemon, taken) == 0
    assert daemon.run(order.run) == kept


@pytest.mark.case("P20")
@pytest.mark.parametrize("taken", [True, False])
def test_a_person_may_decide_before_the_store_was_asked_to_the_last(daemon: Daemon, taken: bool) -> None:
    daemon.say("one")
    order = daemon.claim_one()
    daemon.prompt(order, NATIVE)
    daemon.write(lambda connection: end_orphans(connection, daemon.by, [RUNTIME]))
    asks = daemon.claim_one()
    daemon.answer(asks, UNKNOWN)
    assert decided(daemon, taken) == 1
    run = daemon.run(order.run)
    assert (run.evidence, run.evidence_asked) == ("taken" if taken else "unsent", 1)
    after = daemon.claim_one()
    assert (after.questions, bodies(after)) == ((), [] if taken else ["one"])


@pytest.mark.case("P20")
def test_a_plain_retry_asks_the_store_as_if_for_the_first_time(daemon: Daemon) -> None:
    daemon.say("one")
    order = daemon.claim_one()
    daemon.prompt(order, NATIVE)
    daemon.write(lambda connection: end_orphans(connection, daemon.by, [RUNTIME]))
    daemon.put(runs, {"id": order.run}, evidence="unknown", evidence_asked=99)
    assert daemon.claim() == ()
    assert held_for_a_person(daemon)
    daemon.write(lambda connection: go_now(connection, LANE, THREAD))
    assert daemon.run(order.run).evidence_asked == 0
    asks = daemon.claim_one()
    assert [question.run for question in asks.questions] == [order.run]


@pytest.mark.case("P20")
def test_a_plain_retry_does_not_send_what_only_a_person_can_tell_of(daemon: Daemon) -> None:
    lost(daemon)
    assert daemon.claim() == ()
    daemon.write(lambda connection: go_now(connection, LANE, THREAD))
    assert daemon.claim() == ()
    assert held_for_a_person(daemon)


# ---------------------------------------------------------------- the daemon comes back after all


@pytest.mark.case("C35", "P20", "R07")
def test_a_late_end_of_an_agent_whose_store_tells_nothing_is_enough(daemon: Daemon) -> None:
    order = lost(daemon, "unnamed")
    assert daemon.claim() == ()
    assert not daemon.finish(order, Completed("the answer")).taken
    assert daemon.database.read(said_in) == [(1, "one"), (2, "the answer")]
    assert [(row.state, row.run_id) for row in daemon.rows(wakes)] == [("served", order.run)]
    assert (daemon.claim(), daemon.rows(runs, state="queued")) == ((), [])


@pytest.mark.case("P19", "P20", "R07")
@pytest.mark.parametrize("end", [TRANSIENT, STOPPED])
def test_what_a_daemon_says_late_of_its_prompt_lets_the_lane_go_on(daemon: Daemon, end: Failed) -> None:
    order = lost(daemon)
    assert daemon.claim() == ()
    assert not daemon.finish(order, end).taken
    run = daemon.run(order.run)
    assert (run.state, run.evidence, run.evidence_words) == ("lost", "cut-off", "the store says cut-off")
    after = daemon.claim_one()
    assert (after.questions, after.plan.already_told, bodies(after)) == ((), (1,), [])


@pytest.mark.case("P20", "R07")
def test_a_late_end_that_knows_nothing_changes_nothing(daemon: Daemon) -> None:
    order = lost(daemon)
    assert daemon.claim() == ()
    kept = daemon.rows(runs)
    assert not daemon.finish(order, Failed(FailureKind.CRASHED, "it died")).taken
    assert daemon.rows(runs) == kept


# ---------------------------------------------------------------- asked for once more before it was known


def gave_up(daemon: Daemon, **demand: object) -> Order:
    """A run that failed for good, and nobody asked what became of its prompt."""
    daemon.say("one", **demand)
    order = daemon.claim_one()
    daemon.prompt(order, None, prompted=prompted_of(order, NATIVE))
    daemon.finish(order, Failed(FailureKind.PERMANENT, "no such model"))
    assert daemon.wake(order.wakes[0].id).state == "cancelled"
    return order


@pytest.mark.case("P09", "P19", "P20")
@pytest.mark.parametrize("demand", [{}, {"freshness": Freshness.FRESH}, {"reason": WakeReason.ASSIGNMENT}], ids=str)
@pytest.mark.parametrize("evidence", [UNSENT, TAKEN, CUT_OFF])
def test_a_retry_of_what_nobody_knows_of_asks_first_and_sends_nothing_twice(
    daemon: Daemon, evidence: Evidence, demand: dict[str, object]
) -> None:
    order = gave_up(daemon, **demand)
    (again,) = retried(daemon, order)
    asks = daemon.claim_one()
    assert [question.run for question in asks.questions] == [order.run]
    daemon.answer(asks, evidence)
    after = daemon.claim_one()
    assert [wake.id for wake in after.wakes] == [again]
    if evidence is UNSENT:
        assert (after.plan.already_told, bodies(after)) == ((), ["one"])
    else:
        assert (after.plan.outcome, after.plan.native_id) == (Outcome.RESUME, NATIVE)
        assert (after.plan.already_told, bodies(after)) == ((1,), [])


@pytest.mark.case("C35", "P19", "W07")
def test_a_retry_of_what_had_finished_is_served_by_the_reply_that_is_read_back(daemon: Daemon) -> None:
    order = gave_up(daemon)
    (again,) = retried(daemon, order)
    asks = daemon.claim_one()
    daemon.answer(asks, FINISHED, "the answer")
    row = daemon.wake(again)  # type: ignore[arg-type]
    assert (row.state, row.code, row.run_id) == ("served", "served:read-back", order.run)
    assert daemon.wake(order.wakes[0].id).state == "cancelled", "what has ended stays as it was"
    assert daemon.database.read(said_in) == [(1, "one"), (2, "the answer")]
    assert (daemon.run(asks.run).state, daemon.claim()) == ("succeeded", ())


# ---------------------------------------------------------------- what was never told


@pytest.mark.case("C25", "P19")
@pytest.mark.parametrize("evidence", [UNSENT, CUT_OFF])
def test_a_session_that_was_never_captured_is_spoken_of_only_where_something_was_told(
    daemon: Daemon, evidence: Evidence
) -> None:
    daemon.write(lambda connection: append(connection, THREAD, Said(PERSON, "before", 1)))
    daemon.say("one")
    order = daemon.claim_one()
    assert (order.plan.outcome, order.plan.reason.code) == (Outcome.RESEED, "lane:first")
    daemon.prompt(order, None, prompted=prompted_of(order, session=None))
    daemon.finish(order, Failed(FailureKind.TRANSIENT, "it died", heard=said(evidence)))
    daemon.say("two")
    after = daemon.claim_one()
    assert after.plan.outcome is Outcome.RESEED
    assert after.plan.reason.code == ("session:never-captured" if evidence is CUT_OFF else "lane:first")
