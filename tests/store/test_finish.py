"""The end of a run: its session, the journal, its wakes and the next run, all or nothing."""

from dataclasses import replace

import pytest

from clew.kernel import Attestation as Said
from clew.kernel import (
    Evidence,
    FailureKind,
    Freshness,
    Origin,
    OriginKind,
    Outcome,
    RetryPolicy,
    RetryStep,
    RunState,
    WaitsFor,
    WakeReason,
)
from clew.protocol.reports import Completed, Failed, Returned, Stopped, Usage
from clew.store.engine.dialect import read_clock
from clew.store.schema.tables import agents, journal, runs, sessions, wakes
from tests.store.kit import (
    ADA,
    BOB,
    ELSEWHERE,
    LANE,
    PERMANENT,
    RUNTIME,
    STOPPED,
    THREAD,
    TRANSIENT,
    Daemon,
    bodies,
    numbers,
    prompted_of,
    said,
    said_in,
    states,
)

OUTSIDE = Origin(OriginKind.OUTSIDE)
LIMIT = Failed(FailureKind.USAGE_LIMIT, "5 hours are used up", heard=said(Evidence.CUT_OFF))


def now(daemon: Daemon) -> float:
    return daemon.database.read(read_clock)


def come_back(daemon: Daemon) -> None:
    """The delay of a retry is over."""
    daemon.put(runs, {"state": "queued"}, not_before=None)
    daemon.put(wakes, {"state": "pending"}, not_before=None)


# ---------------------------------------------------------------- a turn that was completed


@pytest.mark.case("V02")
@pytest.mark.parametrize("reply", [None, "", " \n"])
def test_a_run_that_completed_without_a_reply_says_so(daemon: Daemon, reply: str | None) -> None:
    accepted = daemon.say("one")
    order = daemon.claim_one()
    daemon.prompt(order, "n-1")
    end = Completed(reply)
    assert daemon.finish(order, end).state is RunState.SUCCEEDED
    run = daemon.run(order.run)
    assert (run.outcome, run.words) == ("run:no-reply", "The agent finished its turn without a reply.")
    assert daemon.wake(accepted.wake).state == "served"
    # Reported once more, it is the same end.
    assert daemon.finish(order, end).taken


def test_a_completed_run_answers_in_the_thread_and_serves_its_wakes(daemon: Daemon) -> None:
    accepted = daemon.say("one")
    order = daemon.claim_one()
    daemon.prompt(order, "n-1")
    usage = Usage(turns=2, tokens=300, size=4096, model="large", mode="read")
    finished = daemon.finish(order, Completed("the answer", 10, usage))
    assert (finished.taken, finished.state, finished.reply) == (True, RunState.SUCCEEDED, 2)
    assert daemon.database.read(said_in) == [(1, "one"), (2, "the answer")]
    (_, reply) = daemon.rows(journal, "seq")
    assert (reply.author_kind, reply.author_name, reply.agent_id) == ("agent", "ada", ADA)
    assert (reply.provider, reply.run_id, reply.size) == ("loom", order.run, 10)
    wake, run = daemon.wake(accepted.wake), daemon.run(order.run)
    assert (wake.state, wake.code, wake.run_id) == ("served", "served:by-run", order.run)
    assert wake.words == f"Run {order.run} served it."
    assert (run.outcome, run.words) == ("run:answered", "The agent finished its turn.")
    assert run.lease_until is None
    (kept,) = daemon.rows(sessions)
    assert (kept.turns, kept.tokens, kept.size, kept.model, kept.mode) == (2, 300, 4096, "large", "read")
    assert kept.seen == 2
    assert kept.proven_at == pytest.approx(now(daemon), abs=60)


def test_a_run_that_says_nothing_leaves_no_entry(daemon: Daemon) -> None:
    daemon.say("one")
    order = daemon.claim_one()
    daemon.prompt(order, "n-1")
    assert daemon.finish(order, Completed(None)).reply is None
    assert daemon.database.read(said_in) == [(1, "one")]


