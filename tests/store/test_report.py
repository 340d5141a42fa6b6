"""Reports: each is applied once, and only from the daemon that has the run."""

from dataclasses import replace
from typing import Any

import pytest

from clew.kernel import (
    ApprovalId,
    Cursor,
    Directory,
    EntrySeq,
    Evidence,
    Freshness,
    NativeId,
    Outcome,
    PinReason,
    Probe,
    ProbeKind,
    RunState,
    WakeReason,
    settle,
)
from clew.protocol.orders import Order
from clew.protocol.reports import Asked, Completed, Landed, Report, RunEventRecord, Stopped, Usage, read_prompted
from clew.store.faults import NoSuchRun, SessionHeld
from clew.store.operations.cancel import cancel_run
from clew.store.operations.decisions import decisions_of
from clew.store.operations.leases import expire
from clew.store.operations.report import report
from clew.store.schema.tables import approvals, events, landings, runs, sessions, wakes
from tests.store.kit import (
    AT_ONCE,
    OTHER_THREAD,
    REFUSED,
    RUNTIME,
    STOPPED,
    TRANSIENT,
    Daemon,
    bodies,
    numbers,
    pin_of,
    prompted_of,
    said,
)


@pytest.fixture
def order(daemon: Daemon) -> Order:
    daemon.say("one")
    return daemon.claim_one()


# ---------------------------------------------------------------- opening, and the one prompt


def test_the_prompt_may_go_out_once_it_is_on_record_with_what_was_opened(daemon: Daemon, order: Order) -> None:
    opening = daemon.report(order, opens=True)
    assert (opening.held, opening.state, opening.may_prompt) == (True, RunState.OPENING, False)
    assert daemon.run(order.run).claim is None
    answer = daemon.prompt(order, "n-1", opens=False)
    assert (answer.held, answer.state, answer.may_prompt, answer.stop) == (True, RunState.RUNNING, True, None)
    assert answer.pinned is PinReason.FIRST
    run = daemon.run(order.run)
    assert (run.prompt_sent, run.told, run.claim, run.landing) == (1, 1, "started", '{"native_id": "as planned"}')
    assert run.evidence == ""


@pytest.mark.case("P19", "L13")
def test_the_prompt_is_on_record_by_what_its_store_is_asked_for_it_before_it_goes_out(
    daemon: Daemon, order: Order
) -> None:
    prompted = prompted_of(order, "n-1")
    assert daemon.prompt(order, prompted=prompted).may_prompt
    assert read_prompted(daemon.run(order.run).prompt) == prompted
    # Said again because its answer was lost, it is the same one; another is not let out.
    assert daemon.prompt(order, prompted=prompted).may_prompt
    assert read_prompted(daemon.run(order.run).prompt) == prompted


@pytest.mark.case("P19")
@pytest.mark.parametrize("left_out", ["told", "prompted"])
def test_a_prompt_without_a_name_is_not_reported(order: Order, left_out: str) -> None:
    whole: dict[str, Any] = {"told": EntrySeq(1), "prompted": prompted_of(order)}
    Report(order.run, order.attempt, **whole)
    with pytest.raises(ValueError, match="`told` and `prompted` go together"):
        Report(order.run, order.attempt, **{**whole, left_out: None})


def test_a_report_whose_answer_was_lost_is_said_again_and_taken_once(daemon: Daemon, order: Order) -> None:
    first = daemon.prompt(order, "n-1", events=(RunEventRecord(1, "text", "hello"),))
    again = daemon.prompt(order, "n-1", events=(RunEventRecord(1, "text", "hello"),))
    assert (again.held, again.state, again.may_prompt) == (True, RunState.RUNNING, True)
    assert (first.pinned, again.pinned) == (PinReason.FIRST, PinReason.SAME)
    assert daemon.sessions() == [(1, "n-1", "healthy")]
    assert len(daemon.rows(events, "seq")) == 1


