"""Threads and their lanes as views, newest first. A thread's status comes from the newest run of each lane."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import product
from typing import Any

from sqlalchemy import Connection, Select, and_, bindparam, func, literal_column, select, text, tuple_
from sqlalchemy.sql import ClauseElement

from clew.kernel import LIVE, RunState, WaitsFor
from clew.protocol.marks import MarksView
from clew.protocol.stage import LaneFacts, stage_of
from clew.protocol.views import LaneView, ThreadView
from clew.store.engine.dialect import among, storable
from clew.store.engine.statement import Row, Statement
from clew.store.faults import NoSuchThread
from clew.store.operations.allowances import commands_in
from clew.store.operations.work import read_work
from clew.store.queries.news import newest_news
from clew.store.queries.refs import THREAD_NAME, thread_ref, with_owner
from clew.store.queries.spoken import spoken
from clew.store.queries.waits import Wait, delays, queued_waits
from clew.store.schema.tables import agents, journal, lanes, marks, projects, runs, threads, workspaces

KINDS = ("issue", "chat", "own", "subject")
STATES = ("open", "closed")
ONLY = ("unread", "pinned", "archived")
SOME = 5
"""How many threads a message names."""

_RANKS: Mapping[str, int] = {"waiting": 0, "running": 1, "held": 2, "queued": 3, "idle": 4}
"""A thread with several lanes shows the first of these that one of them is in."""


_SEEN = func.coalesce(marks.c.seen, literal_column("0"))


def _shown(dialect: str) -> Select[Any]:
    last = (
        select(journal.c.at)
        .where(journal.c.thread_id == threads.c.id)
        .order_by(journal.c.seq.desc())
        .limit(1)
        .scalar_subquery()
    )
    head = select(func.max(journal.c.seq)).where(journal.c.thread_id == threads.c.id).scalar_subquery()
    own = and_(marks.c.thread_id == threads.c.id, marks.c.reader == bindparam("reader"))
    source = with_owner(threads.outerjoin(projects, projects.c.id == threads.c.project_id).outerjoin(marks, own))
    return select(
        *threads.c,
        threads.c.id.label("thread_id"),
        *THREAD_NAME,
        projects.c.name.label("project_name"),
        func.coalesce(head, 0).label("entries"),
        func.coalesce(last, threads.c.created_at).label("updated_at"),
        _SEEN.label("seen"),
        newest_news(dialect, threads.c.id).label("news"),
        marks.c.pinned_at,
    ).select_from(source)


def _listed(dialect: str, of_agent: bool, unread: bool = False) -> ClauseElement:
    found = _shown(dialect).where(
        threads.c.kind == bindparam("kind"),
        threads.c.state == bindparam("state"),
        threads.c.archived == bindparam("archived"),
        tuple_(threads.c.created_at, threads.c.id) < tuple_(bindparam("before_at"), bindparam("before")),
    )
    if of_agent:
        found = found.where(text("threads.assignee IS NOT NULL"), threads.c.assignee == bindparam("agent"))
    if unread:
        found = found.where(newest_news(dialect, threads.c.id) > _SEEN)
    return found.order_by(threads.c.created_at.desc(), threads.c.id.desc()).limit(bindparam("most"))


listed = Statement(lambda dialect: _listed(dialect, of_agent=False))
listed_of_agent = Statement(lambda dialect: _listed(dialect, of_agent=True))
# Along the same indexes: the threads that are not archived are read one by one until enough of them are unread.
unread = Statement(lambda dialect: _listed(dialect, of_agent=False, unread=True))
unread_of_agent = Statement(lambda dialect: _listed(dialect, of_agent=True, unread=True))
# By ix_marks_pinned: a reader pins few.
pinned = Statement(
    lambda dialect: (
        _shown(dialect)
        .where(text("marks.pinned_at IS NOT NULL"), threads.c.archived == literal_column("0"))
        .order_by(marks.c.pinned_at.desc())
        .limit(bindparam("most"))
    )
)
one = Statement(lambda dialect: _shown(dialect).where(threads.c.id == bindparam("thread")))


_of_lane = Statement(
    lambda dialect: _shown(dialect).where(
        threads.c.id == select(lanes.c.thread_id).where(lanes.c.id == bindparam("lane")).scalar_subquery()
    )
)


_worked_there = (
    select(lanes.c.thread_id)
    .join(workspaces, workspaces.c.lane_id == lanes.c.id)
    .where(workspaces.c.project_id == bindparam("project"))
)
_in_project = Statement(
    lambda _: (
        select(threads.c.id.label("thread_id"), *THREAD_NAME)
        .select_from(with_owner(threads))
        .where((threads.c.project_id == bindparam("project")) | threads.c.id.in_(_worked_there))
        .order_by(threads.c.created_at)
        .limit(SOME)
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
            workspaces.c.work,
            runs.c.id,
            runs.c.number,
            runs.c.state,
            runs.c.queued_at,
            runs.c.hold,
            runs.c.hold_code,
            runs.c.words,
            runs.c.not_before,
            runs.c.ended_at,
        )
        .select_from(
            lanes.join(runs, runs.c.id == newest).outerjoin(workspaces, workspaces.c.id == lanes.c.workspace_id)
        )
        .where(among(dialect, lanes.c.thread_id, "threads"))
    )


newest_runs = Statement(_newest_runs)

lanes_in_thread = Statement(
    lambda _: (
        select(
            lanes.c.id,
            lanes.c.runtime_id,
            lanes.c.overlap,
            lanes.c.allowed,
            agents.c.name.label("agent_name"),
            agents.c.runtime_id.label("agent_runtime"),
            agents.c.home,
            workspaces.c.directory,
            workspaces.c.branch,
            workspaces.c.work,
            lanes.c.checked_out,
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


def show_thread(connection: Connection, thread: str, reader: str = "") -> ThreadView:
    """With `reader`, as that person has marked it."""
    row = one.first(connection, thread=thread, reader=storable(reader))
    if row is None:
        raise NoSuchThread(f"There is no thread {thread}.", "See them with `clew threads`.")
    return _views(connection, [row], reader)[0]


def list_threads(
    connection: Connection,
    kind: str | None,
    state: str | None,
    agent: str | None,
    most: int,
    before: str | None,
    reader: str = "",
    only: str | None = None,
) -> tuple[ThreadView, ...]:
    """The newest first; with `agent`, those assigned to it; with `before`, those older than that thread. `only` is one
    of ONLY; without it, all that are not archived.

    Each kind and state is read along its own index: there are few of them, and one read over all has no index."""
    older = None if before is None else one.first(connection, thread=before, reader="")
    place = (1e15, "") if older is None else (older["created_at"], older["id"])
    asked = {"before_at": place[0], "before": place[1], "most": most, "reader": storable(reader)}
    asked["archived"] = int(only == "archived")
    statement = unread if only == "unread" else listed
    if agent is not None:
        statement, asked = unread_of_agent if only == "unread" else listed_of_agent, {**asked, "agent": agent}
    found = [
        row
        for one_kind, one_state in product(KINDS if kind is None else (kind,), STATES if state is None else (state,))
        for row in statement.rows(connection, kind=one_kind, state=one_state, **asked)
    ]
    newest = sorted(found, key=lambda row: (row["created_at"], row["id"]), reverse=True)[:most]
    return _views(connection, newest, reader)


def list_pinned(connection: Connection, reader: str, most: int) -> tuple[ThreadView, ...]:
    """What that person pinned and is not archived, the last pinned first."""
    return _views(connection, pinned.rows(connection, reader=storable(reader), most=most), reader)


def ref_of_lane(connection: Connection, lane: str) -> tuple[str, str] | None:
    """The id and the name of a lane's thread."""
    row = _of_lane.first(connection, lane=lane, reader="")
    return None if row is None else (row["id"], thread_ref(row))