@pytest.mark.parametrize("end", [Completed("done"), TRANSIENT, PERMANENT, STOPPED])
def test_the_same_end_told_twice_is_taken_once(daemon: Daemon, end: Completed | Failed | Stopped) -> None:
    daemon.say("one")
    order = daemon.claim_one()
    daemon.prompt(order, "n-1")
    first = daemon.finish(order, end)
    before = daemon.rows(wakes), daemon.rows(runs), daemon.rows(sessions), daemon.rows(journal, "seq")
    again = daemon.finish(order, end)
    assert (again.taken, again.state) == (True, first.state)
    assert before == (daemon.rows(wakes), daemon.rows(runs), daemon.rows(sessions), daemon.rows(journal, "seq"))


def test_a_claim_given_back_twice_is_given_back_once(daemon: Daemon) -> None:
    daemon.say("one")
    order = daemon.claim_one()
    returned = Returned("the disk is full", "workspace:disk-full")
    first, again = daemon.finish(order, returned), daemon.finish(order, returned)
    assert (first.taken, again.taken) == (True, True)
    assert daemon.run(order.run).state == "queued"


def test_of_two_ends_the_first_wins(daemon: Daemon) -> None:
    daemon.say("one")
    order = daemon.claim_one()
    daemon.prompt(order, "n-1")
    daemon.finish(order)
    other = daemon.finish(order, PERMANENT)
    assert (other.taken, other.state) == (False, RunState.SUCCEEDED)
    assert other.words == f"Run {order.run} has already ended as succeeded; fail comes too late."
    assert daemon.database.read(states) == [("served", "served:by-run")]


# ---------------------------------------------------------------- failures


@pytest.mark.case("W08")
def test_an_event_whose_run_failed_is_pending_again(daemon: Daemon) -> None:
    accepted = daemon.say("one", reason=WakeReason.EVENT, origin=OUTSIDE)
    order = daemon.claim_one()
    daemon.report(order, opens=True)
    finished = daemon.finish(order, TRANSIENT)
    assert finished.state is RunState.FAILED
    wake = daemon.wake(accepted.wake)
    assert (wake.state, wake.code, wake.run_id, wake.began) == ("pending", "run:retrying", None, 0)
    assert wake.words.startswith("Failed. Trying again ")
    come_back(daemon)
    again = daemon.claim_one()
    assert [each.id for each in again.wakes] == [accepted.wake]
    assert bodies(again) == ["one"]


@pytest.mark.case("L06")
def test_a_transient_failure_is_tried_again_later_in_the_same_session(daemon: Daemon) -> None:
    accepted = daemon.say("one")
    order = daemon.serve("n-1", TRANSIENT)
    run = daemon.run(order.run)
    assert (run.state, run.outcome) == ("failed", "run:retrying")
    (queued,) = daemon.rows(runs, state="queued")
    wait = queued.not_before - now(daemon)
    assert 1.5 < wait <= 5.0
    assert daemon.wake(accepted.wake).not_before == queued.not_before
    assert daemon.claim() == ()
    come_back(daemon)
    again = daemon.claim_one()
    assert (again.plan.outcome, again.session) == (Outcome.RESUME, order.session)
    # It has the prompt: it is asked to go on, and told nothing twice.
    assert (again.plan.already_told, numbers(again)) == ((1,), [])
    daemon.prompt(again)
    daemon.finish(again)
    assert daemon.wake(accepted.wake).state == "served"


@pytest.mark.case("L06")
def test_every_failure_waits_longer_and_the_last_is_given_up(daemon: Daemon) -> None:
    accepted = daemon.say("one")
    waits = []
    for _ in range(4):
        daemon.serve("n-1", TRANSIENT)
        (queued,) = daemon.rows(runs, state="queued")
        waits.append(queued.not_before - now(daemon))
        come_back(daemon)
    # Half of each delay is jitter at most, so each is longer than the one before last.
    assert all(later > earlier for earlier, later in zip(waits, waits[2:], strict=False))
    order = daemon.serve("n-1", TRANSIENT)
    wake = daemon.wake(accepted.wake)
    assert (wake.state, wake.code) == ("cancelled", "cancelled:gave-up")
    assert "Tried 5 times, which is the limit: the provider was overloaded" in wake.words
    assert daemon.run(order.run).outcome == "run:gave-up"
    assert daemon.claim() == ()


