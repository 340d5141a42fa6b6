"""Sessions as candidates: the newest generations of one lane and scope, by one index."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

from sqlalchemy import Connection, Select, and_, bindparam, case, or_, select, text
from sqlalchemy.sql import ClauseElement

from clew.kernel import (
    CANDIDATES,
    AgentId,
    LaneId,
    RunId,
    RuntimeId,
    Session,
    SessionChange,
    SessionEvent,
    SessionId,
    SessionState,
    ThreadId,
    advance_session,
    lane_id,
)
from clew.protocol.reports import NewSession
from clew.store.engine.dialect import insert, read_clock
from clew.store.engine.hints import hint_thread
from clew.store.engine.statement import Statement
from clew.store.faults import NoSuchAgent, NoSuchRuntime, NoSuchThread
from clew.store.operations.ids import new_id
from clew.store.operations.pins import append_session, held_by_another, holder_of, session_facts
from clew.store.operations.rows import read_session
from clew.store.schema.tables import LIVE, UNKNOWN_RUNTIME, agents, archives, lanes, runs, runtimes, sessions, threads


def with_facts() -> Select[tuple[object, ...]]:
    """A session with its newest archive and the run that has it open."""
    users = runs.alias("users")
    busy = and_(users.c.session_id == sessions.c.id, users.c.session_id.is_not(None), text(f"users.{LIVE}"))
    return select(
        sessions,
        archives.c.format.label("archive_format"),
        archives.c.seen.label("archive_seen"),
        archives.c.turns.label("archive_turns"),
        archives.c.state.label("archive_state"),
        users.c.id.label("busy_with"),
    ).select_from(sessions.outerjoin(archives, archives.c.id == sessions.c.archive_id).outerjoin(users, busy))


candidates = Statement(
    lambda _: (
        with_facts()
        .where(sessions.c.lane_id == bindparam("lane"), sessions.c.scope_run == bindparam("scope"))
        .order_by(sessions.c.generation.desc())
        .limit(CANDIDATES)
    )
)


def _asked() -> Select[tuple[object, ...]]:
    """The session of a run under its newest record: the lane may have gone back to it since."""
    asked = sessions.alias("asked")
    same = ("lane_id", "scope_run", "runtime_id", "native_id")
    return (
        with_facts()
        .where(
            asked.c.id == select(runs.c.session_id).where(runs.c.id == bindparam("run")).scalar_subquery(),
            *(sessions.c[name] == asked.c[name] for name in same),
        )
        .order_by(sessions.c.generation.desc())
        .limit(1)
    )


_of_run = Statement(lambda _: _asked())


@cache
def _on(event: SessionEvent) -> Statement:
    """The kernel's table of sessions for one event, as one statement."""
    moves = [(before, advance_session(before, event)) for before in SessionState]
    changes = [(before, after) for before, after in moves if after is not None and after is not before]

    def build(_: str) -> ClauseElement:
        state = sessions.c.state
        return (
            sessions.update()
            .where(sessions.c.id == bindparam("session"), or_(*(state == before.value for before, _ in changes)))
            .values(state=case(*((state == before.value, after.value) for before, after in changes), else_=state))
        )

    return Statement(build)


def lane_sessions(connection: Connection, lane: LaneId, scope_run: str = "") -> Sequence[Session]:
    """The newest generations of the lane and scope, newest first."""
    return [read_session(row) for row in candidates.rows(connection, lane=lane, scope=scope_run)]


def run_session(connection: Connection, run: RunId) -> Sequence[Session]:
    """The session that a run was in, if it was ever pinned."""
    return [read_session(row) for row in _of_run.rows(connection, run=run)]


def change_sessions(connection: Connection, changes: Sequence[SessionChange]) -> None:
    """Apply a decision's events to sessions. An event that cannot happen in a session's state changes nothing."""
    for change in changes:
        _on(change.event).count(connection, session=change.session)


@dataclass(frozen=True, slots=True)
class Adoption:
    agent: AgentId
    thread: ThreadId
    runtime: RuntimeId
    session: NewSession
    turns: int = 0


@dataclass(frozen=True, slots=True)
class Adopted:
    session: SessionId
    generation: int
    lane: LaneId
    repeated: bool = False


_agent = Statement(lambda _: select(agents.c.id).where(agents.c.id == bindparam("agent")))
_thread = Statement(lambda _: select(threads.c.id).where(threads.c.id == bindparam("thread")))
_runtime = Statement(lambda _: select(runtimes.c.provider).where(runtimes.c.id == bindparam("runtime")))


def adopt_session(connection: Connection, adoption: Adoption) -> Adopted:
    """One transaction: the lane, and the session as its newest generation. One that another lane has stays there."""
    runtime = _runtime.first(connection, runtime=adoption.runtime)
    if runtime is None or adoption.runtime == UNKNOWN_RUNTIME:
        raise NoSuchRuntime(f"There is no runtime {adoption.runtime}.", "Start its daemon once, so that it registers.")
    if _agent.first(connection, agent=adoption.agent) is None:
        raise NoSuchAgent(f"There is no agent {adoption.agent}.", "Name one that exists.")
    if _thread.first(connection, thread=adoption.thread) is None:
        raise NoSuchThread(f"There is no thread {adoption.thread}.", "Open it first.")
    lane = lane_id(adoption.agent, adoption.thread)
    # A new lane works where its session is; one that is there already stays where it is.
    made = insert(connection, lanes).values(
        id=lane, agent_id=adoption.agent, thread_id=adoption.thread, runtime_id=adoption.runtime
    )
    connection.execute(made.on_conflict_do_nothing())
    appended = append_session.first(
        connection,
        **session_facts(adoption.session)
        | {
            "id": new_id("ss"),
            "lane_id": lane,
            "scope_run": "",
            "provider": runtime["provider"],
            "runtime_id": adoption.runtime,
            "run_id": None,
            "adopted_at": read_clock(connection),
            "seen": adoption.session.begins,
            "inherited": adoption.session.begins,
            "turns": adoption.turns,
        },
    )
    hint_thread(connection, adoption.thread)
    if appended is not None:
        return Adopted(SessionId(appended["id"]), appended["generation"], lane)
    native = adoption.session.cursor.native_id
    known = holder_of.first(connection, runtime=adoption.runtime, native=native)
    if known is None or known["lane_id"] != lane or known["scope_run"]:
        raise held_by_another(native, known)
    return Adopted(SessionId(known["id"]), known["generation"], lane, repeated=True)
