"""Approvals as they are shown."""

from collections.abc import Sequence
from typing import Any

from sqlalchemy import ColumnElement, Connection, Select, TextClause, bindparam, select, text

from clew.store.engine.statement import Row, Statement
from clew.store.faults import NoSuchApproval
from clew.store.queries.threads import THREAD_NAME, with_owner
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


def read_approval(connection: Connection, approval: str) -> Row:
    row = _one.first(connection, approval=approval)
    if row is None:
        raise NoSuchApproval(f"There is no approval {approval!r}.", "See them with `clew approvals`.")
    return row


def list_approvals(connection: Connection, only_pending: bool, most: int) -> Sequence[Row]:
    return pending.rows(connection, most=most) if only_pending else newest.rows(connection, before=1e15, most=most)


def approvals_of_run(connection: Connection, run: str) -> Sequence[Row]:
    return of_run.rows(connection, run=run)


def pending_approvals(connection: Connection, thread: str) -> Sequence[Row]:
    return pending_in_thread.rows(connection, thread=thread)