@pytest.mark.case("L06")
def test_a_permanent_failure_is_not_tried_again_and_says_why(daemon: Daemon) -> None:
    accepted = daemon.say("one")
    order = daemon.serve("n-1", PERMANENT)
    wake, run = daemon.wake(accepted.wake), daemon.run(order.run)
    assert (wake.state, wake.code) == ("cancelled", "cancelled:gave-up")
    assert wake.words == "Given up: the prompt is too long"
    assert run.words == "Failed, not retrying: the prompt is too long"
    assert daemon.rows(runs, state="queued") == []


def test_what_came_during_a_run_that_was_given_up_has_all_its_tries_before_it(daemon: Daemon) -> None:
    daemon.say("one")
    for _ in range(4):
        daemon.serve("n-1", TRANSIENT)
        come_back(daemon)
    order = daemon.claim_one()
    daemon.prompt(order)
    accepted = daemon.say("two")
    daemon.finish(order, TRANSIENT)
    after = daemon.claim_one()
    assert ([wake.id for wake in after.wakes], daemon.run(after.run).tries) == ([accepted.wake], 0)


@pytest.mark.case("P09", "P19")
@pytest.mark.parametrize("kind", [FailureKind.TRANSIENT, FailureKind.CRASHED, FailureKind.UNKNOWN])
def test_a_prompt_that_was_taken_by_a_session_nobody_can_find_again_is_not_sent_a_second_time(
    daemon: Daemon, kind: FailureKind
) -> None:
    accepted = daemon.say("one")
    order = daemon.claim_one()
    daemon.prompt(order, prompted=prompted_of(order, session=None))
    daemon.finish(order, Failed(kind, "it died", heard=said(Evidence.TAKEN)))
    wake = daemon.wake(accepted.wake)
    assert (wake.state, wake.code) == ("cancelled", "cancelled:gave-up")
    assert wake.words == "Given up: The agent took the prompt, so it is not sent again: it died"
    assert daemon.claim() == ()
    # A person may ask again; what was said before is history.
    daemon.say("again, please")
    order = daemon.claim_one()
    assert (order.plan.act_on, bodies(order)) == ((2,), ["one", "again, please"])


@pytest.mark.case("P09", "P19", "P20")
@pytest.mark.parametrize("kind", [FailureKind.TRANSIENT, FailureKind.CRASHED, FailureKind.UNKNOWN])
@pytest.mark.parametrize("heard", [None, said(Evidence.UNKNOWN)])
def test_a_prompt_of_which_nobody_knows_is_not_sent_before_the_store_was_asked(
    daemon: Daemon, kind: FailureKind, heard: Said | None
) -> None:
    accepted = daemon.say("one")
    order = daemon.serve(None, Failed(kind, "it died", heard=heard))
    wake = daemon.wake(accepted.wake)
    words = "First checking in the agent's own store whether it took the prompt: it died"
    assert (wake.state, wake.code) == ("pending", "run:retrying")
    assert (wake.words, wake.not_before) == (f"Failed. {words}", None)
    asks = daemon.claim_one()
    assert [question.run for question in asks.questions] == [order.run]
    assert (asks.plan.outcome, asks.plan.reason.code, bodies(asks)) == (Outcome.HOLD, "prompt:unheard", [])


@pytest.mark.case("W05")
def test_a_person_who_asks_for_a_lane_with_a_parked_retry_gets_both_at_once(daemon: Daemon) -> None:
    retried = daemon.say("event", reason=WakeReason.EVENT, origin=OUTSIDE)
    daemon.serve("n-1", TRANSIENT)
    assert daemon.claim() == ()
    mine = daemon.say("now, please")
    order = daemon.claim_one()
    assert [wake.id for wake in order.wakes] == [retried.wake, mine.wake]
    daemon.prompt(order)
    daemon.finish(order)
    assert daemon.claim() == ()
    assert {row.state for row in daemon.rows(wakes)} == {"served"}


