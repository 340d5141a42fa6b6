"""What became of a prompt is asked of the agent's own store, kept with the run, and followed: nothing that was taken
goes out again, nothing that was not taken counts as told, and every wake ends once."""

from collections.abc import Callable
from dataclasses import replace

import pytest

from clew.kernel import (
    HELD_BY_AGENT,
    Evidence,
    FailureKind,
    Freshness,
    Outcome,
    RunOutcome,
    RunState,
    WaitsFor,
    WakeReason,
)
from clew.kernel import Attestation as Said
from clew.protocol.orders import Order
from clew.protocol.reports import Completed, Failed, Finished, Returned, Stopped, StoreAnswer, StoreAsked
from clew.store.engine.dialect import read_clock
from clew.store.operations.cancel import cancel_run
from clew.store.operations.leases import end_orphans, expire
from clew.store.schema.tables import events, journal, runs, runtimes, sessions, wakes
from tests.store.kit import (
    AT_ONCE,
    OTHER_THREAD,
    PERMANENT,
    RUNTIME,
    STOPPED,
    TRANSIENT,
    Daemon,
    bodies,
    numbers,
    pin_of,
    prompted_of,
    said,
    said_in,
)

UNSENT, TAKEN, CUT_OFF = Evidence.UNSENT, Evidence.TAKEN, Evidence.CUT_OFF
FINISHED, UNKNOWN = Evidence.FINISHED, Evidence.UNKNOWN
NATIVE = "n-1"


# ---------------------------------------------------------------- how a run ends without a word of its prompt


def lapses(daemon: Daemon, order: Order) -> None:
    daemon.put(runs, {"id": order.run}, lease_until=1.0)
    daemon.put(runtimes, {"id": RUNTIME}, seen_at=1.0)
    assert daemon.write(lambda connection: expire(connection, 0.0, AT_ONCE))


def restarts(daemon: Daemon, order: Order) -> None:
    (ended,) = daemon.write(lambda connection: end_orphans(connection, daemon.by, [RUNTIME]))
    assert ended.run == order.run


def fails(daemon: Daemon, order: Order) -> None:
    assert daemon.finish(order, Failed(FailureKind.CRASHED, "it died")).taken


def fails_unknown(daemon: Daemon, order: Order) -> None:
    assert daemon.finish(order, Failed(FailureKind.TRANSIENT, "it died", heard=said(UNKNOWN))).taken


def is_interrupted(daemon: Daemon, order: Order) -> None:
    daemon.write(lambda connection: cancel_run(connection, order.run, RunOutcome.INTERRUPTED))
    assert daemon.finish(order, Stopped()).taken


def is_interrupted_and_lost(daemon: Daemon, order: Order) -> None:
    daemon.write(lambda connection: cancel_run(connection, order.run, RunOutcome.INTERRUPTED))
    restarts(daemon, order)


ENDS: dict[str, Callable[[Daemon, Order], None]] = {
    each.__name__: each for each in (lapses, restarts, fails, fails_unknown, is_interrupted, is_interrupted_and_lost)
}
"""Each leaves the wakes waiting, and nobody knowing what became of the prompt."""

ended_somehow = pytest.mark.parametrize("how", ENDS)
pinned_or_not = pytest.mark.parametrize("pinned", [True, False], ids=["pinned", "never-pinned"])


def lost(daemon: Daemon, how: str = "restarts", pinned: bool = True, native: str = NATIVE) -> Order:
    """The first entry of the lane was to go out to that session, and nobody knows whether it did."""
    daemon.say("one")
    order = daemon.claim_one()
    daemon.prompt(order, native if pinned else None, prompted=prompted_of(order, native))
    ENDS[how](daemon, order)
    return order


def asking(daemon: Daemon, *about: Order) -> Order:
    """The lane's next run, which sends nothing but asks."""
    order = daemon.claim_one()
    assert [question.run for question in order.questions] == [each.run for each in about]
    assert (order.plan.outcome, order.plan.reason.code) == (Outcome.HOLD, "prompt:unheard")
    assert order.entries == ()
    return order


def the_session(daemon: Daemon) -> tuple[str, int, int, int]:
    """The only session of the lane: its name, how far it has seen, its turns, and whether its last was cut off."""
    (row,) = daemon.rows(sessions)
    return row.native_id, row.seen, row.turns, row.cut_off


