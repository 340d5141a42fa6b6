"""What follows a failure: when it is tried again, how, and what is never sent twice."""

from itertools import product
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clew.kernel.evidence import HELD_BY_AGENT, Evidence
from clew.kernel.retry import (
    REDO_TABLE,
    Failure,
    FailureKind,
    Redo,
    RetryChoice,
    RetryPolicy,
    RetryReason,
    RetryStep,
    backoff,
    retry,
)

POLICY = RetryPolicy(
    max_tries=5, base=5.0, factor=2.0, cap=60.0, spread=0.5, return_within=120.0, longest_hold=86_400.0
)
NOW = 1000.0

failures = st.builds(
    Failure,
    kind=st.sampled_from(FailureKind),
    why=st.just("it broke."),
    evidence=st.sampled_from(Evidence),
    continues=st.booleans(),
    tool_ran=st.booleans(),
    reopened=st.booleans(),
    reset_at=st.none() | st.floats(0, 1e6),
)
jitters = st.floats(0, 1, exclude_max=True)


UNSENT, TAKEN, CUT_OFF = Evidence.UNSENT, Evidence.TAKEN, Evidence.CUT_OFF
FINISHED, UNKNOWN = Evidence.FINISHED, Evidence.UNKNOWN


def _failure(
    kind: FailureKind, evidence: Evidence = UNSENT, *, continues: bool = True, reset_at: float | None = None
) -> Failure:
    return Failure(kind, "it broke.", evidence, continues, reset_at=reset_at)


def _retry(failure: Failure, tries: int = 1, jitter: float = 0.0) -> RetryChoice:
    return retry(failure, tries, POLICY, NOW, jitter)


def test_the_usual_policy() -> None:
    assert RetryPolicy() == RetryPolicy(5, 50, 300.0, 5.0, 2.0, 900.0, 0.5, 120.0, 691_200.0)


GRID = """
                 unsent   taken     cut-off   finished  unknown
transient        resend   continue  continue  -         ask-first
outage           resend   continue  continue  -         ask-first
usage-limit      resend   continue  continue  -         ask-first
crashed          resend   continue  continue  -         ask-first
interrupted      resend   continue  continue  -         ask-first
unknown          resend   -         -         -         ask-first
permanent        -        -         -         -         -
resume-rejected  -        -         -         -         -
"""


def _grid() -> dict[tuple[FailureKind, Evidence], Redo]:
    head, *rows = (line.split() for line in GRID.strip().splitlines())
    return {
        (FailureKind(kind), Evidence(evidence)): Redo(cell)
        for kind, *cells in rows
        for evidence, cell in zip(head, cells, strict=True)
        if cell != "-"
    }


@pytest.mark.case("P09", "P19")
def test_what_may_be_done_again_by_itself() -> None:
    assert _grid() == REDO_TABLE


@pytest.mark.case("C35", "P09", "P19")
@pytest.mark.parametrize("kind", list(FailureKind))
def test_every_failure_with_every_evidence(kind: FailureKind) -> None:
    """All of it: what is known of the prompt, whether its session can be found, and how far the run had come."""
    looked = 0
    for evidence, continues, tool_ran, reopened, tries in product(
        Evidence, (True, False), (True, False), (True, False), (1, POLICY.most_tries(kind))
    ):
        failure = Failure(kind, "it broke.", evidence, continues, tool_ran=tool_ran, reopened=reopened)
        choice = _retry(failure, tries)
        looked += 1
        assert (choice.at is None) is (choice.redo is None) is (choice.step in (RetryStep.GIVE_UP, RetryStep.ASK))
        if evidence in HELD_BY_AGENT:
            assert choice.redo is not Redo.RESEND, "what was taken is never sent again"
        if evidence is FINISHED:
            assert choice.redo is None, "a run whose reply is there has not failed"
        if evidence is UNSENT:
            assert choice.redo in (Redo.RESEND, None), "what was not taken is neither gone on with nor asked for"
        if choice.redo is Redo.CONTINUE:
            assert continues
            assert evidence in (TAKEN, CUT_OFF)
        if choice.redo is Redo.ASK_FIRST:
            assert evidence is UNKNOWN
            assert choice.wait == 0.0
        if kind in (FailureKind.PERMANENT, FailureKind.RESUME_REJECTED):
            assert choice.redo in (None, Redo.RESEND)
        elif evidence is UNKNOWN:
            assert choice.redo is Redo.ASK_FIRST, "asking costs nothing, however often it failed"
        elif tries == POLICY.most_tries(kind):
            assert choice.redo is None
    assert looked == 5 * 2 * 2 * 2 * 2