@pytest.mark.case("W05")
def test_a_machine_that_asks_for_such_a_lane_leaves_the_retry_parked(daemon: Daemon) -> None:
    retried = daemon.say("event", reason=WakeReason.EVENT, origin=OUTSIDE)
    daemon.serve("n-1", TRANSIENT)
    other = daemon.say("another", reason=WakeReason.EVENT, origin=OUTSIDE)
    order = daemon.claim_one()
    assert [wake.id for wake in order.wakes] == [other.wake]
    daemon.prompt(order)
    daemon.finish(order)
    (queued,) = daemon.rows(runs, state="queued")
    assert queued.not_before == daemon.wake(retried.wake).not_before
    assert daemon.claim() == ()


@pytest.mark.case("L10")
def test_a_usage_limit_holds_until_it_is_reset_and_a_person_may_go_earlier(daemon: Daemon) -> None:
    reset = now(daemon) + 3600
    accepted = daemon.say("one", reason=WakeReason.EVENT, origin=OUTSIDE)
    order = daemon.claim_one()
    daemon.prompt(order, "n-1")
    finished = daemon.finish(order, replace(LIMIT, reset_at=reset))
    assert finished.retry is not None
    assert finished.retry.step is RetryStep.HOLD
    wake = daemon.wake(accepted.wake)
    # Spread over two minutes, so that not all come back at once.
    assert reset <= wake.not_before <= reset + 120
    assert "for the usage limit to reset: 5 hours are used up" in wake.words
    assert daemon.claim() == ()
    daemon.say("try now")
    again = daemon.claim_one()
    assert (len(again.wakes), again.session) == (2, order.session)


@pytest.mark.case("L10")
def test_a_usage_limit_that_is_too_far_off_is_given_up_with_the_reason(daemon: Daemon) -> None:
    accepted = daemon.say("one")
    daemon.serve("n-1", replace(LIMIT, reset_at=now(daemon) + 30 * 86_400))
    wake = daemon.wake(accepted.wake)
    assert (wake.state, wake.code) == ("cancelled", "cancelled:gave-up")
    assert "too long to wait unasked" in wake.words


@pytest.mark.case("L10")
def test_the_tries_against_a_usage_limit_are_bounded(daemon: Daemon) -> None:
    accepted = daemon.say("one")
    limits = RetryPolicy(outage_tries=2)
    for _ in range(2):
        order = daemon.claim_one()
        daemon.prompt(order, "n-1")
        daemon.finish(order, replace(LIMIT, reset_at=now(daemon) - 1), policy=limits)
        if daemon.rows(runs, state="queued"):
            come_back(daemon)
    assert daemon.wake(accepted.wake).code == "cancelled:gave-up"


@pytest.mark.case("C19")
def test_a_poisoned_session_is_never_chosen_again_and_an_older_healthy_one_is(daemon: Daemon) -> None:
    daemon.say("one")
    daemon.serve("n-1")
    switch = daemon.say("two")
    order = daemon.claim_one()
    daemon.prompt(order, "n-2")
    daemon.finish(order, replace(TRANSIENT, poisons=True))
    assert daemon.sessions() == [(1, "n-1", "healthy"), (2, "n-2", "poisoned")]
    assert daemon.wake(switch.wake).state == "pending"
    come_back(daemon)
    again = daemon.claim_one()
    assert (again.plan.outcome, again.plan.native_id) == (Outcome.RESUME, "n-1")
    assert {step.code for step in again.plan.trace} >= {"session:poisoned", "session:fits"}