def now(daemon: Daemon) -> float:
    return daemon.database.read(read_clock)


# ---------------------------------------------------------------- asked


@pytest.mark.case("C35", "P19", "S14")
def test_an_agent_that_died_right_after_its_reply_is_gone_on_with(daemon: Daemon) -> None:
    """Nobody saw that it kept its session; the completed turn says that it took the prompt there."""
    daemon.say("one")
    order = daemon.claim_one()
    daemon.prompt(order, None, prompted=prompted_of(order, NATIVE))
    assert daemon.finish(order, Completed("done", 1)).taken
    assert the_session(daemon) == (NATIVE, 2, 1, 0)
    daemon.say("two")
    after = daemon.claim_one()
    assert (after.plan.outcome, bodies(after)) == (Outcome.RESUME, ["two"])


@pytest.mark.case("C35", "P19")
@pinned_or_not
@ended_somehow
def test_the_next_run_of_the_lane_asks_the_store_that_the_prompt_went_to(
    daemon: Daemon, how: str, pinned: bool
) -> None:
    daemon.say("one")
    order = daemon.claim_one()
    prompted = prompted_of(order, NATIVE)
    daemon.prompt(order, NATIVE if pinned else None, prompted=prompted)
    ENDS[how](daemon, order)
    assert (daemon.run(order.run).evidence in ("", "unknown"), daemon.run(order.run).ended_at is None) == (True, False)
    asks = asking(daemon, order)
    (question,) = asks.questions
    assert prompted.session is not None
    assert (question.prompt, question.steered) == (prompted.sent, None)
    assert (question.cursor, question.directory) == (prompted.session.cursor, prompted.session.directory)
    assert question.runtime == RUNTIME
    assert [wake.id for wake in asks.wakes] == list(prompted.wakes)


@pytest.mark.case("P19")
def test_a_turn_that_ends_well_is_never_asked_for(daemon: Daemon) -> None:
    daemon.say("one")
    order = daemon.serve(NATIVE)
    run = daemon.run(order.run)
    assert (run.evidence, run.evidence_words, run.evidence_asked, run.steer) == ("finished", None, 0, None)
    assert run.evidence_at == pytest.approx(run.ended_at, abs=1)
    daemon.say("two")
    assert daemon.claim_one().questions == ()


@pytest.mark.case("P19")
@pytest.mark.parametrize("evidence", [UNSENT, TAKEN, CUT_OFF])
@pytest.mark.parametrize("end", [TRANSIENT, PERMANENT, STOPPED])
def test_what_its_daemon_heard_before_the_end_is_not_asked_for_again(
    daemon: Daemon, end: Failed | Stopped, evidence: Evidence
) -> None:
    daemon.say("one")
    order = daemon.serve(NATIVE, replace(end, heard=said(evidence)))
    run = daemon.run(order.run)
    assert (run.evidence, run.evidence_words) == (evidence.value, f"the store says {evidence}")
    assert run.evidence_at == pytest.approx(run.ended_at, abs=1)
    daemon.say("two")
    assert daemon.claim_one().questions == ()
    assert the_session(daemon)[1:] == (1 if evidence in HELD_BY_AGENT else 0, 0, int(evidence is CUT_OFF))


@pytest.mark.case("P19")
@pytest.mark.parametrize("end", [TRANSIENT, replace(STOPPED, heard=said(FINISHED)), Returned("not now", "hold:later")])
def test_what_is_said_of_a_prompt_that_never_was_to_go_out_counts_for_nothing(
    daemon: Daemon, end: Failed | Stopped | Returned
) -> None:
    daemon.say("one")
    order = daemon.claim_one()
    daemon.report(order, opens=True, pin=pin_of(order.plan, NATIVE))
    daemon.finish(order, end)
    run = daemon.run(order.run)
    assert (run.prompt, run.evidence, run.evidence_at) == (None, "", None)
    assert the_session(daemon) == (NATIVE, 0, 0, 0)


# ---------------------------------------------------------------- answered


