"""Answers to approvals: the first one counts, none reaches a run that has ended, and no answer in time is a denial."""

from sqlalchemy import Connection, bindparam, select, text

from clew.kernel import LIVE as LIVE_STATES
from clew.kernel import (
    Answer,
    Answered,
    Approval,
    ApprovalEvent,
    ApprovalId,
    ApprovalReason,
    ApprovalState,
    RunId,
    RunState,
    advance_approval,
    answer,
)
from clew.store.engine.database import LostRace
from clew.store.engine.dialect import now, storable
from clew.store.engine.hints import hint_news, hint_run
from clew.store.engine.statement import Statement
from clew.store.faults import NoSuchApproval
from clew.store.schema.tables import approvals, runs

# FOR UPDATE of the run only, which the end of a run locks first too. Two answers meet at the approval's UPDATE.
_approval = Statement(
    lambda _: (
        select(approvals, runs.c.state.label("run_state"), runs.c.attempt.label("run_attempt"), now().label("now"))
        .join(runs, runs.c.id == approvals.c.run_id)
        .where(approvals.c.id == bindparam("approval"))
        .with_for_update(of=runs)
    )
)

MOST_AT_ONCE = 100

OVERDUE = text("approvals.state = 'pending' AND approvals.expires_at IS NOT NULL"), approvals.c.expires_at <= now()


overdue = Statement(
    lambda _: (
        select(approvals.c.id, approvals.c.run_id)
        .join(runs, runs.c.id == approvals.c.run_id)
        .where(*OVERDUE)
        .limit(MOST_AT_ONCE)
        .with_for_update(of=runs, skip_locked=True)
    )
)

_close = Statement(
    lambda _: (
        approvals.update()
        .where(approvals.c.id == bindparam("approval"), text("approvals.state = 'pending'"))
        .values(state=bindparam("state"), answered_by=bindparam("by"), answer=bindparam("words"), ended_at=now())
    )
)


def answer_approval(connection: Connection, approval: ApprovalId, given: Answer, by: str, words: str = "") -> Answered:
    """One transaction. The daemon gets the answer with its next report."""
    row = _approval.first(connection, approval=approval)
    if row is None:
        raise NoSuchApproval(f"There is no approval {approval}.", "See them with `clew approvals`.")
    asked = Approval(approval, RunId(row["run_id"]), row["attempt"], ApprovalState(row["state"]), row["expires_at"])
    live = RunState(row["run_state"]) in LIVE_STATES
    answered = answer(asked, given, row["run_attempt"] if live else None, row["now"])
    if answered.approval.state is not asked.state:
        state, by_whom, said = answered.approval.state.value, None, None
        if answered.taken:
            by_whom, said = by, storable(words) or None
        elif answered.reason is ApprovalReason.EXPIRED:
            said = ApprovalReason.UNANSWERED.fill()
        if not _close.count(connection, approval=approval, state=state, by=by_whom, words=said):
            raise LostRace("another answer to the approval was committed first")
        hint_run(connection, asked.run)
        hint_news(connection, asked.run)
    return answered


def allow_at_once(connection: Connection, approval: ApprovalId, run: RunId, by: str) -> None:
    """Answer a question that was just stored: what it asks was allowed for good. The report that asked is answered
    with it."""
    state = advance_approval(ApprovalState.PENDING, ApprovalEvent.APPROVE)
    assert state is not None
    _close.count(connection, approval=approval, state=state.value, by=f"{by} (always)", words=None)
    hint_news(connection, run)


def expire_approvals(connection: Connection) -> tuple[ApprovalId, ...]:
    """One transaction: deny the approvals whose time is over. Their daemons get that with their next report."""
    state = advance_approval(ApprovalState.PENDING, ApprovalEvent.EXPIRE)
    assert state is not None
    over = []
    for row in overdue.rows(connection):
        words = ApprovalReason.UNANSWERED.fill()
        if _close.count(connection, approval=row["id"], state=state.value, by=None, words=words):
            hint_run(connection, RunId(row["run_id"]))
            hint_news(connection, RunId(row["run_id"]))
            over.append(ApprovalId(row["id"]))
    return tuple(over)