@pytest.mark.case("C20")
def test_a_poisoned_session_that_completes_a_turn_is_healthy_again(daemon: Daemon) -> None:
    daemon.say("one")
    order = daemon.serve("n-1")
    daemon.say("two")
    second = daemon.claim_one()
    daemon.put(sessions, {"id": order.session}, state="poisoned")
    daemon.prompt(second)
    daemon.finish(second)
    assert daemon.sessions() == [(1, "n-1", "healthy")]


# ---------------------------------------------------------------- given back, stopped


@pytest.mark.parametrize(("waits", "held"), [(WaitsFor.ANOTHER_TRY, 30), (WaitsFor.SESSION_FREE, 5)])
def test_a_claim_that_is_given_back_is_looked_at_again_after_a_while(
    daemon: Daemon, waits: WaitsFor, held: int
) -> None:
    accepted = daemon.say("one")
    order = daemon.claim_one()
    daemon.report(order, opens=True)
    finished = daemon.finish(order, Returned("the agent could not be asked", "probe:unreachable", waits))
    assert finished.state is RunState.QUEUED
    run, wake = daemon.run(order.run), daemon.wake(accepted.wake)
    assert (run.hold, run.hold_code, run.words) == (waits.value, "probe:unreachable", "the agent could not be asked")
    assert run.not_before == pytest.approx(now(daemon) + held, abs=5)
    assert (wake.state, wake.code) == ("pending", "run:returned")
    assert daemon.claim() == ()
    daemon.put(runs, {"id": order.run}, not_before=None)
    again = daemon.claim_one()
    assert (again.run, again.attempt) == (order.run, 2)
    assert daemon.run(order.run).hold == ""


def test_a_claim_that_waits_for_a_person_waits_until_somebody_speaks(daemon: Daemon) -> None:
    daemon.say("one")
    order = daemon.claim_one()
    daemon.finish(order, Returned("its branch is gone", "place:branch-gone", WaitsFor.PERSON))
    assert daemon.run(order.run).not_before is None
    assert daemon.claim() == ()
    daemon.say("use a new one")
    again = daemon.claim_one()
    assert (again.run, len(again.wakes)) == (order.run, 2)


def test_a_run_that_has_prompted_cannot_be_given_back(daemon: Daemon) -> None:
    daemon.say("one")
    order = daemon.claim_one()
    daemon.prompt(order, "n-1")
    finished = daemon.finish(order, Returned("changed my mind", "x"))
    assert (finished.taken, finished.state) == (False, RunState.RUNNING)
    assert daemon.database.read(states) == [("claimed", "carried:by-run")]


def test_a_run_that_was_stopped_at_the_agent_ends_its_wakes_and_the_lane_goes_on(daemon: Daemon) -> None:
    accepted = daemon.say("one")
    order = daemon.claim_one()
    daemon.prompt(order, "n-1")
    later = daemon.say("two")
    finished = daemon.finish(order, STOPPED)
    assert finished.state is RunState.CANCELLED
    wake = daemon.wake(accepted.wake)
    assert (wake.state, wake.code) == ("cancelled", "cancelled:by-user")
    after = daemon.claim_one()
    assert ([each.id for each in after.wakes], after.session) == ([later.wake], order.session)
    # What was told is told, whoever stopped it.
    assert bodies(after) == ["two"]


# ---------------------------------------------------------------- what follows


@pytest.mark.case("W07")
@pytest.mark.parametrize("end", [Completed("done"), TRANSIENT, PERMANENT, STOPPED, Stopped(), LIMIT])
@pytest.mark.parametrize("native", ["n-1", None])
def test_every_wake_of_a_run_ends_once_or_is_pending_with_a_run(
    daemon: Daemon, end: Completed | Failed | Stopped, native: str | None
) -> None:
    for text in ("one", "two"):
        daemon.say(text)
    order = daemon.claim_one()
    daemon.prompt(order, native)
    daemon.say("three")
    daemon.finish(order, end)
    found = daemon.rows(wakes, "accepted_at")
    assert len(found) == 3
    assert found[0].state == found[1].state
    assert found[0].state in ("served", "cancelled", "pending")
    assert all((row.ended_at is None) == (row.state == "pending") for row in found)
    assert all(row.code and row.words for row in found)
    assert found[2].state == "pending"
    (queued,) = daemon.rows(runs, state="queued")
    assert queued.lane_id == LANE