@pytest.mark.proof("postgresql")
@pytest.mark.case("L13", "P19")
@pytest.mark.parametrize("evidence", [UNSENT, TAKEN, CUT_OFF, FINISHED])
@pinned_or_not
@ended_somehow
def test_what_was_answered_is_kept_with_the_run_that_sent_it(
    daemon: Daemon, how: str, pinned: bool, evidence: Evidence
) -> None:
    order = lost(daemon, how, pinned)
    before = now(daemon)
    assert daemon.answer(asking(daemon, order), evidence, "the answer").taken
    run = daemon.run(order.run)
    assert (run.evidence, run.evidence_words, run.evidence_asked) == (evidence.value, f"the store says {evidence}", 0)
    assert before <= run.evidence_at <= now(daemon)
    # Word of the prompt is all that changed; how it ended stays as it was.
    assert run.ended_at <= run.evidence_at
    if evidence in HELD_BY_AGENT:
        # With its own reply where it gave one: nobody spoke in between.
        seen = 2 if evidence is FINISHED else 1
        assert the_session(daemon) == (NATIVE, seen, int(evidence is FINISHED), int(evidence is CUT_OFF))
    elif pinned:
        assert the_session(daemon) == (NATIVE, 0, 0, 0)
    else:
        assert daemon.rows(sessions) == []


@pytest.mark.case("P09", "P19", "P20", "P21")
@pinned_or_not
@ended_somehow
def test_what_was_not_taken_goes_out_in_full(daemon: Daemon, how: str, pinned: bool) -> None:
    order = lost(daemon, how, pinned)
    asks = asking(daemon, order)
    ended = daemon.answer(asks, UNSENT)
    assert (ended.taken, ended.state) == (True, RunState.QUEUED)
    assert ended.words == "Back in the queue: the agent's own store has answered"
    again = daemon.claim_one()
    assert (again.run, again.attempt, again.questions) == (asks.run, asks.attempt + 1, ())
    assert (again.plan.already_told, bodies(again)) == ((), ["one"])
    assert again.plan.outcome is (Outcome.RESUME if pinned else Outcome.BLANK)
    assert again.plan.notices == ()
    daemon.prompt(again, NATIVE)
    daemon.finish(again)
    assert [(row.state, row.run_id) for row in daemon.rows(wakes)] == [("served", again.run)]


@pytest.mark.case("C39", "L11", "P12", "P19", "P21")
@pytest.mark.parametrize("evidence", [TAKEN, CUT_OFF])
@pinned_or_not
@ended_somehow
def test_what_was_taken_is_gone_on_with_and_not_sent_again(
    daemon: Daemon, how: str, pinned: bool, evidence: Evidence
) -> None:
    order = lost(daemon, how, pinned)
    daemon.answer(asking(daemon, order), evidence)
    again = daemon.claim_one()
    assert (again.plan.outcome, again.plan.native_id) == (Outcome.RESUME, NATIVE)
    assert (again.plan.already_told, numbers(again)) == ((1,), [])
    assert [notice.reason.code for notice in again.plan.notices] == ["notice:cut-off"] * (evidence is CUT_OFF)
    daemon.prompt(again)
    daemon.finish(again)
    assert [(row.state, row.run_id) for row in daemon.rows(wakes)] == [("served", again.run)]
    # It was told so, once.
    daemon.say("two")
    after = daemon.claim_one()
    assert (after.plan.notices, bodies(after)) == ((), ["two"])


@pytest.mark.case("C35", "P19", "W07")
@pinned_or_not
@ended_somehow
def test_what_was_finished_is_read_back_and_its_wake_is_served(daemon: Daemon, how: str, pinned: bool) -> None:
    order = lost(daemon, how, pinned)
    asks = asking(daemon, order)
    ended = daemon.answer(asks, FINISHED, "the answer")
    assert (ended.taken, ended.state) == (True, RunState.SUCCEEDED)
    assert ended.words == "The agent had already finished; its reply was read from its own store."
    assert daemon.database.read(said_in) == [(1, "one"), (2, "the answer")]
    (_, reply) = daemon.rows(journal, "seq")
    assert (reply.author_kind, reply.author_name, reply.run_id) == ("agent", "ada", order.run)
    (wake,) = daemon.rows(wakes)
    assert (wake.state, wake.code, wake.run_id) == ("served", "served:read-back", order.run)
    assert wake.words == f"Run {order.run} served it; the reply was read from the agent's own store afterwards."
    asker = daemon.run(asks.run)
    assert (asker.state, asker.outcome, asker.prompt, asker.evidence) == ("succeeded", "run:read-back", None, "")
    assert daemon.claim() == ()
    daemon.say("two")
    after = daemon.claim_one()
    assert (after.plan.outcome, after.plan.native_id, bodies(after)) == (Outcome.RESUME, NATIVE, ["two"])
    assert after.plan.notices == ()


