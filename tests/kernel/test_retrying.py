"""What follows a failure: when it is tried again, how, and what is never sent twice."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clew.kernel.retrying import (
    REDO_TABLE,
    Failure,
    FailureKind,
    Progress,
    Redo,
    RetryChoice,
    RetryPolicy,
    RetryReason,
    RetryStep,
    backoff,
    progress,
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
    prompt_sent=st.booleans(),
    pinned=st.booleans(),
    tool_ran=st.booleans(),
    reopened=st.booleans(),
    reset_at=st.none() | st.floats(0, 1e6),
)
jitters = st.floats(0, 1, exclude_max=True)


def _failure(kind: FailureKind, *, sent: bool = False, pinned: bool = False, reset_at: float | None = None) -> Failure:
    return Failure(kind, "it broke.", prompt_sent=sent, pinned=pinned, reset_at=reset_at)


def _retry(failure: Failure, tries: int = 1, jitter: float = 0.0) -> RetryChoice:
    return retry(failure, tries, POLICY, NOW, jitter)


def test_the_usual_policy() -> None:
    assert RetryPolicy() == RetryPolicy(5, 5.0, 2.0, 900.0, 0.5, 120.0, 691_200.0)


@pytest.mark.case("P09")
@pytest.mark.parametrize("kind", list(FailureKind))
@pytest.mark.parametrize("step", list(Progress))
def test_what_may_be_done_again_by_itself(kind: FailureKind, step: Progress) -> None:
    redo = REDO_TABLE.get((kind, step))
    if kind in (FailureKind.PERMANENT, FailureKind.RESUME_REJECTED) or step is Progress.SENT:
        assert redo is None
    elif step is Progress.UNSENT:
        assert redo is Redo.RESEND
    else:
        assert redo is (None if kind is FailureKind.UNKNOWN else Redo.CONTINUE)


def test_progress_counts_a_pin_only_after_the_prompt() -> None:
    kind = FailureKind.CRASHED
    assert progress(_failure(kind)) is Progress.UNSENT
    assert progress(_failure(kind, pinned=True)) is Progress.UNSENT
    assert progress(_failure(kind, sent=True)) is Progress.SENT
    assert progress(_failure(kind, sent=True, pinned=True)) is Progress.PINNED


@pytest.mark.case("L06")
def test_the_delay_grows_up_to_the_cap() -> None:
    assert [backoff(tries, POLICY, 0.0) for tries in range(1, 7)] == [5.0, 10.0, 20.0, 40.0, 60.0, 60.0]


@pytest.mark.case("L06")
def test_jitter_takes_off_up_to_the_spread() -> None:
    assert backoff(2, POLICY, 0.5) == 7.5
    assert backoff(2, POLICY, 0.999_999) == pytest.approx(5.0, abs=1e-4)
    assert backoff(5, POLICY, 0.5) == 45.0
    assert backoff(3, RetryPolicy(base=5.0, spread=0.0), 0.9) == 20.0


@pytest.mark.case("L06")
def test_the_delay_stays_bounded_after_any_number_of_tries() -> None:
    assert backoff(10_000, POLICY, 0.0) == 60.0
    assert backoff(10_000, RetryPolicy(base=1, factor=2, cap=7), 0.0) == 7
    assert backoff(10_000, RetryPolicy(base=3.0, factor=1.0, cap=60.0), 0.0) == 3.0


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
    policy = RetryPolicy(base=base, factor=factor, cap=cap, spread=spread)
    assert 0.0 <= backoff(few, policy, jitter) <= backoff(many, policy, jitter) <= cap


@pytest.mark.case("L06")
def test_a_transient_failure_is_tried_again_later_in_the_same_session() -> None:
    failure = _failure(FailureKind.TRANSIENT, sent=True, pinned=True)
    choice = _retry(failure, tries=2, jitter=0.5)
    assert choice == RetryChoice(
        RetryStep.AGAIN, RetryReason.BACKOFF, failure, 2, POLICY, wait=7.5, at=1007.5, redo=Redo.CONTINUE
    )
    assert choice.words == "Tried again in 8 s, try 3 of 5: it broke."
    assert choice.earlier_allowed_by_person


@pytest.mark.case("L06")
@pytest.mark.parametrize("sent", [False, True])
def test_a_permanent_failure_is_not_retried_and_says_why(sent: bool) -> None:
    failure = _failure(FailureKind.PERMANENT, sent=sent, pinned=sent)
    choice = _retry(failure)
    assert choice == RetryChoice(RetryStep.GIVE_UP, RetryReason.PERMANENT, failure, 1, POLICY)
    assert (choice.wait, choice.at, choice.redo) == (0.0, None, None)
    assert choice.words == "Trying again would fail the same way: it broke."
    assert not choice.earlier_allowed_by_person


@pytest.mark.case("L06")
def test_tries_are_bounded() -> None:
    failure = _failure(FailureKind.TRANSIENT)
    assert _retry(failure, tries=4).step is RetryStep.AGAIN
    for tries in (5, 6):
        choice = _retry(failure, tries=tries)
        assert choice == RetryChoice(RetryStep.GIVE_UP, RetryReason.TRIED_OUT, failure, tries, POLICY)
        assert choice.words == f"It failed {tries} times, and 5 are allowed: it broke."


@pytest.mark.case("P09")
@given(failures, st.integers(1, 10), jitters)
def test_a_prompt_an_agent_has_accepted_is_never_sent_again(failure: Failure, tries: int, jitter: float) -> None:
    choice = _retry(failure, tries, jitter)
    # A session that refuses to be resumed takes no prompt; once a tool ran, it did take one.
    accepted = failure.prompt_sent and (failure.kind is not FailureKind.RESUME_REJECTED or failure.tool_ran)
    if accepted:
        assert choice.redo is not Redo.RESEND
    if choice.redo is Redo.CONTINUE:
        assert failure.prompt_sent
        assert failure.pinned
    assert (choice.at is None) is (choice.redo is None)
    assert (choice.redo is None) is (choice.step in (RetryStep.GIVE_UP, RetryStep.ASK))
    assert choice.at is None or choice.at >= NOW
    assert "it broke." in choice.words


@pytest.mark.case("P09")
@pytest.mark.parametrize(
    "failure",
    [
        _failure(FailureKind.TRANSIENT, sent=True),
        _failure(FailureKind.CRASHED, sent=True),
        _failure(FailureKind.UNKNOWN, sent=True),
        _failure(FailureKind.UNKNOWN, sent=True, pinned=True),
    ],
)
def test_a_prompt_whose_fate_nobody_knows_needs_a_person(failure: Failure) -> None:
    choice = _retry(failure)
    assert choice == RetryChoice(RetryStep.ASK, RetryReason.NOT_RESENT, failure, 1, POLICY)
    assert choice.words == "The agent may have acted on the prompt, so it is not sent again: it broke."


@pytest.mark.case("P12", "L01")
def test_an_agent_killed_after_its_pin_is_resumed_and_not_prompted_again() -> None:
    failure = _failure(FailureKind.CRASHED, sent=True, pinned=True)
    choice = _retry(failure)
    assert (choice.step, choice.reason) == (RetryStep.AGAIN, RetryReason.BACKOFF)
    assert (choice.at, choice.redo) == (1005.0, Redo.CONTINUE)


@pytest.mark.case("R05", "L01")
@pytest.mark.parametrize(("sent", "redo"), [(False, Redo.RESEND), (True, Redo.CONTINUE)])
def test_what_a_restart_interrupted_goes_on_at_once(sent: bool, redo: Redo) -> None:
    failure = _failure(FailureKind.INTERRUPTED, sent=sent, pinned=True)
    choice = _retry(failure, jitter=0.5)
    assert choice == RetryChoice(RetryStep.AGAIN, RetryReason.AT_ONCE, failure, 1, POLICY, at=1000.0, redo=redo)
    assert choice.words == "Tried again at once, try 2 of 5: it broke."
    assert _retry(failure, tries=5).reason is RetryReason.TRIED_OUT


@pytest.mark.case("L10")
def test_a_usage_limit_holds_until_its_reset_and_returns_spread_out() -> None:
    failure = _failure(FailureKind.USAGE_LIMIT, sent=True, pinned=True, reset_at=1600.0)
    choice = _retry(failure)
    assert choice == RetryChoice(
        RetryStep.HOLD, RetryReason.USAGE_LIMIT, failure, 1, POLICY, wait=600.0, at=1600.0, redo=Redo.CONTINUE
    )
    assert choice.words == "Held for 600 s, until the usage limit is reset: it broke."
    assert choice.earlier_allowed_by_person
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
    assert _retry(edge, tries=5).reason is RetryReason.TRIED_OUT
    beyond = _failure(FailureKind.USAGE_LIMIT, reset_at=NOW + 86_401.0)
    choice = _retry(beyond)
    assert choice == RetryChoice(RetryStep.ASK, RetryReason.TOO_LONG, beyond, 1, POLICY, wait=86_401.0)
    assert choice.words == "The usage limit is reset in 86401 s, too far off to wait unasked: it broke."


@pytest.mark.case("L10")
def test_a_usage_limit_without_a_reset_time_backs_off() -> None:
    choice = _retry(_failure(FailureKind.USAGE_LIMIT), tries=3)
    assert (choice.step, choice.reason, choice.at) == (RetryStep.AGAIN, RetryReason.BACKOFF, 1020.0)


def test_only_a_usage_limit_waits_for_a_reset() -> None:
    choice = _retry(_failure(FailureKind.TRANSIENT, reset_at=5000.0))
    assert (choice.reason, choice.at) == (RetryReason.BACKOFF, 1005.0)


@pytest.mark.case("P08")
@pytest.mark.parametrize("sent", [False, True])
def test_a_rejected_resume_gets_one_new_session(sent: bool) -> None:
    failure = _failure(FailureKind.RESUME_REJECTED, sent=sent, pinned=True)
    choice = _retry(failure, tries=9, jitter=0.5)
    assert choice == RetryChoice(
        RetryStep.AGAIN, RetryReason.NEW_SESSION, failure, 9, POLICY, at=1000.0, redo=Redo.RESEND
    )
    assert choice.words == "The session refused to be resumed; a new one is tried once: it broke."


@pytest.mark.case("P08")
def test_a_second_rejection_ends_it_and_a_tool_that_ran_forbids_it() -> None:
    again = Failure(FailureKind.RESUME_REJECTED, "it broke.", reopened=True)
    assert _retry(again) == RetryChoice(RetryStep.GIVE_UP, RetryReason.REJECTED_AGAIN, again, 1, POLICY)
    assert _retry(again).words == "A new session was tried already: it broke."
    tool = Failure(FailureKind.RESUME_REJECTED, "it broke.", tool_ran=True, reopened=True)
    assert _retry(tool) == RetryChoice(RetryStep.ASK, RetryReason.NOT_RESENT, tool, 1, POLICY)


@pytest.mark.parametrize(
    "odd", [{"max_tries": 0}, {"base": -1.0}, {"factor": 0.5}, {"cap": -1.0}, {"spread": -0.1}, {"spread": 1.1}]
)
def test_a_policy_that_makes_no_sense_is_refused(odd: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"^a (retry policy|spread) "):
        RetryPolicy(**odd)


def test_the_plainest_policies_are_accepted() -> None:
    assert RetryPolicy(max_tries=1, base=0.0, factor=1.0, cap=0.0, spread=0.0).max_tries == 1
    assert RetryPolicy(spread=1.0).spread == 1.0