@pytest.mark.case("L06")
def test_the_delay_grows_up_to_the_cap() -> None:
    assert [backoff(tries, POLICY, 0.0, POLICY.cap) for tries in range(1, 7)] == [5.0, 10.0, 20.0, 40.0, 60.0, 60.0]


@pytest.mark.case("L06")
def test_jitter_takes_off_up_to_the_spread() -> None:
    assert backoff(2, POLICY, 0.5, POLICY.cap) == 7.5
    assert backoff(2, POLICY, 0.999_999, POLICY.cap) == pytest.approx(5.0, abs=1e-4)
    assert backoff(5, POLICY, 0.5, POLICY.cap) == 45.0
    assert backoff(3, RetryPolicy(base=5.0, spread=0.0), 0.9, 60.0) == 20.0


@pytest.mark.case("L06")
def test_the_delay_stays_bounded_after_any_number_of_tries() -> None:
    assert backoff(10_000, POLICY, 0.0, POLICY.cap) == 60.0
    assert backoff(10_000, RetryPolicy(base=1, factor=2), 0.0, 7) == 7
    assert backoff(10_000, RetryPolicy(base=3.0, factor=1.0), 0.0, 60.0) == 3.0


@pytest.mark.case("L06")
@given(
    st.integers(1, 10_000),
    st.integers(1, 10_000),
    st.floats(0.001, 100),
    st.floats(1, 10),
    st.floats(0.001, 1e6),
    st.floats(0, 1),
    jitters,
)
def test_backoff_never_shrinks_and_never_passes_the_cap(
    few: int, many: int, base: float, factor: float, cap: float, spread: float, jitter: float
) -> None:
    few, many = sorted((few, many))
    policy = RetryPolicy(base=base, factor=factor, spread=spread)
    assert 0.0 <= backoff(few, policy, jitter, cap) <= backoff(many, policy, jitter, cap) <= cap


@pytest.mark.case("L06")
def test_a_transient_failure_is_tried_again_later_in_the_same_session() -> None:
    failure = _failure(FailureKind.TRANSIENT, CUT_OFF)
    choice = _retry(failure, tries=2, jitter=0.5)
    assert choice == RetryChoice(
        RetryStep.AGAIN, RetryReason.BACKOFF, failure, 2, POLICY, wait=7.5, at=1007.5, redo=Redo.CONTINUE
    )
    assert choice.words == "Trying again (try 3 of 5): it broke."


@pytest.mark.case("L06")
@pytest.mark.parametrize("evidence", list(Evidence))
def test_a_permanent_failure_is_not_retried_and_says_why(evidence: Evidence) -> None:
    failure = _failure(FailureKind.PERMANENT, evidence)
    choice = _retry(failure)
    assert choice == RetryChoice(RetryStep.GIVE_UP, RetryReason.PERMANENT, failure, 1, POLICY)
    assert (choice.wait, choice.at, choice.redo) == (0.0, None, None)
    assert choice.words == "it broke."


@pytest.mark.case("L06")
def test_tries_are_bounded() -> None:
    failure = _failure(FailureKind.TRANSIENT)
    assert _retry(failure, tries=4).step is RetryStep.AGAIN
    for tries in (5, 6):
        choice = _retry(failure, tries=tries)
        assert choice == RetryChoice(RetryStep.GIVE_UP, RetryReason.TRIED_OUT, failure, tries, POLICY)
        assert choice.words == f"Tried {tries} times, which is the limit: it broke."


@pytest.mark.case("P09", "P19")
@given(failures, st.integers(1, 10), jitters)
def test_a_prompt_an_agent_has_taken_is_never_sent_again(failure: Failure, tries: int, jitter: float) -> None:
    choice = _retry(failure, tries, jitter)
    if failure.evidence in HELD_BY_AGENT:
        assert choice.redo in (None, Redo.CONTINUE)
    if choice.redo is Redo.CONTINUE:
        assert failure.evidence in HELD_BY_AGENT
        assert failure.continues
    assert (choice.at is None) is (choice.redo is None)
    assert (choice.redo is None) is (choice.step in (RetryStep.GIVE_UP, RetryStep.ASK))
    assert choice.at is None or choice.at >= NOW
    assert "it broke." in choice.words