@pytest.mark.case("C35")
def test_a_turn_that_was_finished_without_a_word_leaves_no_entry(daemon: Daemon) -> None:
    order = lost(daemon)
    daemon.answer(asking(daemon, order), FINISHED, "")
    assert daemon.database.read(said_in) == [(1, "one")]
    assert the_session(daemon) == (NATIVE, 1, 1, 0)
    assert [row.state for row in daemon.rows(wakes)] == ["served"]


@pytest.mark.case("C35", "L02", "W07")
@pytest.mark.parametrize("evidence", [UNSENT, TAKEN, CUT_OFF, FINISHED, UNKNOWN])
def test_an_answer_that_is_told_twice_counts_once(daemon: Daemon, evidence: Evidence) -> None:
    order = lost(daemon)
    asks = asking(daemon, order)
    said_of_it = StoreAsked((StoreAnswer(order.run, said(evidence, "the answer")),))
    first = daemon.finish(asks, said_of_it)
    kept = [daemon.rows(table) for table in (wakes, runs, sessions)] + [daemon.rows(journal, "seq")]
    again = daemon.finish(asks, said_of_it)
    assert (first.taken, again.taken, again.state) == (True, True, first.state)
    assert kept == [daemon.rows(table) for table in (wakes, runs, sessions)] + [daemon.rows(journal, "seq")]


@pytest.mark.case("C35", "W07")
def test_who_asked_and_was_taken_for_lost_changes_nothing_any_more(daemon: Daemon) -> None:
    order = lost(daemon)
    slow = asking(daemon, order)
    restarts(daemon, slow)
    quick = asking(daemon, order)
    assert (quick.run, quick.attempt) == (slow.run, slow.attempt + 1)
    assert not daemon.answer(slow, CUT_OFF).taken
    assert daemon.run(order.run).evidence == ""
    assert daemon.answer(quick, FINISHED, "the answer").taken
    assert not daemon.answer(slow, FINISHED, "the answer").taken
    assert daemon.database.read(said_in) == [(1, "one"), (2, "the answer")]
    assert [row.state for row in daemon.rows(wakes)] == ["served"]


@pytest.mark.case("P19")
def test_what_the_agent_was_seen_to_do_counts_more_than_what_its_store_has_kept(daemon: Daemon) -> None:
    daemon.say("one")
    order = daemon.claim_one()
    daemon.prompt(order, NATIVE)
    daemon.report(order, tool_ran=True)
    restarts(daemon, order)
    daemon.answer(asking(daemon, order), UNSENT)
    run = daemon.run(order.run)
    assert (run.evidence, run.evidence_words) == (
        "cut-off",
        "it told of its work in the turn; its store: the store says unsent",
    )
    assert daemon.claim_one().plan.already_told == (1,)


# ---------------------------------------------------------------- newer wakes


@pytest.mark.case("P19", "W01", "W07")
@pytest.mark.parametrize("evidence", [UNSENT, TAKEN, CUT_OFF, FINISHED])
@pinned_or_not
def test_what_came_meanwhile_waits_for_the_answer_and_comes_after(
    daemon: Daemon, pinned: bool, evidence: Evidence
) -> None:
    order = lost(daemon, pinned=pinned)
    first = order.wakes[0].id
    second = daemon.say("two")
    asks = asking(daemon, order)
    assert [wake.id for wake in asks.wakes] == [first, second.wake]
    third = daemon.say("three")
    ended = daemon.answer(asks, evidence, "the answer")
    assert ended.state is RunState.QUEUED
    after = daemon.claim_one()
    assert after.questions == ()
    told = {
        UNSENT: ["one", "two", "three"],
        TAKEN: ["two", "three"],
        CUT_OFF: ["two", "three"],
        # Its own reply stands behind what came meanwhile, so it is told both, in order.
        FINISHED: ["two", "three", "the answer"],
    }
    assert bodies(after) == told[evidence]
    waiting = [second.wake, third.wake] if evidence is FINISHED else [first, second.wake, third.wake]
    assert [wake.id for wake in after.wakes] == waiting
    daemon.prompt(after, NATIVE)
    daemon.finish(after)
    served = {row.id: (row.state, row.run_id) for row in daemon.rows(wakes)}
    assert served.pop(first) == ("served", order.run if evidence is FINISHED else after.run)
    assert set(served.values()) == {("served", after.run)}
    assert daemon.claim() == ()


