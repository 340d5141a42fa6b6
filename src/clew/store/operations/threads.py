"""Threads: opened with the next number of their kind, assigned to an agent, closed and reopened."""

from sqlalchemy import Connection, bindparam, func, literal_column, select, text
from sqlalchemy.sql import ClauseElement

from clew.kernel import AgentId, LaneId, ProjectId, RunOutcome, Subject, ThreadId, WakeEnd, lane_id
from clew.store.engine.dialect import insert_in, now, storable
from clew.store.engine.hints import hint_thread
from clew.store.engine.statement import Row, Statement
from clew.store.faults import ThreadClosed
from clew.store.operations.cancel import end_pending
from clew.store.operations.ids import new_id
from clew.store.operations.schedules import schedule_of
from clew.store.queries.names import ThreadRecord, thread_called, thread_record
from clew.store.schema.tables import lanes, schedules, threads

_VALUES = ("id", "kind", "title", "project_id", "assignee")


def _open(dialect: str) -> ClauseElement:
    # Two concurrent inserts compute the same number; uq_threads_number admits one, and the other is run again.
    number = func.coalesce(func.max(threads.c.number), literal_column("0")) + literal_column("1")
    given = [bindparam(name, type_=threads.c[name].type) for name in _VALUES]
    counted = select(*given, now(), number).where(
        threads.c.kind == bindparam("kind", type_=threads.c.kind.type), threads.c.number.is_not(None)
    )
    opened = insert_in(dialect, threads).from_select([*_VALUES, "created_at", "number"], counted)
    return opened.on_conflict_do_nothing(index_elements=[threads.c.id]).returning(threads.c.number)


_open_thread = Statement(_open)

_assign = Statement(
    lambda _: threads.update().where(threads.c.id == bindparam("thread")).values(assignee=bindparam("agent"))
)

_set_title = Statement(
    lambda _: threads.update().where(threads.c.id == bindparam("thread")).values(title=bindparam("title"))
)

_set_project = Statement(
    lambda _: threads.update().where(threads.c.id == bindparam("thread")).values(project_id=bindparam("project"))
)

_set_state = Statement(
    lambda _: (
        threads.update()
        .where(threads.c.id == bindparam("thread"), threads.c.state != bindparam("new"))
        .values(state=bindparam("new"))
    )
)

_lanes = Statement(lambda _: select(lanes.c.id, lanes.c.agent_id).where(lanes.c.thread_id == bindparam("thread")))

_make_lane = Statement(
    lambda dialect: (
        insert_in(dialect, lanes)
        .values(id=bindparam("id"), agent_id=bindparam("agent"), thread_id=bindparam("thread"))
        .on_conflict_do_nothing()
    )
)

_set_overlap = Statement(
    lambda _: lanes.update().where(lanes.c.id == bindparam("lane")).values(overlap=bindparam("overlap"))
)

_switch = Statement(
    lambda _: (
        schedules.update()
        .where(
            schedules.c.id == bindparam("schedule"),
            schedules.c.lane_id == bindparam("lane"),
            text("schedules.next_due IS NOT NULL"),
        )
        .values(enabled=bindparam("on"))
    )
)


# FOR NO KEY UPDATE, not FOR UPDATE: inserts into the journal take FOR KEY SHARE on the thread (foreign key), and the
# end of a run, which a close may wait for, must be able to append its reply.
_lock = Statement(lambda _: select(threads).where(threads.c.id == bindparam("thread")).with_for_update(key_share=True))


def new_thread() -> ThreadId:
    """A new id, made before the first write: an operation that is run again then opens the same thread."""
    return ThreadId(new_id("th"))


def open_thread(
    connection: Connection, thread: ThreadId, kind: str, title: str, project: ProjectId | None, assignee: AgentId | None
) -> bool:
    """Open the thread; whether it was new."""
    values = {"id": thread, "kind": kind, "title": storable(title), "project_id": project, "assignee": assignee}
    opened = _open_thread.first(connection, **values) is not None
    hint_thread(connection, thread)
    return opened


def lock_thread(connection: Connection, thread: ThreadId) -> ThreadRecord:
    """The thread, locked: no other transaction changes it until this one ends."""
    row = _lock.first(connection, thread=thread)
    assert row is not None
    return thread_record(row)


def must_be_open(thread: ThreadRecord, called: str) -> None:
    if thread.state != "open":
        raise ThreadClosed(
            f"Thread {called} is closed, so no agent is woken in it.", f"Reopen it with `clew issue reopen {called}`."
        )


def give_thread(connection: Connection, thread: ThreadId, agent: AgentId | None) -> None:
    _assign.count(connection, thread=thread, agent=agent)
    hint_thread(connection, thread)


def change_thread(connection: Connection, thread: ThreadId, title: str | None, project: ProjectId | None) -> None:
    """Set its title, its project, or both; None leaves one as it is."""
    if title is not None:
        _set_title.count(connection, thread=thread, title=storable(title))
    if project is not None:
        _set_project.count(connection, thread=thread, project=project)
    hint_thread(connection, thread)


def close_thread(connection: Connection, thread: ThreadId, by: str | None = None) -> int:
    """Close the thread: pending wakes are cancelled, heartbeats pause, live runs continue. How many wakes ended."""
    ended = 0
    if _set_state.count(connection, thread=thread, new="closed"):
        for lane in _lanes.rows(connection, thread=thread):
            ended += end_pending(connection, LaneId(lane["id"]), WakeEnd.CLOSED, RunOutcome.CLOSED, by)
            _switch_heartbeat(connection, lane, on=False)
        hint_thread(connection, thread)
    return ended


def reopen_thread(connection: Connection, thread: ThreadId) -> None:
    if _set_state.count(connection, thread=thread, new="open"):
        for lane in _lanes.rows(connection, thread=thread):
            _switch_heartbeat(connection, lane, on=True)
        hint_thread(connection, thread)


def make_lane(connection: Connection, agent: AgentId, thread: ThreadId) -> LaneId:
    lane = lane_id(agent, thread)
    _make_lane.defer(connection, id=lane, agent=agent, thread=thread)
    return lane


def set_overlap(connection: Connection, lane: LaneId, overlap: str) -> None:
    _set_overlap.count(connection, lane=lane, overlap=overlap)


def _switch_heartbeat(connection: Connection, lane: Row, on: bool) -> None:
    schedule = schedule_of(AgentId(lane["agent_id"]))
    _switch.count(connection, schedule=schedule, lane=lane["id"], on=int(on))


_make_for_subject = Statement(
    lambda dialect: (
        insert_in(dialect, threads)
        .values(
            id=bindparam("id"),
            kind=literal_column("'subject'"),
            title=bindparam("title"),
            project_id=bindparam("project"),
            assignee=bindparam("agent"),
            created_at=now(),
        )
        .on_conflict_do_nothing(index_elements=[threads.c.id])
    )
)


def thread_of(connection: Connection, subject: Subject, agent: AgentId, project: ProjectId | None) -> ThreadRecord:
    """The subject's thread, locked FOR SHARE. If it is new, it is assigned to that agent and belongs to that
    project."""
    _make_for_subject.defer(connection, id=subject.thread, title=str(subject), project=project, agent=agent)
    return thread_called(connection, subject.thread, locked=True)