@pytest.mark.case("P09")
def test_a_second_prompt_is_not_let_out(daemon: Daemon, order: Order) -> None:
    daemon.prompt(order, "n-1")
    daemon.say("two")
    answer = daemon.report(order, told=2, prompted=prompted_of(order))
    assert (answer.held, answer.may_prompt, answer.state) == (True, False, RunState.RUNNING)
    assert answer.words == f"Run {order.run} is running; prompt is not possible now."
    assert daemon.run(order.run).told == 1


def test_nothing_can_be_prompted_before_it_was_opened(daemon: Daemon, order: Order) -> None:
    answer = daemon.report(order, told=1, prompted=prompted_of(order))
    assert (answer.held, answer.may_prompt, answer.state) == (True, False, RunState.CLAIMED)
    run = daemon.run(order.run)
    assert (run.prompt_sent, run.prompt) == (0, None)


def test_a_report_renews_the_lease_and_never_shortens_it(daemon: Daemon, order: Order) -> None:
    daemon.put(runs, {"id": order.run}, lease_until=1.0)
    renewed = daemon.report(order)
    assert renewed.lease_until is not None
    assert renewed.lease_until > order.lease_until - 1
    assert replace(daemon, patience=AT_ONCE).report(order).lease_until == renewed.lease_until


def test_a_landing_that_was_refused_is_kept_with_its_reason(daemon: Daemon, order: Order) -> None:
    words = "The run belongs in /srv/ada; the agent works in /tmp."
    daemon.report(order, opens=True, landed=Landed('{"directory": "/tmp"}', "nothing", refused=words))
    (kept,) = daemon.rows(landings, "run_id")
    assert (kept.run_id, kept.attempt, kept.landing, kept.words) == (order.run, 1, '{"directory": "/tmp"}', words)
    assert daemon.run(order.run).prompt_sent == 0


def test_a_run_that_is_not_there_is_named(daemon: Daemon) -> None:
    with pytest.raises(NoSuchRun, match="There is no run rn-none"):
        daemon.write(lambda connection: report(connection, Report("rn-none", 1)))  # type: ignore[arg-type]


# ---------------------------------------------------------------- the fence


@pytest.mark.case("R03")
def test_a_daemon_that_lost_its_run_changes_nothing_any_more(daemon: Daemon, order: Order) -> None:
    daemon.put(runs, {"id": order.run}, lease_until=1.0)
    daemon.write(lambda connection: expire(connection, 0.0))
    stale = daemon.prompt(order, "n-old", events=(RunEventRecord(1, "text", "late"),))
    assert (stale.held, stale.may_prompt, stale.state) == (False, False, RunState.QUEUED)
    assert stale.words == f"Attempt 1 does not hold run {order.run}, which is queued at attempt 1."
    other = replace(daemon, by="daemon-2")
    again = other.claim_one()
    assert (again.run, again.attempt) == (order.run, 2)
    other.prompt(again, "n-new")
    stale = daemon.prompt(order, "n-old")
    assert (stale.held, stale.may_prompt) == (False, False)
    assert not daemon.finish(order, Completed("late")).taken
    assert daemon.sessions() == [(1, "n-new", "healthy")]
    assert daemon.rows(events, "seq") == []
    assert other.finish(again).taken
    assert [row.state for row in daemon.rows(wakes)] == ["served"]


def test_a_run_that_is_to_stop_says_so_and_lets_no_prompt_out(daemon: Daemon, order: Order) -> None:
    daemon.write(lambda connection: cancel_run(connection, order.run))
    answer = daemon.prompt(order, "n-1", asks=(Asked(ApprovalId("ap-1"), "May I?"),))
    assert (answer.held, answer.state, answer.may_prompt) == (True, RunState.STOPPING, False)
    assert (answer.stop, answer.words) == ("run:by-user", "It was cancelled.")
    # Nobody will be there for the answer.
    assert daemon.rows(approvals) == []
    assert daemon.finish(order, Stopped()).state is RunState.CANCELLED