@pytest.mark.case("H04", "P19")
def test_a_prompt_in_a_context_of_its_own_is_asked_for_like_any_other(daemon: Daemon) -> None:
    daemon.say("tick", reason=WakeReason.TIMER, isolated=True)
    order = daemon.claim_one()
    daemon.prompt(order, None, prompted=prompted_of(order, "n-tick"))
    restarts(daemon, order)
    shared = daemon.say("one")
    asks = asking(daemon, order)
    daemon.answer(asks, CUT_OFF)
    (kept,) = daemon.rows(sessions)
    assert (kept.scope_run, kept.native_id, kept.cut_off) == (order.run, "n-tick", 1)
    again = daemon.claim_one()
    assert (again.plan.outcome, again.plan.native_id, again.plan.already_told) == (Outcome.RESUME, "n-tick", (1,))
    daemon.prompt(again)
    daemon.finish(again)
    assert [wake.id for wake in daemon.claim_one().wakes] == [shared.wake]


# ---------------------------------------------------------------- fresh starts


@pytest.mark.proof("postgresql")
@pytest.mark.case("P09", "P19", "W02")
@pytest.mark.parametrize("demand", [{"freshness": Freshness.FRESH}, {"reason": WakeReason.ASSIGNMENT}], ids=str)
@pytest.mark.parametrize("evidence", [TAKEN, CUT_OFF])
@pinned_or_not
@ended_somehow
def test_a_fresh_start_that_its_session_took_is_not_made_again(
    daemon: Daemon, how: str, pinned: bool, evidence: Evidence, demand: dict[str, object]
) -> None:
    daemon.say("before")
    daemon.serve("n-0")
    daemon.say("one", **demand)
    order = daemon.claim_one()
    assert order.plan.outcome is Outcome.BLANK
    daemon.prompt(order, NATIVE if pinned else None, prompted=prompted_of(order, NATIVE))
    ENDS[how](daemon, order)
    daemon.answer(asking(daemon, order), evidence)
    again = daemon.claim_one()
    assert (again.plan.outcome, again.plan.native_id, bodies(again)) == (Outcome.RESUME, NATIVE, [])
    assert again.plan.already_told == (3,)


@pytest.mark.case("P19", "W02")
@pinned_or_not
def test_a_fresh_start_whose_prompt_was_not_taken_still_tells_all_of_it(daemon: Daemon, pinned: bool) -> None:
    daemon.say("before")
    daemon.serve("n-0")
    daemon.say("one", freshness=Freshness.FRESH)
    order = daemon.claim_one()
    daemon.prompt(order, NATIVE if pinned else None, prompted=prompted_of(order, NATIVE))
    restarts(daemon, order)
    daemon.answer(asking(daemon, order), UNSENT)
    again = daemon.claim_one()
    assert (again.plan.outcome is Outcome.BLANK) is not pinned
    assert (again.plan.already_told, bodies(again)) == ((), ["one"])


# ---------------------------------------------------------------- nobody knows


WAITS = [0.5, 1.0, 2.0, 5.0, 15.0, 30.0]


