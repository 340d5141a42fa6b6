"""Approvals are answered once, and never for a session that is gone."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clew.kernel.approval import (
    APPROVAL_TABLE,
    Answer,
    Answered,
    Approval,
    ApprovalEvent,
    ApprovalReason,
    ApprovalState,
    advance_approval,
    answer,
)
from clew.kernel.ids import ApprovalId, RunId

ASKED = Approval(ApprovalId("a1"), RunId("r1"), attempt=2, expires_at=500.0)


@pytest.mark.case("A03")
@pytest.mark.parametrize("event", list(ApprovalEvent))
@pytest.mark.parametrize("state", list(ApprovalState))
def test_an_approval_is_settled_once(state: ApprovalState, event: ApprovalEvent) -> None:
    settled = {"approve": "approved", "deny": "denied", "session-end": "stale", "expire": "expired"}
    then = advance_approval(state, event)
    assert then == (settled[event] if state is ApprovalState.PENDING else None)
    assert APPROVAL_TABLE.get((state, event)) is then


def test_an_approval_begins_pending() -> None:
    assert Approval(ApprovalId("a"), RunId("r"), 1) == Approval(
        ApprovalId("a"), RunId("r"), 1, ApprovalState.PENDING, None
    )


@pytest.mark.case("A03")
@pytest.mark.parametrize(
    ("given_answer", "state"), [(Answer.APPROVE, ApprovalState.APPROVED), (Answer.DENY, ApprovalState.DENIED)]
)
def test_the_first_answer_counts_and_the_second_is_told(given_answer: Answer, state: ApprovalState) -> None:
    first = answer(ASKED, given_answer, live_attempt=2, now=499.9)
    assert first == Answered(replace(ASKED, state=state), ApprovalReason.TAKEN)
    assert first.taken
    assert first.words == f"Answered: {state}."
    second = answer(first.approval, Answer.APPROVE, live_attempt=2, now=499.9)
    assert second == Answered(first.approval, ApprovalReason.SETTLED)
    assert not second.taken
    assert second.words == f"It was already {state}; this answer changes nothing."


@pytest.mark.case("A03")
@pytest.mark.parametrize("live_attempt", [None, 1, 3])
@pytest.mark.parametrize("given_answer", list(Answer))
def test_an_answer_to_a_dead_session_is_stale(given_answer: Answer, live_attempt: int | None) -> None:
    late = answer(ASKED, given_answer, live_attempt, now=100.0)
    assert late == Answered(replace(ASKED, state=ApprovalState.STALE), ApprovalReason.STALE)
    assert not late.taken


@pytest.mark.case("A03")
def test_an_answer_at_the_last_instant_is_too_late() -> None:
    late = answer(ASKED, Answer.APPROVE, live_attempt=2, now=500.0)
    assert late == Answered(replace(ASKED, state=ApprovalState.EXPIRED), ApprovalReason.EXPIRED)
    endless = replace(ASKED, expires_at=None)
    assert answer(endless, Answer.APPROVE, live_attempt=2, now=1e12).taken


@pytest.mark.case("A03")
@given(st.sampled_from(ApprovalState), st.sampled_from(Answer), st.none() | st.integers(0, 4), st.floats(0, 1000))
def test_approved_is_reached_only_by_a_live_yes(
    state: ApprovalState, given_answer: Answer, live_attempt: int | None, now: float
) -> None:
    answered = answer(replace(ASKED, state=state), given_answer, live_attempt, now)
    if answered.approval.state is ApprovalState.APPROVED and state is not ApprovalState.APPROVED:
        assert (state, given_answer, live_attempt) == (ApprovalState.PENDING, Answer.APPROVE, 2)
        assert now < 500.0
    if state is not ApprovalState.PENDING:
        assert answered.approval.state is state
        assert not answered.taken
