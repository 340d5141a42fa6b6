"""Approvals and questions as views."""

from typing import Any

from sqlalchemy import ColumnElement, Connection, Select, TextClause, bindparam, select, text

from clew.protocol.views import ApprovalView
from clew.store.engine.statement import Row, Statement
from clew.store.faults import NoSuchApproval
from clew.store.operations.rows import read_object
from clew.store.queries.refs import THREAD_NAME, thread_ref, with_owner
from clew.store.schema.tables import NOT_ENDED, agents, approvals, lanes, runs, threads


def _shown(*which: ColumnElement[bool] | TextClause) -> Select[Any]:
    source = (
        approvals.join(runs, runs.c.id == approvals.c.run_id)
        .join(lanes, lanes.c.id == runs.c.lane_id)
        .join(threads, threads.c.id == lanes.c.thread_id)
        .join(agents, agents.c.id == runs.c.agent_id)
    )
    return (
        select(*approvals.c, lanes.c.thread_id, agents.c.name.label("agent_name"), *THREAD_NAME)
        .select_from(with_owner(source))
        .where(*which)
    )


_pending = text("approvals.state = 'pending'")
_newest_first = (approvals.c.asked_at.desc(), approvals.c.id.desc())

_one = Statement(lambda _: _shown(approvals.c.id == bindparam("approval")))
pending = Statement(lambda _: _shown(_pending).order_by(approvals.c.asked_at).limit(bindparam("most")))
newest = Statement(
    lambda _: _shown(approvals.c.asked_at < bindparam("before")).order_by(*_newest_first).limit(bindparam("most"))
)
of_run = Statement(lambda _: _shown(approvals.c.run_id == bindparam("run")).order_by(*_newest_first))
pending_in_thread = Statement(
    lambda _: _shown(_pending, text(f"runs.{NOT_ENDED}"), lanes.c.thread_id == bindparam("thread")).order_by(
        approvals.c.asked_at
    )
)


def show_approval(connection: Connection, approval: str) -> ApprovalView:
    row = _one.first(connection, approval=approval)
    if row is None:
        raise NoSuchApproval(f"There is no approval {approval!r}.", "See them with `clew approvals`.")
    return _view(row)


def list_approvals(connection: Connection, only_pending: bool, most: int) -> tuple[ApprovalView, ...]:
    """The pending ones, the oldest first; or all, the newest first."""
    rows = pending.rows(connection, most=most) if only_pending else newest.rows(connection, before=1e15, most=most)
    return tuple(map(_view, rows))


def approvals_of_run(connection: Connection, run: str) -> tuple[ApprovalView, ...]:
    """The newest first."""
    return tuple(map(_view, of_run.rows(connection, run=run)))


def pending_approvals(connection: Connection, thread: str) -> tuple[ApprovalView, ...]:
    return tuple(map(_view, pending_in_thread.rows(connection, thread=thread)))


def _view(row: Row) -> ApprovalView:
    # A question is stored as a JSON object. Anything else is shown as plain text.
    asked = read_object(row["question"]) or {"words": row["question"]}
    choices = asked.get("choices")
    return ApprovalView(
        id=row["id"],
        run=row["run_id"],
        thread=thread_ref(row),
        agent=row["agent_name"],
        kind="question" if asked.get("kind") == "question" else "approval",
        words=str(asked.get("words") or ""),
        tool=_text(asked.get("tool")),
        command=_text(asked.get("command")),
        file=_text(asked.get("file")),
        choices=tuple(map(str, choices)) if isinstance(choices, list) else (),
        state=row["state"],
        asked_at=row["asked_at"],
        answered_by=row["answered_by"],
        answer=row["answer"],
        expires_at=row["expires_at"],
        ended_at=row["ended_at"],
    )


def _text(value: object) -> str | None:
    return None if value is None else str(value)