@pytest.mark.case("P19", "P20")
def test_a_store_that_cannot_tell_is_asked_again_after_growing_waits_and_then_a_person_is(daemon: Daemon) -> None:
    order = lost(daemon)
    accepted = order.wakes[0].id
    for number, wait in enumerate(WAITS, start=1):
        asks = asking(daemon, order)
        before = now(daemon)
        ended = daemon.answer(asks, UNKNOWN)
        after = now(daemon)
        assert ended.state is RunState.QUEUED
        kept, waiting = daemon.run(order.run), daemon.run(asks.run)
        assert (kept.evidence, kept.evidence_asked, kept.evidence_words) == (
            "unknown",
            number,
            "the store says unknown",
        )
        assert (waiting.hold, waiting.hold_code) == (WaitsFor.ANOTHER_TRY.value, "prompt:unheard")
        assert waiting.not_before is not None
        assert before + wait - 0.001 <= waiting.not_before <= after + wait + 0.001
        # However slow this machine is, the time has not come.
        daemon.put(runs, {"id": asks.run}, not_before=after + 3600)
        assert (daemon.wake(accepted).state, daemon.claim()) == ("pending", ())
        daemon.put(runs, {"id": asks.run}, not_before=None)
    asks = asking(daemon, order)
    daemon.answer(asks, UNKNOWN)
    waiting = daemon.run(asks.run)
    assert (waiting.hold, waiting.hold_code, waiting.not_before) == (WaitsFor.PERSON.value, "prompt:unknown", None)
    assert f"`clew retry {order.run} --not-taken` sends it again in full" in waiting.words
    assert "(the store says unknown)" in waiting.words
    assert daemon.claim() == ()
    # Somebody who speaks in the lane does not make it known.
    daemon.say("hello?")
    assert daemon.claim() == ()
    held = daemon.run(asks.run)
    assert (held.hold, held.hold_code) == (WaitsFor.PERSON.value, "prompt:unknown")


@pytest.mark.case("P19", "P20")
def test_a_store_that_can_never_tell_goes_to_a_person_at_once(daemon: Daemon) -> None:
    order = lost(daemon)
    asks = asking(daemon, order)
    in_vain = Said(UNKNOWN, "it writes no prompt down", able=False)
    daemon.finish(asks, StoreAsked((StoreAnswer(order.run, in_vain),)))
    waiting = daemon.run(asks.run)
    assert (waiting.hold, waiting.hold_code) == (WaitsFor.PERSON.value, "prompt:unknown")
    assert "(it writes no prompt down)" in waiting.words


@pytest.mark.case("P19")
def test_a_store_that_answers_at_last_is_believed(daemon: Daemon) -> None:
    order = lost(daemon, pinned=False)
    for _ in range(3):
        asks = asking(daemon, order)
        daemon.answer(asks, UNKNOWN)
        daemon.put(runs, {"id": asks.run}, not_before=None)
    assert daemon.rows(sessions) == []
    daemon.answer(asking(daemon, order), FINISHED, "the answer")
    run = daemon.run(order.run)
    assert (run.evidence, run.evidence_asked) == ("finished", 3)
    assert the_session(daemon) == (NATIVE, 2, 1, 0)
    assert [row.state for row in daemon.rows(wakes)] == ["served"]


@pytest.mark.case("P20")
@pytest.mark.parametrize("unable", ["declared", "unnamed"])
def test_where_nobody_could_be_asked_a_person_is_at_once(daemon: Daemon, unable: str) -> None:
    daemon.put_capability("hears", unable != "declared")
    daemon.say("one")
    order = daemon.claim_one()
    prompted = prompted_of(order) if unable == "declared" else prompted_of(order, session=None)
    daemon.prompt(order, NATIVE if unable == "declared" else None, prompted=prompted)
    restarts(daemon, order)
    assert daemon.claim() == ()
    (waiting,) = daemon.rows(runs, state="queued")
    assert (waiting.hold, waiting.hold_code, waiting.attempt) == (WaitsFor.PERSON.value, "prompt:unknown", 0)
    assert order.run in waiting.words
    assert [row.state for row in daemon.rows(wakes)] == ["pending"]


@pytest.mark.case("P19")
def test_another_lane_is_not_kept_waiting(daemon: Daemon) -> None:
    lost(daemon)
    daemon.say("elsewhere", thread=OTHER_THREAD)
    daemon.make_room()
    orders = {order.thread.id: order for order in daemon.claim(most=2)}
    assert orders[OTHER_THREAD].questions == ()
    assert bodies(orders[OTHER_THREAD]) == ["elsewhere"]


# ---------------------------------------------------------------- tries