# ---------------------------------------------------------------- the log


@pytest.mark.case("L08")
def test_the_log_of_a_run_is_in_order_and_each_line_is_there_once(daemon: Daemon, order: Order) -> None:
    def lines(*numbers: int) -> tuple[RunEventRecord, ...]:
        return tuple(RunEventRecord(number, "text", f"line {number}") for number in numbers)

    daemon.prompt(order, "n-1", events=lines(1, 2))
    daemon.report(order, events=lines(2, 3))
    daemon.report(order, events=lines(3, 4, 5))
    daemon.finish(order)
    # What was still on its way when the run ended completes the log.
    late = daemon.report(order, events=lines(5, 6))
    assert (late.held, late.state) == (False, RunState.SUCCEEDED)
    kept = [(row.seq, row.body) for row in daemon.rows(events, "seq", run_id=order.run)]
    assert kept == [(number, f"line {number}") for number in range(1, 7)]


# ---------------------------------------------------------------- pins


@pytest.mark.case("C10")
def test_a_session_is_written_with_the_runtime_and_the_run_it_is_from(daemon: Daemon, order: Order) -> None:
    daemon.prompt(order, "n-1")
    (kept,) = daemon.rows(sessions)
    assert (kept.id, kept.run_id, kept.runtime_id) == (order.session, order.run, RUNTIME)
    assert (kept.native_id, kept.cursor) == ("n-1", '{"v": 1, "id": "n-1", "extra": ""}')
    # What the prompt tells it has not seen yet: that is known once it took it.
    assert (kept.directory, kept.provider, kept.begins, kept.seen) == ("/srv/ada", "loom", 1, 0)
    for column in ("runtime_id", "native_id", "cursor"):
        with pytest.raises(Exception, match=r"(?i)null"):
            daemon.put(sessions, {"id": kept.id}, **{column: None})


@pytest.mark.case("S03")
def test_an_id_that_another_thread_holds_is_refused_and_stays_there(daemon: Daemon, order: Order) -> None:
    daemon.prompt(order, "n-1")
    daemon.finish(order)
    before = daemon.rows(sessions)
    daemon.accept(thread=OTHER_THREAD)
    other = daemon.claim_one()
    with pytest.raises(SessionHeld, match="Session n-1 belongs to thread issue-7, generation 1 and was left there"):
        daemon.prompt(other, "n-1")
    assert daemon.rows(sessions) == before
    # Nothing of that report was kept, and the run goes on without it.
    assert daemon.run(other.run).state == "claimed"
    assert daemon.prompt(other, "n-2").may_prompt
    with pytest.raises(SessionHeld):
        daemon.finish(other, pin=pin_of(other.plan, "n-1"))
    assert daemon.finish(other).taken


@pytest.mark.case("S03")
def test_the_same_id_on_another_runtime_is_another_session(daemon: Daemon, order: Order) -> None:
    daemon.prompt(order, "n-1")
    (kept,) = [row._asdict() for row in daemon.rows(sessions)]
    daemon.add(sessions, **{**kept, "id": "s-x", "scope_run": "r", "runtime_id": "unknown"})
    with pytest.raises(Exception, match=r"(?i)unique"):
        daemon.put(sessions, {"id": "s-x"}, runtime_id=RUNTIME)


@pytest.mark.case("S05", "P02")
def test_an_id_that_changes_within_a_run_is_a_new_generation_and_the_newest_wins(daemon: Daemon, order: Order) -> None:
    daemon.prompt(order, "n-1")
    switched = daemon.report(order, pin=pin_of(order.plan, "n-2"))
    assert switched.pinned is PinReason.NEW_GENERATION
    again = daemon.report(order, pin=pin_of(order.plan, "n-2"))
    assert again.pinned is PinReason.SAME
    daemon.finish(order, Completed("done", usage=Usage(turns=1, tokens=7)))
    assert daemon.sessions() == [(1, "n-1", "healthy"), (2, "n-2", "healthy")]
    one, two = daemon.rows(sessions, "generation")
    assert ((one.turns, one.tokens), (two.turns, two.tokens, two.seen)) == ((0, 0), (1, 7, 2))
    daemon.say("two")
    after = daemon.claim_one()
    assert (after.plan.native_id, bodies(after)) == ("n-2", ["two"])