@pytest.mark.case("P09", "P19")
@pytest.mark.parametrize(
    "failure",
    [
        _failure(FailureKind.TRANSIENT, TAKEN, continues=False),
        _failure(FailureKind.CRASHED, CUT_OFF, continues=False),
        _failure(FailureKind.CRASHED, FINISHED),
        _failure(FailureKind.UNKNOWN, TAKEN),
        _failure(FailureKind.UNKNOWN, CUT_OFF),
    ],
)
def test_a_prompt_that_was_taken_and_cannot_go_on_needs_a_person(failure: Failure) -> None:
    choice = _retry(failure)
    assert choice == RetryChoice(RetryStep.ASK, RetryReason.NOT_RESENT, failure, 1, POLICY)
    assert choice.words == "The agent took the prompt, so it is not sent again: it broke."


@pytest.mark.case("P19")
@pytest.mark.parametrize("tries", [1, 5, 6])
@pytest.mark.parametrize("continues", [True, False])
@pytest.mark.parametrize(
    "kind",
    [
        FailureKind.TRANSIENT,
        FailureKind.CRASHED,
        FailureKind.INTERRUPTED,
        FailureKind.UNKNOWN,
        FailureKind.USAGE_LIMIT,
    ],
)
def test_a_prompt_whose_fate_nobody_knows_is_asked_for_first(kind: FailureKind, continues: bool, tries: int) -> None:
    failure = _failure(kind, UNKNOWN, continues=continues)
    choice = _retry(failure, tries)
    expected = RetryChoice(RetryStep.AGAIN, RetryReason.ASK_FIRST, failure, tries, POLICY, at=NOW, redo=Redo.ASK_FIRST)
    assert choice == expected
    assert choice.words == "First checking in the agent's own store whether it took the prompt: it broke."


@pytest.mark.case("C39", "L01", "P12")
@pytest.mark.parametrize("evidence", [TAKEN, CUT_OFF])
def test_an_agent_killed_after_it_took_the_prompt_is_resumed_and_not_prompted_again(evidence: Evidence) -> None:
    failure = _failure(FailureKind.CRASHED, evidence)
    choice = _retry(failure)
    assert (choice.step, choice.reason) == (RetryStep.AGAIN, RetryReason.BACKOFF)
    assert (choice.at, choice.redo) == (1005.0, Redo.CONTINUE)


@pytest.mark.case("L01", "R05")
@pytest.mark.parametrize(("evidence", "redo"), [(UNSENT, Redo.RESEND), (TAKEN, Redo.CONTINUE)])
def test_what_a_restart_interrupted_goes_on_at_once(evidence: Evidence, redo: Redo) -> None:
    failure = _failure(FailureKind.INTERRUPTED, evidence)
    choice = _retry(failure, jitter=0.5)
    assert choice == RetryChoice(RetryStep.AGAIN, RetryReason.AT_ONCE, failure, 1, POLICY, at=1000.0, redo=redo)
    assert choice.words == "Trying again now (try 2 of 5): it broke."
    assert _retry(failure, tries=5).reason is RetryReason.TRIED_OUT


@pytest.mark.case("L10")
def test_a_usage_limit_holds_until_its_reset_and_returns_spread_out() -> None:
    failure = _failure(FailureKind.USAGE_LIMIT, CUT_OFF, reset_at=1600.0)
    choice = _retry(failure)
    assert choice == RetryChoice(
        RetryStep.HOLD, RetryReason.USAGE_LIMIT, failure, 1, POLICY, wait=600.0, at=1600.0, redo=Redo.CONTINUE
    )
    assert choice.words == "Waiting for the usage limit to reset: it broke."
    assert _retry(failure, jitter=0.25).at == 1630.0


@pytest.mark.case("L10")
def test_a_reset_that_has_passed_still_returns_spread_out() -> None:
    failure = _failure(FailureKind.USAGE_LIMIT, reset_at=10.0)
    choice = _retry(failure, jitter=0.5)
    assert (choice.step, choice.at, choice.redo) == (RetryStep.HOLD, 1060.0, Redo.RESEND)