def refs_in_project(connection: Connection, project: str) -> tuple[str, ...]:
    """The names of some threads that belong to a project, or that worked in it."""
    return tuple(map(thread_ref, _in_project.rows(connection, project=project)))


def has_runs(connection: Connection, thread: str) -> bool:
    """Whether any agent was ever woken in it."""
    return bool(newest_runs.rows(connection, threads=[thread]))


def lanes_of(connection: Connection, thread: str) -> tuple[LaneView, ...]:
    return tuple(map(_lane_view, lanes_in_thread.rows(connection, thread=thread)))


def has_workspace(connection: Connection, thread: str, lane: str) -> bool:
    """Whether a lane of the thread has a workspace; without one it works in its agent's home."""
    rows = lanes_in_thread.rows(connection, thread=thread)
    return any(row["id"] == lane and row["directory"] is not None for row in rows)


def _views(connection: Connection, rows: Sequence[Row], reader: str = "") -> tuple[ThreadView, ...]:
    # The newest run of a lane is the one that has not ended, if there is one.
    found = newest_runs.rows(connection, threads=[row["id"] for row in rows]) if rows else []
    waits, delayed = queued_waits(connection, found), delays(connection, found)
    newest: dict[str, list[_Status]] = {}
    for run in found:
        wait = waits.get(run["id"])
        words = delayed.get(run["id"], run["words"] or "")
        status = replace(_status(run, words, wait), facts=_lane_facts(run, wait))
        newest.setdefault(run["thread_id"], []).append(status)
    return spoken(connection, tuple(_view(row, newest.get(row["id"], []), reader) for row in rows))


