"""Threads as they are shown: their names, what goes on in them, their lanes; newest first."""

from collections.abc import Sequence
from itertools import product
from typing import Any

from sqlalchemy import Connection, FromClause, Select, bindparam, func, select, text, tuple_
from sqlalchemy.sql import ClauseElement

from clew.store.engine.statement import Row, Statement, among
from clew.store.schema.tables import agents, journal, lanes, projects, runs, threads, workspaces

KINDS = ("issue", "chat", "own", "subject")
STATES = ("open", "closed")

_owner = agents.alias("owner")

THREAD_NAME = (
    threads.c.kind.label("thread_kind"),
    threads.c.number.label("thread_number"),
    _owner.c.name.label("thread_owner"),
)
"""What a thread is called by, wherever it is named."""


def with_owner(source: FromClause) -> FromClause:
    return source.outerjoin(_owner, _owner.c.id == threads.c.assignee)


def thread_ref(row: Row) -> str:
    """How people call the thread of a row that holds its name."""
    if row["thread_number"] is not None:
        return f"{row['thread_kind']}-{row['thread_number']}"
    if row["thread_kind"] == "own" and row["thread_owner"] is not None:
        return f"own-{row['thread_owner']}"
    return str(row["thread_id"])


def _shown(_: str) -> Select[Any]:
    last = (
        select(journal.c.at)
        .where(journal.c.thread_id == threads.c.id)
        .order_by(journal.c.seq.desc())
        .limit(1)
        .scalar_subquery()
    )
    head = select(func.max(journal.c.seq)).where(journal.c.thread_id == threads.c.id).scalar_subquery()
    return select(
        *threads.c,
        threads.c.id.label("thread_id"),
        *THREAD_NAME,
        projects.c.name.label("project_name"),
        func.coalesce(head, 0).label("entries"),
        func.coalesce(last, threads.c.created_at).label("updated_at"),
    ).select_from(with_owner(threads.outerjoin(projects, projects.c.id == threads.c.project_id)))


def _listed(dialect: str, of_agent: bool) -> ClauseElement:
    found = _shown(dialect).where(
        threads.c.kind == bindparam("kind"),
        threads.c.state == bindparam("state"),
        tuple_(threads.c.created_at, threads.c.id) < tuple_(bindparam("before_at"), bindparam("before")),
    )
    if of_agent:
        found = found.where(text("threads.assignee IS NOT NULL"), threads.c.assignee == bindparam("agent"))
    return found.order_by(threads.c.created_at.desc(), threads.c.id.desc()).limit(bindparam("most"))


listed = Statement(lambda dialect: _listed(dialect, of_agent=False))
listed_of_agent = Statement(lambda dialect: _listed(dialect, of_agent=True))
one = Statement(lambda dialect: _shown(dialect).where(threads.c.id == bindparam("thread")))


_of_lane = Statement(
    lambda dialect: _shown(dialect).where(
        threads.c.id == select(lanes.c.thread_id).where(lanes.c.id == bindparam("lane")).scalar_subquery()
    )
)


def _newest_runs(dialect: str) -> ClauseElement:
    later = runs.alias("later")
    newest = (
        select(later.c.id)
        .where(later.c.lane_id == lanes.c.id)
        .order_by(later.c.queued_at.desc(), later.c.id.desc())
        .limit(1)
        .scalar_subquery()
    )
    return (
        select(
            lanes.c.thread_id,
            runs.c.id,
            runs.c.state,
            runs.c.hold,
            runs.c.hold_code,
            runs.c.words,
            runs.c.not_before,
            runs.c.ended_at,
        )
        .select_from(lanes.join(runs, runs.c.id == newest))
        .where(among(dialect, lanes.c.thread_id, "threads"))
    )


newest_runs = Statement(_newest_runs)

lanes_of = Statement(
    lambda _: (
        select(
            lanes.c.id,
            lanes.c.runtime_id,
            lanes.c.overlap,
            agents.c.name.label("agent_name"),
            agents.c.runtime_id.label("agent_runtime"),
            agents.c.home,
            workspaces.c.directory,
            workspaces.c.branch,
        )
        .select_from(
            lanes.join(agents, agents.c.id == lanes.c.agent_id).outerjoin(
                workspaces, workspaces.c.id == lanes.c.workspace_id
            )
        )
        .where(lanes.c.thread_id == bindparam("thread"))
        .order_by(agents.c.name)
    )
)


def read_thread(connection: Connection, thread: str) -> Row | None:
    return one.first(connection, thread=thread)


def read_thread_of_lane(connection: Connection, lane: str) -> Row | None:
    return _of_lane.first(connection, lane=lane)


def list_threads(
    connection: Connection, kind: str | None, state: str | None, agent: str | None, most: int, before: Row | None
) -> Sequence[Row]:
    """The newest first; of an agent are those that are assigned to it. Each kind and state is walked by itself along
    its index, and there are few of them."""
    place = (1e15, "") if before is None else (before["created_at"], before["id"])
    asked = {"before_at": place[0], "before": place[1], "most": most}
    statement = listed
    if agent is not None:
        statement, asked = listed_of_agent, {**asked, "agent": agent}
    found = [
        row
        for one_kind, one_state in product(KINDS if kind is None else (kind,), STATES if state is None else (state,))
        for row in statement.rows(connection, kind=one_kind, state=one_state, **asked)
    ]
    return sorted(found, key=lambda row: (row["created_at"], row["id"]), reverse=True)[:most]


def newest_runs_in(connection: Connection, of: Sequence[str]) -> Sequence[Row]:
    """The newest run of every lane of these threads: if one has not ended, it is that one."""
    return newest_runs.rows(connection, threads=list(of)) if of else ()
