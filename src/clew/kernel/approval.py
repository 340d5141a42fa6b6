"""Approvals: an agent's question before it acts. It is answered once, and only while the session that asked is live."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import StrEnum

from clew.kernel.ids import ApprovalId, Instant, RunId
from clew.kernel.reason import Reason


class ApprovalState(StrEnum):
    PENDING = "pending"
    APPROVED = "approved"
    DENIED = "denied"
    STALE = "stale"
    EXPIRED = "expired"


class ApprovalEvent(StrEnum):
    APPROVE = "approve"
    DENY = "deny"
    SESSION_END = "session-end"
    EXPIRE = "expire"


class Answer(StrEnum):
    APPROVE = "approve"
    DENY = "deny"


APPROVAL_TABLE: Mapping[tuple[ApprovalState, ApprovalEvent], ApprovalState] = {
    (ApprovalState.PENDING, ApprovalEvent.APPROVE): ApprovalState.APPROVED,
    (ApprovalState.PENDING, ApprovalEvent.DENY): ApprovalState.DENIED,
    (ApprovalState.PENDING, ApprovalEvent.SESSION_END): ApprovalState.STALE,
    (ApprovalState.PENDING, ApprovalEvent.EXPIRE): ApprovalState.EXPIRED,
}
"""A pair that is not listed changes nothing: an approval ends once."""


ANSWERS: Mapping[Answer, ApprovalEvent] = {
    Answer.APPROVE: ApprovalEvent.APPROVE,
    Answer.DENY: ApprovalEvent.DENY,
}


@dataclass(frozen=True, slots=True)
class Approval:
    """One question of one attempt of a run. It ends with the session that asked."""

    id: ApprovalId
    run: RunId
    attempt: int
    state: ApprovalState = ApprovalState.PENDING
    expires_at: Instant | None = None


class ApprovalReason(Reason):
    TAKEN = "approval:taken", "Answered: {approval.state}."
    SETTLED = "approval:settled", "It was already {approval.state}; this answer changes nothing."
    STALE = "approval:stale", "The session that asked is gone, so the answer has no effect."
    EXPIRED = "approval:expired", "The question had timed out before the answer came."
    UNANSWERED = "approval:unanswered", "Nobody answered in time, so it is denied."


@dataclass(frozen=True, slots=True)
class Answered:
    """The approval after an answer, and whether this answer was the one that counted."""

    approval: Approval
    reason: ApprovalReason

    @property
    def taken(self) -> bool:
        return self.reason is ApprovalReason.TAKEN

    @property
    def words(self) -> str:
        return self.reason.fill(approval=self.approval)


def advance_approval(state: ApprovalState, event: ApprovalEvent) -> ApprovalState | None:
    """The next state, or None when the approval has already ended."""
    return APPROVAL_TABLE.get((state, event))


def answer(approval: Approval, given: Answer, live_attempt: int | None, now: Instant) -> Answered:
    """The first answer counts, if the attempt that asked is still the live one and the time is not over.

    `live_attempt` is None when the run's session has ended.
    """
    event, reason = ANSWERS[given], ApprovalReason.TAKEN
    if live_attempt != approval.attempt:
        event, reason = ApprovalEvent.SESSION_END, ApprovalReason.STALE
    elif approval.expires_at is not None and now >= approval.expires_at:
        event, reason = ApprovalEvent.EXPIRE, ApprovalReason.EXPIRED
    state = advance_approval(approval.state, event)
    if state is None:
        return Answered(approval, ApprovalReason.SETTLED)
    return Answered(replace(approval, state=state), reason)