@pytest.mark.case("L10")
def test_a_usage_limit_is_not_waited_for_without_bound() -> None:
    edge = _failure(FailureKind.USAGE_LIMIT, reset_at=NOW + 86_400.0)
    assert _retry(edge).step is RetryStep.HOLD
    assert _retry(edge, tries=POLICY.outage_tries).reason is RetryReason.TRIED_OUT
    beyond = _failure(FailureKind.USAGE_LIMIT, reset_at=NOW + 86_401.0)
    choice = _retry(beyond)
    assert choice == RetryChoice(RetryStep.ASK, RetryReason.TOO_LONG, beyond, 1, POLICY, wait=86_401.0)
    assert choice.words == "The usage limit resets in 1 days, too long to wait unasked: it broke."


@pytest.mark.case("L10")
def test_a_usage_limit_without_a_reset_time_backs_off() -> None:
    choice = _retry(_failure(FailureKind.USAGE_LIMIT), tries=3)
    assert (choice.step, choice.reason, choice.at) == (RetryStep.AGAIN, RetryReason.BACKOFF, 1020.0)


def test_only_a_usage_limit_waits_for_a_reset() -> None:
    choice = _retry(_failure(FailureKind.TRANSIENT, reset_at=5000.0))
    assert (choice.reason, choice.at) == (RetryReason.BACKOFF, 1005.0)


@pytest.mark.case("P08")
@pytest.mark.parametrize("evidence", [UNSENT, UNKNOWN])
def test_a_rejected_resume_gets_one_new_session(evidence: Evidence) -> None:
    """Where it is not known whether it took the prompt, the next run asks before it sends anything."""
    failure = _failure(FailureKind.RESUME_REJECTED, evidence)
    choice = _retry(failure, tries=9, jitter=0.5)
    assert choice == RetryChoice(
        RetryStep.AGAIN, RetryReason.NEW_SESSION, failure, 9, POLICY, at=1000.0, redo=Redo.RESEND
    )
    assert choice.words == "The agent refused to resume the session; trying a new one, once: it broke."


@pytest.mark.case("P08", "P19")
@pytest.mark.parametrize("evidence", sorted(HELD_BY_AGENT))
@pytest.mark.parametrize("reopened", [True, False])
def test_a_session_that_took_the_prompt_before_it_refused_gets_no_new_one(evidence: Evidence, reopened: bool) -> None:
    failure = Failure(FailureKind.RESUME_REJECTED, "it broke.", evidence, reopened=reopened)
    assert _retry(failure) == RetryChoice(RetryStep.ASK, RetryReason.NOT_RESENT, failure, 1, POLICY)


@pytest.mark.case("P08")
def test_a_second_rejection_ends_it_and_a_tool_that_ran_forbids_it() -> None:
    again = Failure(FailureKind.RESUME_REJECTED, "it broke.", reopened=True)
    assert _retry(again) == RetryChoice(RetryStep.GIVE_UP, RetryReason.REJECTED_AGAIN, again, 1, POLICY)
    assert _retry(again).words == "A new session was already tried: it broke."
    tool = Failure(FailureKind.RESUME_REJECTED, "it broke.", tool_ran=True, reopened=True)
    assert _retry(tool) == RetryChoice(RetryStep.ASK, RetryReason.NOT_RESENT, tool, 1, POLICY)


@pytest.mark.parametrize(
    "odd", [{"max_tries": 0}, {"base": -1.0}, {"factor": 0.5}, {"cap": -1.0}, {"spread": -0.1}, {"spread": 1.1}]
)
def test_a_policy_that_makes_no_sense_is_refused(odd: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"^(a|the spread of a) retry policy "):
        RetryPolicy(**odd)


def test_the_plainest_policies_are_accepted() -> None:
    assert RetryPolicy(max_tries=1, base=0.0, factor=1.0, cap=0.0, spread=0.0).max_tries == 1
    assert RetryPolicy(spread=1.0).spread == 1.0


@pytest.mark.case("L06")
def test_an_outage_of_an_hour_is_waited_out_and_its_end_is_noticed_within_minutes() -> None:
    failure, policy = _failure(FailureKind.OUTAGE, CUT_OFF), RetryPolicy()
    choices = [retry(failure, tries, policy, NOW, jitter=0.99) for tries in range(1, policy.outage_tries)]
    assert {(choice.step, choice.redo) for choice in choices} == {(RetryStep.AGAIN, Redo.CONTINUE)}
    assert sum(choice.wait for choice in choices) > 3600.0
    assert max(choice.wait for choice in choices) <= 300.0
    assert choices[0].words == "The model does not answer, so this is tried again (try 2): it broke."
    assert retry(failure, policy.outage_tries, policy, NOW, jitter=0.0).reason is RetryReason.TRIED_OUT