def test_the_next_run_goes_where_its_agent_is_unless_it_has_begun(daemon: Daemon) -> None:
    daemon.say("one")
    order = daemon.claim_one()
    daemon.prompt(order, "n-1")
    daemon.say("two")
    daemon.put(agents, {"id": ADA}, runtime_id=ELSEWHERE)
    daemon.finish(order)
    (queued,) = daemon.rows(runs, state="queued")
    assert queued.runtime_id == ELSEWHERE


@pytest.mark.case("L06")
def test_a_retry_stays_where_its_session_is_although_its_agent_has_moved(daemon: Daemon) -> None:
    daemon.say("one")
    order = daemon.claim_one()
    daemon.prompt(order, "n-1")
    daemon.put(agents, {"id": ADA}, runtime_id=ELSEWHERE)
    daemon.finish(order, TRANSIENT)
    (queued,) = daemon.rows(runs, state="queued")
    assert queued.runtime_id == RUNTIME


def test_two_agents_of_a_thread_answer_in_one_journal(daemon: Daemon) -> None:
    daemon.say("both of you")
    daemon.accept(agent=BOB, said=None)
    first, second = daemon.claim(most=2)
    for order in (first, second):
        daemon.prompt(order, f"n-{order.agent.id}")
    for order in (second, first):
        daemon.finish(order, Completed(f"{order.agent.id} here"))
    assert daemon.database.read(lambda connection: said_in(connection, THREAD)) == [
        (1, "both of you"),
        (2, "bob here"),
        (3, "ada here"),
    ]
    daemon.say("ada again")
    # Bob's answer stands between what she was told and her own.
    assert bodies(daemon.claim_one()) == ["bob here", "ada here", "ada again"]


@pytest.mark.case("L06", "L11")
@pytest.mark.parametrize(("tool_ran", "cut_off"), [(False, 0), (True, 1)])
def test_after_an_outage_only_a_turn_that_ran_a_tool_is_said_to_be_cut_off(
    daemon: Daemon, tool_ran: bool, cut_off: int
) -> None:
    daemon.say("one")
    order = daemon.claim_one()
    daemon.prompt(order, "n-1", tool_ran=tool_ran)
    away = Failed(FailureKind.OUTAGE, "the model is away", heard=said(Evidence.CUT_OFF))
    assert daemon.finish(order, away).taken
    (session,) = daemon.rows(sessions)
    assert session.cut_off == cut_off
    come_back(daemon)
    assert daemon.claim_one().tries == 1


@pytest.mark.case("P09", "C35")
@pytest.mark.parametrize("evidence", [Evidence.CUT_OFF, Evidence.UNSENT])
def test_what_is_older_than_its_session_is_told_there_once(daemon: Daemon, evidence: Evidence) -> None:
    """A fresh start is asked for while another message waits for its time: that one is older than the session which it
    comes to."""
    daemon.say("start over", freshness=Freshness.FRESH, origin=OUTSIDE)
    daemon.put(wakes, {"id": daemon.say("and this").wake}, not_before=now(daemon) + 1000)
    fresh = daemon.claim_one()
    daemon.prompt(fresh, "n-1")
    daemon.finish(fresh)
    come_back(daemon)
    late = daemon.claim_one()
    assert (late.plan.outcome, bodies(late), late.plan.told_late) == (Outcome.RESUME, ["and this"], late.plan.act_on)
    daemon.prompt(late, "n-1")
    daemon.finish(late, replace(TRANSIENT, heard=said(evidence)))
    come_back(daemon)
    again = daemon.claim_one()
    taken = evidence is Evidence.CUT_OFF
    assert (bodies(again), again.plan.already_told) == (([], again.plan.act_on) if taken else (["and this"], ()))