@pytest.mark.case("L06", "P19")
@pytest.mark.parametrize("evidence", [UNSENT, TAKEN, CUT_OFF])
def test_a_run_that_is_lost_again_and_again_is_given_up_whatever_its_store_says(
    daemon: Daemon, evidence: Evidence
) -> None:
    """A prompt that kills its daemon must not go round for ever: asking is free, sending is not."""
    accepted = daemon.say("one")
    for _ in range(5):
        order = daemon.claim_one()
        assert order.questions == ()
        daemon.prompt(order, NATIVE)
        restarts(daemon, order)
        assert daemon.wake(accepted.wake).state == "pending"
        daemon.answer(asking(daemon, order), evidence)
    wake = daemon.wake(accepted.wake)
    assert (wake.state, wake.code) == ("cancelled", "cancelled:gave-up")
    assert "Tried 5 times, which is the limit" in wake.words
    assert daemon.claim() == ()


@pytest.mark.case("C35", "L06")
def test_the_last_try_is_read_back_all_the_same(daemon: Daemon) -> None:
    accepted = daemon.say("one")
    for number in range(5):
        order = daemon.claim_one()
        daemon.prompt(order, NATIVE)
        restarts(daemon, order)
        daemon.answer(asking(daemon, order), FINISHED if number == 4 else UNSENT, "the answer")
    assert daemon.wake(accepted.wake).state == "served"


@pytest.mark.case("L06")
def test_what_came_during_the_last_try_has_all_its_tries_before_it(daemon: Daemon) -> None:
    daemon.say("one")
    for _ in range(4):
        order = daemon.claim_one()
        daemon.prompt(order, NATIVE)
        restarts(daemon, order)
        daemon.answer(asking(daemon, order), UNSENT)
    order = daemon.claim_one()
    daemon.prompt(order, NATIVE)
    later = daemon.say("two")
    restarts(daemon, order)
    daemon.answer(asking(daemon, order), UNSENT)
    after = daemon.claim_one()
    assert ([wake.id for wake in after.wakes], daemon.run(after.run).tries) == ([later.wake], 0)
    # The words that were given up are history.
    assert (after.plan.act_on, bodies(after)) == ((2,), ["one", "two"])


# ---------------------------------------------------------------- too late


@pytest.mark.case("C35", "R07", "W07")
@pinned_or_not
def test_an_end_that_comes_after_the_run_was_given_up_serves_what_waits_for_it(daemon: Daemon, pinned: bool) -> None:
    order = lost(daemon, pinned=pinned)
    late = daemon.finish(order, Completed("the answer"))
    assert (late.taken, late.state) == (False, RunState.LOST)
    run = daemon.run(order.run)
    assert (run.state, run.evidence, run.evidence_words) == (
        "lost",
        "finished",
        "its daemon said so after the run was given up",
    )
    assert daemon.database.read(said_in) == [(1, "one"), (2, "the answer")]
    assert [(row.state, row.code, row.run_id) for row in daemon.rows(wakes)] == [
        ("served", "served:read-back", order.run)
    ]
    assert the_session(daemon) == (NATIVE, 2, 1, 0)
    # Nothing is left for the run that waited for it.
    assert (daemon.rows(runs, state="queued"), daemon.claim()) == ([], ())
    # Told again, it is told to a deaf ear.
    assert not daemon.finish(order, Completed("the answer")).taken
    assert len(daemon.database.read(said_in)) == 2


@pytest.mark.case("C35", "W07")
def test_a_late_end_leaves_what_else_waits(daemon: Daemon) -> None:
    order = lost(daemon)
    later = daemon.say("two")
    daemon.finish(order, Completed("the answer"))
    after = daemon.claim_one()
    assert ([wake.id for wake in after.wakes], after.questions) == ([later.wake], ())
    assert bodies(after) == ["two", "the answer"]


@pytest.mark.case("C35", "W07")
@pytest.mark.parametrize("more", [False, True])
def test_a_late_end_while_the_store_is_being_asked_is_enough(daemon: Daemon, more: bool) -> None:
    order = lost(daemon)
    later = daemon.say("two") if more else None
    asks = asking(daemon, order)
    daemon.finish(order, Completed("the answer"))
    assert daemon.wake(order.wakes[0].id).state == "served"
    ended = daemon.answer(asks, FINISHED, "the answer")
    assert ended.taken
    assert daemon.database.read(said_in) == [(1, "one"), *([(2, "two")] if more else []), (2 + more, "the answer")]
    if later is None:
        assert (ended.state, daemon.claim()) == (RunState.SUCCEEDED, ())
        return
    after = daemon.claim_one()
    assert ([wake.id for wake in after.wakes], bodies(after)) == ([later.wake], ["two", "the answer"])