@pytest.mark.case("S05")
def test_an_id_that_is_told_only_with_the_end_counts_too(daemon: Daemon, order: Order) -> None:
    daemon.prompt(order, "n-1")
    daemon.finish(order, Completed("done"), pin=pin_of(order.plan, "n-2"))
    assert daemon.sessions() == [(1, "n-1", "healthy"), (2, "n-2", "healthy")]
    one, two = daemon.rows(sessions, "generation")
    assert ((one.turns, one.seen), (two.turns, two.seen)) == ((0, 0), (1, 2))
    assert daemon.run(order.run).session_id == two.id
    daemon.say("two")
    assert bodies(daemon.claim_one()) == ["two"]


@pytest.mark.case("S05")
def test_an_agent_that_switches_back_goes_on_in_its_earlier_session(daemon: Daemon, order: Order) -> None:
    daemon.prompt(order, "n-1")
    daemon.report(order, pin=pin_of(order.plan, "n-2"))
    back = daemon.report(order, pin=pin_of(order.plan, "n-1"))
    assert back.pinned is PinReason.NEW_GENERATION
    daemon.finish(order)
    assert [each[:2] for each in daemon.sessions()] == [(1, "n-1"), (2, "n-2"), (3, "n-1")]
    assert [row.superseded for row in daemon.rows(sessions, "generation")] == [1, 0, 0]
    daemon.say("two")
    after = daemon.claim_one()
    assert after.plan.session is not None
    assert (after.plan.session.generation, after.plan.native_id) == (3, "n-1")


@pytest.mark.case("P02")
def test_what_a_session_says_of_itself_is_kept_as_it_is_now(daemon: Daemon, order: Order) -> None:
    daemon.prompt(order, "n-1")
    daemon.finish(order)
    daemon.say("two")
    second = daemon.claim_one()
    cursor = Cursor(1, NativeId("n-1"), "page 2")
    moved = replace(pin_of(second.plan, "n-1"), cursor=cursor, directory=Directory("/srv/b"), instructions="i2")
    assert daemon.prompt(second, pin=moved).pinned is PinReason.SAME
    (kept,) = daemon.rows(sessions)
    assert (kept.generation, kept.directory, kept.instructions) == (1, "/srv/b", "i2")
    assert '"page 2"' in kept.cursor


@pytest.mark.case("L04")
def test_a_pin_that_comes_after_the_cancellation_fills_an_empty_slot(daemon: Daemon, order: Order) -> None:
    daemon.prompt(order, prompted=prompted_of(order, "n-1"))
    daemon.write(lambda connection: cancel_run(connection, order.run))
    daemon.finish(order, Stopped())
    late = daemon.report(order, pin=pin_of(order.plan, "n-1"))
    assert (late.held, late.pinned) == (False, PinReason.FIRST)
    daemon.say("two")
    daemon.answer(daemon.claim_one(), Evidence.CUT_OFF)
    after = daemon.claim_one()
    assert (after.plan.outcome, after.plan.native_id) == (Outcome.RESUME, "n-1")
    # It was told the first entry before it was stopped.
    assert bodies(after) == ["two"]


