"""A run's states, its fence, and what its end means for the wakes it carried."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clew.kernel.ids import LaneId, RunId, SessionId
from clew.kernel.run import (
    BY_SERVER,
    CARRYING,
    LIVE,
    RUN_ENDS,
    RUN_TABLE,
    SETTLEMENTS,
    Run,
    RunEvent,
    RunOutcome,
    RunRefusal,
    RunState,
    Settlement,
    apply,
    holds,
    wakes_on,
)
from clew.kernel.wake import WAKE_ENDS, WakeEnd, WakeEvent, WakeState, advance_wake

GRID = """
            queued     claimed    opening    running    waiting    stopping
claim       claimed    -          -          -          -          -
open        -          opening    -          -          -          stopping
reopen      -          -          opening    opening    -          -
prompt      -          -          running    -          -          -
tool        -          -          -          running    waiting    stopping
ask         -          -          -          waiting    waiting    stopping
answer      -          -          -          -          running    stopping
renew       -          claimed    opening    running    waiting    stopping
return      -          queued     queued     -          -          cancelled
succeed     -          -          -          succeeded  succeeded  cancelled
recover     -          succeeded  succeeded  succeeded  succeeded  cancelled
fail        -          failed     failed     failed     failed     cancelled
stopped     -          -          -          cancelled  cancelled  cancelled
cancel      cancelled  stopping   stopping   stopping   stopping   stopping
lapse       -          queued     queued     lost       lost       cancelled
restart     -          queued     queued     lost       lost       cancelled
"""


def _grid() -> dict[tuple[RunState, RunEvent], RunState]:
    head, *rows = (line.split() for line in GRID.strip().splitlines())
    return {
        (RunState(state), RunEvent(event)): RunState(then)
        for event, *cells in rows
        for state, then in zip(head, cells, strict=True)
        if then != "-"
    }


def _run(state: RunState = RunState.RUNNING, attempt: int = 3) -> Run:
    queued = state is RunState.QUEUED or state in RUN_ENDS
    return Run(RunId("r1"), LaneId("l1"), state, attempt, lease_until=None if queued else 100.0)


EVERY = [(state, event) for state in RunState for event in RunEvent]


def test_the_table_is_the_grid() -> None:
    assert _grid() == RUN_TABLE


@pytest.mark.parametrize(("state", "event"), EVERY)
def test_every_event_in_every_state_moves_the_run_or_says_why_not(state: RunState, event: RunEvent) -> None:
    run = _run(state)
    applied = apply(run, event, 3, lease_until=200.0)
    then = RUN_TABLE.get((state, event))
    assert (applied.event, applied.attempt) == (event, 3)
    if state in RUN_ENDS:
        assert (applied.run, applied.refused) == (run, RunRefusal.FINAL)
    elif state is RunState.QUEUED and event not in BY_SERVER:
        assert (applied.run, applied.refused) == (run, RunRefusal.STALE)
    elif then is None:
        assert (applied.run, applied.refused) == (run, RunRefusal.IMPOSSIBLE)
    else:
        assert (applied.run.state, applied.refused, applied.words) == (then, None, "")
    if applied.refused:
        assert not applied.settles
        assert applied.run is run
        assert applied.words


def test_the_sets_of_states_divide_them() -> None:
    assert {"succeeded", "failed", "cancelled", "lost"} == RUN_ENDS
    assert {"claimed", "opening", "running", "waiting"} == CARRYING
    assert {"stopping"} == LIVE - CARRYING
    assert frozenset(RunState) == RUN_ENDS | LIVE | {"queued"}
    assert {"claim", "cancel", "lapse", "restart"} == BY_SERVER
    assert {state for state, _ in RUN_TABLE}.isdisjoint(RUN_ENDS)


def test_a_new_run_is_queued_and_has_done_nothing() -> None:
    assert Run(RunId("r"), LaneId("l")) == Run(
        RunId("r"), LaneId("l"), RunState.QUEUED, 0, None, None, prompt_sent=False, tool_ran=False, reopened=False
    )


@pytest.mark.case("R03")
def test_a_claim_raises_the_fence_by_one_and_takes_a_lease() -> None:
    applied = apply(_run(RunState.QUEUED), RunEvent.CLAIM, 3, lease_until=160.0)
    assert applied.run == replace(_run(RunState.CLAIMED, attempt=4), lease_until=160.0)
    assert not applied.settles


@pytest.mark.case("R03")
@pytest.mark.parametrize("attempt", [2, 4])
@pytest.mark.parametrize(("state", "event"), EVERY)
def test_another_attempt_changes_nothing(state: RunState, event: RunEvent, attempt: int) -> None:
    run = replace(_run(state), session=SessionId("s1"))
    applied = apply(run, event, attempt, lease_until=999.0)
    assert applied.run is run
    assert applied.refused is RunRefusal.STALE
    assert not applied.settles
    assert applied.words == f"Attempt {attempt} does not hold run r1, which is {state} at attempt 3."


@pytest.mark.case("R03")
def test_a_daemon_that_lost_its_lease_is_refused_even_before_the_next_claim() -> None:
    queued = apply(_run(RunState.OPENING), RunEvent.LAPSE, 3).run
    late = apply(queued, RunEvent.PROMPT, 3)
    assert late.refused is RunRefusal.STALE
    assert late.words == "Attempt 3 does not hold run r1, which is queued at attempt 3."


@pytest.mark.case("R03", "L04")
@pytest.mark.parametrize("state", list(RunState))
def test_the_fence_lets_the_holder_write_even_late_and_nobody_else(state: RunState) -> None:
    assert holds(_run(state), 3) is (state is not RunState.QUEUED)
    assert not holds(_run(state), 2)
    assert not holds(_run(state), 4)


@pytest.mark.case("L03")
def test_complete_before_cancel_stays_succeeded_and_the_cancel_is_told() -> None:
    done = apply(_run(), RunEvent.SUCCEED, 3)
    assert (done.run.state, done.settles) == (RunState.SUCCEEDED, True)
    late = apply(done.run, RunEvent.CANCEL, 3)
    assert (late.run, late.refused, late.settles) == (done.run, RunRefusal.FINAL, False)
    assert late.words == "Run r1 has already ended as succeeded; cancel comes too late."


@pytest.mark.case("L03")
def test_cancel_before_complete_ends_cancelled_and_settles_the_wakes_once() -> None:
    asked = apply(_run(), RunEvent.CANCEL, 3)
    assert (asked.run.state, asked.settles) == (RunState.STOPPING, True)
    done = apply(asked.run, RunEvent.SUCCEED, 3)
    assert (done.run.state, done.refused, done.settles) == (RunState.CANCELLED, None, False)


@pytest.mark.case("L03")
def test_a_cancelled_run_keeps_the_session_it_pinned() -> None:
    run = replace(_run(), session=SessionId("s1"))
    for event in (RunEvent.CANCEL, RunEvent.STOPPED):
        run = apply(run, event, 3).run
    assert (run.state, run.session) == (RunState.CANCELLED, "s1")


@pytest.mark.case("L05")
@pytest.mark.parametrize("state", sorted(CARRYING))
@pytest.mark.parametrize(
    "end", [RunEvent.STOPPED, RunEvent.FAIL, RunEvent.RETURN, RunEvent.SUCCEED, RunEvent.LAPSE, RunEvent.RESTART]
)
def test_an_interrupted_run_ends_cancelled_whatever_its_agent_does(state: RunState, end: RunEvent) -> None:
    stopping = apply(_run(state), RunEvent.CANCEL, 3).run
    assert stopping.state is RunState.STOPPING
    assert apply(stopping, end, 3).run.state is RunState.CANCELLED


@pytest.mark.case("L05")
def test_a_stopping_run_may_not_send_its_prompt() -> None:
    stopping = apply(_run(RunState.OPENING), RunEvent.CANCEL, 3).run
    refused = apply(stopping, RunEvent.PROMPT, 3)
    assert refused.refused is RunRefusal.IMPOSSIBLE
    assert refused.words == "Run r1 is stopping; prompt is not possible now."


@pytest.mark.case("R05", "L01")
@pytest.mark.parametrize("event", [RunEvent.RESTART, RunEvent.LAPSE])
@pytest.mark.parametrize("state", sorted(LIVE))
def test_a_crash_settles_a_run_at_once(state: RunState, event: RunEvent) -> None:
    applied = apply(_run(state), event, 3)
    assert applied.run.state in RUN_ENDS | {RunState.QUEUED}
    assert applied.run.lease_until is None
    assert applied.settles is (state in CARRYING)


@pytest.mark.case("P09")
@pytest.mark.parametrize("event", list(RunEvent))
@pytest.mark.parametrize("state", [RunState.RUNNING, RunState.WAITING])
def test_a_run_whose_prompt_went_out_is_never_queued_again(state: RunState, event: RunEvent) -> None:
    run = replace(_run(state), prompt_sent=True, tool_ran=True)
    after = apply(run, event, 3, lease_until=200.0).run
    assert after.state not in (RunState.QUEUED, RunState.CLAIMED, RunState.OPENING)
    assert after.prompt_sent


def test_the_flags_say_how_far_the_run_came() -> None:
    run = apply(_run(RunState.OPENING), RunEvent.RENEW, 3, lease_until=150.0).run
    assert (run.prompt_sent, run.tool_ran, run.reopened) == (False, False, False)
    run = apply(run, RunEvent.PROMPT, 3).run
    assert (run.prompt_sent, run.tool_ran, run.reopened) == (True, False, False)
    run = apply(run, RunEvent.TOOL, 3).run
    assert (run.prompt_sent, run.tool_ran, run.reopened) == (True, True, False)
    run = apply(run, RunEvent.FAIL, 3).run
    assert (run.prompt_sent, run.tool_ran, run.reopened) == (True, True, False)


@pytest.mark.case("P08")
def test_a_rejected_resume_is_reopened_once() -> None:
    run = apply(replace(_run(), prompt_sent=True), RunEvent.REOPEN, 3).run
    assert (run.state, run.prompt_sent, run.reopened) == (RunState.OPENING, False, True)
    again = apply(run, RunEvent.REOPEN, 3)
    assert (again.run, again.refused) == (run, RunRefusal.IMPOSSIBLE)
    run = apply(run, RunEvent.PROMPT, 3).run
    assert (run.prompt_sent, run.reopened) == (True, True)


@pytest.mark.case("P08")
def test_a_run_that_used_a_tool_is_not_reopened() -> None:
    run = apply(replace(_run(), prompt_sent=True), RunEvent.TOOL, 3).run
    again = apply(run, RunEvent.REOPEN, 3)
    assert (again.run, again.refused) == (run, RunRefusal.IMPOSSIBLE)


@pytest.mark.case("R02")
@pytest.mark.parametrize("event", [RunEvent.CLAIM, RunEvent.RENEW])
def test_no_run_is_held_without_a_lease(event: RunEvent) -> None:
    with pytest.raises(ValueError, match=f"^a {event} needs lease_until: without it the run could be held forever$"):
        apply(_run(), event, 3)


def test_a_lease_is_kept_renewed_and_dropped() -> None:
    assert apply(_run(), RunEvent.TOOL, 3).run.lease_until == 100.0
    assert apply(_run(), RunEvent.TOOL, 3, lease_until=0.0).run.lease_until == 0.0
    assert apply(_run(), RunEvent.RENEW, 3, lease_until=170.0).run.lease_until == 170.0
    assert apply(_run(), RunEvent.CANCEL, 3).run.lease_until == 100.0
    assert apply(_run(), RunEvent.SUCCEED, 3, lease_until=170.0).run.lease_until is None
    assert apply(_run(RunState.CLAIMED), RunEvent.RETURN, 3, lease_until=170.0).run.lease_until is None


@pytest.mark.case("L01")
@given(st.lists(st.tuples(st.sampled_from(RunEvent), st.integers(-1, 1)), max_size=40))
def test_ends_absorb_everything_and_the_fence_only_rises(script: list[tuple[RunEvent, int]]) -> None:
    run, settled = _run(RunState.QUEUED, attempt=0), 0
    for event, off in script:
        applied = apply(run, event, run.attempt + off, lease_until=50.0)
        after = applied.run
        assert after.attempt == run.attempt + (applied.refused is None and event is RunEvent.CLAIM)
        assert run.state not in RUN_ENDS or after is run
        assert (after.lease_until is not None) is (after.state in LIVE)
        assert applied.settles is (run.state in CARRYING and after.state not in CARRYING)
        settled += applied.settles
        run = after
    assert settled == run.attempt - (run.state in CARRYING)


@pytest.mark.case("W08")
@pytest.mark.parametrize(
    "outcome", [RunOutcome.RETRYING, RunOutcome.RETURNED, RunOutcome.LEASE_LOST, RunOutcome.RESTARTED]
)
def test_a_run_that_failed_leaves_its_wakes_pending(outcome: RunOutcome) -> None:
    assert advance_wake(WakeState.CLAIMED, wakes_on(outcome).wakes) is WakeState.PENDING


@pytest.mark.case("W07", "L01")
@pytest.mark.parametrize("outcome", list(RunOutcome))
def test_every_outcome_settles_run_and_wakes(outcome: RunOutcome) -> None:
    settlement = wakes_on(outcome)
    then = advance_wake(WakeState.CLAIMED, settlement.wakes)
    assert then in WAKE_ENDS | {WakeState.PENDING}
    completed = (RunOutcome.ANSWERED, RunOutcome.NO_REPLY, RunOutcome.READ_BACK)
    assert (then is WakeState.SERVED) is (outcome in completed)
    assert (then is WakeState.CANCELLED) is (settlement.why is not None)
    assert any((state, settlement.run) in RUN_TABLE for state in CARRYING)
    for state in CARRYING:
        applied = apply(_run(state), settlement.run, 3)
        assert applied.settles is (applied.refused is None)


def test_the_settlements_by_cause() -> None:
    cancel = WakeEvent.CANCEL
    assert set(SETTLEMENTS) == set(RunOutcome)
    assert wakes_on(RunOutcome.ANSWERED) == Settlement(RunEvent.SUCCEED, WakeEvent.SERVE)
    assert wakes_on(RunOutcome.READ_BACK) == Settlement(RunEvent.RECOVER, WakeEvent.SERVE)
    assert wakes_on(RunOutcome.RETRYING) == Settlement(RunEvent.FAIL, WakeEvent.RELEASE)
    assert wakes_on(RunOutcome.GAVE_UP) == Settlement(RunEvent.FAIL, cancel, WakeEnd.GAVE_UP)
    assert wakes_on(RunOutcome.RETURNED) == Settlement(RunEvent.RETURN, WakeEvent.RELEASE)
    assert wakes_on(RunOutcome.LEASE_LOST) == Settlement(RunEvent.LAPSE, WakeEvent.RELEASE)
    assert wakes_on(RunOutcome.RESTARTED) == Settlement(RunEvent.RESTART, WakeEvent.RELEASE)
    assert wakes_on(RunOutcome.INTERRUPTED) == Settlement(RunEvent.CANCEL, WakeEvent.RELEASE)
    assert wakes_on(RunOutcome.STOPPED) == Settlement(RunEvent.STOPPED, cancel, WakeEnd.BY_USER)
    assert wakes_on(RunOutcome.BY_USER) == Settlement(RunEvent.CANCEL, cancel, WakeEnd.BY_USER)
    assert wakes_on(RunOutcome.REASSIGNED) == Settlement(RunEvent.CANCEL, cancel, WakeEnd.REASSIGNED)
    assert wakes_on(RunOutcome.CLOSED) == Settlement(RunEvent.CANCEL, cancel, WakeEnd.CLOSED)


def test_an_outcome_names_its_cause() -> None:
    assert RunOutcome.RETRYING.fill(why="busy.") == "Failed. busy."
    assert RunOutcome.GAVE_UP.fill(why="bad key.") == "Failed, not retrying: bad key."
    assert RunOutcome.RETURNED.fill(why="no directory.") == "Back in the queue: no directory."


@pytest.mark.case("C35")
@pytest.mark.parametrize("state", sorted(CARRYING))
def test_a_reply_is_read_back_however_far_the_run_had_come(state: RunState) -> None:
    """One that only asked the store never opened anything; one whose turn was lost on the way was running."""
    applied = apply(_run(state), RunEvent.RECOVER, 3)
    assert (applied.run.state, applied.settles) == (RunState.SUCCEEDED, True)
    assert RunEvent.RECOVER not in BY_SERVER


@pytest.mark.case("P08", "P09")
def test_an_agent_that_asked_has_taken_the_prompt() -> None:
    run = _run(RunState.OPENING)
    for event in (RunEvent.PROMPT, RunEvent.ASK, RunEvent.ANSWER):
        run = apply(run, event, 3).run
    assert apply(run, RunEvent.REOPEN, 3).refused is RunRefusal.IMPOSSIBLE


@pytest.mark.case("R02")
def test_a_renewal_never_shortens_a_lease() -> None:
    run = _run()
    assert run.lease_until == 100.0
    assert apply(run, RunEvent.RENEW, 3, lease_until=99.0).run.lease_until == 100.0
    assert apply(run, RunEvent.RENEW, 3, lease_until=101.0).run.lease_until == 101.0