@pytest.mark.case("C35")
def test_a_late_end_of_a_prompt_of_which_word_came_changes_nothing(daemon: Daemon) -> None:
    order = lost(daemon)
    daemon.answer(asking(daemon, order), CUT_OFF)
    daemon.finish(order, Completed("the answer"))
    assert daemon.run(order.run).evidence == "cut-off"
    assert daemon.database.read(said_in) == [(1, "one")]


@pytest.mark.case("L04", "P19")
def test_a_late_pin_is_known_by_the_time_the_store_answers(daemon: Daemon) -> None:
    order = lost(daemon, pinned=False)
    daemon.report(order, pin=pin_of(order.plan, NATIVE))
    daemon.answer(asking(daemon, order), CUT_OFF)
    assert the_session(daemon) == (NATIVE, 1, 0, 1)
    assert daemon.claim_one().plan.native_id == NATIVE


@pytest.mark.case("P09", "P19", "S03")
@pytest.mark.parametrize("evidence", [TAKEN, CUT_OFF])
def test_a_session_that_another_lane_has_by_now_stays_there_and_nothing_is_sent_twice(
    daemon: Daemon, evidence: Evidence
) -> None:
    daemon.make_room()
    order = lost(daemon, pinned=False)
    asks = asking(daemon, order)
    daemon.say("elsewhere", thread=OTHER_THREAD)
    daemon.serve(NATIVE)
    daemon.answer(asks, evidence)
    assert [row.native_id for row in daemon.rows(sessions)] == [NATIVE]
    assert daemon.sessions() == []
    wake = daemon.wake(order.wakes[0].id)
    assert (wake.state, wake.code) == ("cancelled", "cancelled:gave-up")
    assert daemon.claim() == ()


# ---------------------------------------------------------------- read back at once


@pytest.mark.case("C35")
def test_a_daemon_that_read_the_reply_back_itself_ends_the_run_with_it(daemon: Daemon) -> None:
    accepted = daemon.say("one")
    order = daemon.claim_one()
    daemon.prompt(order, NATIVE)
    ended = daemon.finish(order, Completed("the answer", read_back=True))
    run = daemon.run(order.run)
    assert (ended.taken, run.state, run.outcome) == (True, "succeeded", "run:read-back")
    assert (run.evidence, run.evidence_words) == ("finished", "its reply was read from the agent's own store")
    assert daemon.wake(accepted.wake).state == "served"
    assert the_session(daemon) == (NATIVE, 2, 1, 0)
    assert daemon.finish(order, Completed("the answer", read_back=True)).taken
    assert daemon.claim() == ()


# ---------------------------------------------------------------- a run that was to ask and is cancelled


@pytest.mark.case("L03", "P19")
@pytest.mark.parametrize("evidence", [UNSENT, CUT_OFF, FINISHED, UNKNOWN])
def test_a_person_who_cancels_the_run_that_asks_ends_its_wakes_and_the_answer_counts(
    daemon: Daemon, evidence: Evidence
) -> None:
    order = lost(daemon)
    asks = asking(daemon, order)
    daemon.write(lambda connection: cancel_run(connection, asks.run))
    ended: Finished = daemon.answer(asks, evidence, "the answer")
    assert (ended.taken, ended.state) == (True, RunState.CANCELLED)
    assert daemon.run(order.run).evidence == evidence.value
    assert [(row.state, row.code) for row in daemon.rows(wakes)] == [("cancelled", "cancelled:by-user")]
    assert daemon.claim() == ()


@pytest.mark.case("P19")
def test_what_is_answered_of_a_run_that_was_not_asked_for_is_left_out(daemon: Daemon) -> None:
    known = daemon.accept(thread=OTHER_THREAD)
    other = daemon.serve("n-other")
    order = lost(daemon)
    asks = asking(daemon, order)
    answers = (
        StoreAnswer(other.run, said(UNSENT)),
        StoreAnswer(order.run, Said(CUT_OFF, "half a\x00 line\ud800")),
    )
    assert daemon.finish(asks, StoreAsked(answers)).taken
    assert daemon.run(other.run).evidence == "finished"
    assert daemon.wake(known.wake).state == "served"
    assert daemon.run(order.run).evidence == "cut-off"
    assert daemon.rows(events, "seq") == []