@pytest.mark.case("L04", "P20")
@pytest.mark.parametrize("pinned", [None, "n-1"])
def test_a_pin_that_comes_after_a_good_end_has_seen_what_was_told(
    daemon: Daemon, order: Order, pinned: str | None
) -> None:
    daemon.prompt(order, pinned, prompted=prompted_of(order, pinned, **({} if pinned else {"session": None})))
    daemon.finish(order)
    late = daemon.report(order, pin=pin_of(order.plan, "n-2"))
    assert late.pinned is (PinReason.FIRST if pinned is None else PinReason.NEW_GENERATION)
    # A run that has ended stays in the session that it ended in; the lane goes on in the newest.
    (kept,) = daemon.rows(sessions, id=daemon.run(order.run).session_id)
    assert kept.native_id == (pinned or "n-2")
    daemon.say("two")
    after = daemon.claim_one()
    assert (after.plan.native_id, bodies(after)) == ("n-2", ["done", "two"])


@pytest.mark.case("L04")
def test_a_late_pin_never_replaces_a_newer_one(daemon: Daemon, order: Order) -> None:
    daemon.prompt(order)
    daemon.write(lambda connection: cancel_run(connection, order.run))
    daemon.finish(order, replace(STOPPED, heard=said(Evidence.UNSENT)))
    daemon.say("two")
    daemon.serve("n-2")
    late = daemon.report(order, pin=pin_of(order.plan, "n-1"))
    assert late.pinned is PinReason.LATE
    assert daemon.sessions() == [(1, "n-2", "healthy")]


# ---------------------------------------------------------------- plans that were settled otherwise


@pytest.mark.case("P08")
def test_a_session_that_refuses_is_left_and_a_new_one_takes_the_prompt_once(daemon: Daemon, order: Order) -> None:
    daemon.prompt(order, "n-1")
    daemon.finish(order)
    daemon.say("two")
    second = daemon.claim_one()
    assert second.session == order.session
    daemon.prompt(second)
    refused = settle(second.plan, Probe(ProbeKind.REJECTED, signal=REFUSED))
    assert refused.outcome is Outcome.RESEED
    once_more = prompted_of(second, session=pin_of(refused, "n-2"))
    anew: dict[str, Any] = {"reopens": True, "settled": (refused,), "told": refused.situation.head}
    anew["prompted"] = once_more
    answer = daemon.report(second, **anew)
    assert (answer.state, answer.may_prompt) == (RunState.RUNNING, True)
    # The answer was lost: said again, it is the same one try.
    assert daemon.report(second, **anew).may_prompt
    run = daemon.run(second.run)
    assert (run.reopened, run.prompt_sent, read_prompted(run.prompt)) == (1, 1, once_more)
    assert daemon.sessions() == [(1, "n-1", "poisoned")]
    made = daemon.database.read(lambda connection: decisions_of(connection, second.run))
    assert [(each["step"], each["outcome"]) for each in made] == [(0, "resume"), (1, "reseed")]
    # A second new session is not to be had.
    third = daemon.report(second, reopens=True)
    assert (third.may_prompt, third.words) == (False, f"Run {second.run} is running; reopen is not possible now.")
    assert daemon.run(second.run).state == "running"
    daemon.report(second, pin=pin_of(refused, "n-2"))
    daemon.finish(second)
    assert daemon.sessions() == [(1, "n-1", "poisoned"), (2, "n-2", "healthy")]


@pytest.mark.case("P08")
def test_once_a_tool_has_run_there_is_no_second_session(daemon: Daemon, order: Order) -> None:
    daemon.prompt(order, "n-1")
    daemon.report(order, tool_ran=True)
    answer = daemon.report(order, reopens=True, told=1, prompted=prompted_of(order))
    assert (answer.held, answer.may_prompt) == (True, False)
    assert answer.words == f"Run {order.run} is running; reopen is not possible now."
    run = daemon.run(order.run)
    assert (run.reopened, run.prompt_sent, run.tool_ran, run.state) == (0, 1, 1, "running")