@dataclass(frozen=True, slots=True)
class _Status:
    """What one lane of a thread does, and what it says of the thread's stage."""

    name: str
    words: str = ""
    until: float | None = None
    facts: LaneFacts = field(default_factory=LaneFacts)


def _lane_facts(run: Row, wait: Wait | None) -> LaneFacts:
    work = None if run["work"] is None else read_work(run["work"])
    merged = work is not None and work.merged_into is not None
    return LaneFacts(
        run=RunState(run["state"]),
        held_for_person=wait is not None and wait.held == WaitsFor.PERSON,
        merged=merged,
        unmerged=work is not None and not merged and bool(work.commits or work.files),
    )


def _view(row: Row, statuses: Sequence[_Status], reader: str) -> ThreadView:
    status = min(statuses, key=lambda each: _RANKS[each.name], default=_Status("idle"))
    stage = stage_of(row["state"] == "open", [each.facts for each in statuses])
    return ThreadView(
        id=row["id"],
        ref=thread_ref(row),
        kind=row["kind"],
        title=row["title"],
        state=row["state"],
        status=status.name,
        words=status.words,
        project=row["project_name"],
        assignee=row["thread_owner"],
        entries=row["entries"],
        created_at=row["created_at"],
        updated_at=max(row["updated_at"], row["created_at"]),
        until=status.until,
        stage=stage.value if row["kind"] == "issue" else "",
        archived=bool(row["archived"]),
        marks=MarksView(row["news"] > row["seen"], row["pinned_at"] is not None, row["seen"]) if reader else None,
    )


def _status(run: Row, words: str, wait: Wait | None) -> _Status:
    state = RunState(run["state"])
    if state is RunState.WAITING:
        return _Status("waiting", words or "It waits for an answer.")
    if state in LIVE:
        return _Status("running", words)
    if wait is not None:
        return _Status("held" if wait.held else "queued", wait.words, wait.until)
    # How the last run ended is shown only where it did not end well.
    return _Status("idle", words if state in (RunState.FAILED, RunState.LOST) else "")


def _lane_view(row: Row) -> LaneView:
    return LaneView(
        id=row["id"],
        agent=row["agent_name"],
        # A lane without a workspace works in its agent's home.
        directory=row["directory"] or row["home"],
        branch=row["branch"],
        runtime=row["runtime_id"] or row["agent_runtime"],
        overlap=row["overlap"],
        allowed=commands_in(row["allowed"]),
        work=None if row["work"] is None else read_work(row["work"]),
        checked_out=row["checked_out"],
    )