@pytest.mark.case("P09", "P19")
def test_a_session_that_was_left_is_not_taken_for_the_one_that_took_the_prompt(daemon: Daemon, order: Order) -> None:
    daemon.prompt(order, "n-1")
    daemon.finish(order)
    daemon.say("two")
    second = daemon.claim_one()
    refused = settle(second.plan, Probe(ProbeKind.REJECTED, signal=REFUSED))
    daemon.report(second, opens=True, settled=(refused,))
    daemon.prompt(second, opens=False, prompted=prompted_of(second, session=None))
    # It was taken by a session that nobody can find again, so it is not sent again.
    ended = daemon.finish(second, TRANSIENT)
    assert ended.retry is not None
    assert (ended.retry.redo, ended.retry.reason.code) == (None, "retry:not-resent")
    assert daemon.sessions() == [(1, "n-1", "poisoned")]
    assert [row.state for row in daemon.rows(wakes, "accepted_at")] == ["served", "cancelled"]


def test_a_session_that_was_found_after_all_is_the_one_that_is_told(daemon: Daemon, order: Order) -> None:
    daemon.prompt(order, "n-1")
    daemon.finish(order)
    daemon.put(sessions, {"native_id": "n-1"}, directory="/srv/other")
    daemon.put_capability("fork_into", True)
    daemon.say("two")
    second = daemon.claim_one()
    assert (second.plan.outcome, second.plan.reason.code) == (Outcome.FORK, "directory:fork")
    found = settle(second.plan, Probe(ProbeKind.FOUND_HERE))
    assert found.outcome is Outcome.RESUME
    daemon.prompt(second, settled=(found,), prompted=prompted_of(second, session=pin_of(found, "n-1")))
    daemon.finish(second)
    (kept,) = daemon.rows(sessions)
    assert (kept.turns, kept.seen) == (2, 4)
    assert daemon.run(second.run).session_id == order.session


@pytest.mark.case("C16")
def test_a_fork_is_not_taken_for_the_session_it_was_forked_from(daemon: Daemon, order: Order) -> None:
    daemon.prompt(order, "n-1")
    daemon.finish(order)
    daemon.put_capability("fork_into", True)
    daemon.say("two")
    second = daemon.claim_one()
    assert (second.plan.outcome, second.session) == (Outcome.RESUME, order.session)
    forked = settle(second.plan, Probe(ProbeKind.FOUND_ELSEWHERE, Directory("/srv/other")))
    assert forked.outcome is Outcome.FORK
    daemon.report(second, opens=True, settled=(forked,))
    assert daemon.run(second.run).session_id != order.session


# ---------------------------------------------------------------- fresh starts


@pytest.mark.case("C03", "W02")
def test_a_fresh_start_that_began_is_not_made_again_by_its_retry(daemon: Daemon, order: Order) -> None:
    daemon.prompt(order, "n-1")
    daemon.finish(order)
    daemon.accept(freshness=Freshness.FRESH, reason=WakeReason.ASSIGNMENT)
    daemon.serve("n-2", TRANSIENT)
    daemon.put(runs, {"state": "queued"}, not_before=None)
    daemon.put(wakes, {"state": "pending"}, not_before=None)
    again = daemon.claim_one()
    assert (again.plan.outcome, again.plan.native_id) == (Outcome.RESUME, "n-2")
    assert again.plan.situation.demand.reasons == (WakeReason.RETRY,)
    assert (again.plan.already_told, numbers(again)) == ((3,), [])


@pytest.mark.case("W02")
def test_a_fresh_start_that_never_began_is_still_demanded(daemon: Daemon, order: Order) -> None:
    daemon.prompt(order, "n-1")
    daemon.finish(order)
    daemon.accept(freshness=Freshness.FRESH)
    lost = daemon.claim_one()
    daemon.put(runs, {"id": lost.run}, lease_until=1.0)
    daemon.write(lambda connection: expire(connection, 0.0))
    again = daemon.claim_one()
    assert (again.plan.outcome, again.plan.reason.code) == (Outcome.BLANK, "reset:demanded")
