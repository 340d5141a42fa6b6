"""Sessions: the candidates of a decision, what a decision and the end of a run change in them, and adoption."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from sqlalchemy import Connection, Select, and_, bindparam, case, func, literal_column, or_, select, text
from sqlalchemy.sql import ClauseElement

from clew.kernel import (
    CANDIDATES,
    HELD_BY_AGENT,
    NOTHING_SEEN,
    AgentId,
    EntrySeq,
    Evidence,
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
from clew.protocol.reports import TELLS_LATE, TELLS_REMADE, NewSession, Usage, read_prompted
from clew.store.engine.dialect import greater, insert, now, read_clock, storable
from clew.store.engine.hints import hint_thread
from clew.store.engine.statement import Row, Statement, named
from clew.store.faults import NoSuchAgent, NoSuchRuntime, NoSuchThread
from clew.store.operations.ids import new_id
from clew.store.operations.pins import append_session, held_by_another, holder_of, session_facts
from clew.store.operations.rows import read_session
from clew.store.operations.workspaces import clear_remade
from clew.store.schema.tables import LIVE, UNKNOWN_RUNTIME, agents, archives, lanes, runs, runtimes, sessions, threads


def with_facts() -> Select[tuple[object, ...]]:
    """A session with its newest archive and the live run that uses it."""
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
    """The newest row of a run's session: a lane that returned to the session has appended another row for it."""
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
    """One event of the kernel's table of sessions, as one statement."""
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
    """The session that a run used, if it was ever pinned."""
    return [read_session(row) for row in _of_run.rows(connection, run=run)]


def change_sessions(connection: Connection, changes: Sequence[SessionChange]) -> None:
    """Apply a decision's events to sessions. An event that cannot happen in a session's state changes nothing."""
    for change in changes:
        _on(change.event).count(connection, session=change.session)


def evidence_of(row: Row) -> Evidence:
    """What is known of a run's prompt. A run that never reported a prompt has sent none."""
    if not row["prompt_sent"]:
        return Evidence.UNSENT
    return Evidence(row["evidence"] or Evidence.UNKNOWN)


def _run_ended(dialect: str) -> ClauseElement:
    names = ("seen", "turns", "tokens", "size", "model", "mode", "cut_off")
    given = named({name: sessions.c[name] for name in names})
    turned = given["turns"] > literal_column("0")
    recovers = [state for state in SessionState if advance_session(state, SessionEvent.TURN_COMPLETED) is not None]
    proven = turned & sessions.c.state.in_([literal_column(f"'{state}'") for state in recovers])
    return (
        sessions.update()
        .where(sessions.c.id == bindparam("session"))
        .values(
            seen=greater(dialect, sessions.c.seen, given["seen"]),
            turns=sessions.c.turns + given["turns"],
            tokens=sessions.c.tokens + given["tokens"],
            # A completed turn proves that the session exists and works.
            state=case((proven, literal_column(f"'{SessionState.HEALTHY}'")), else_=sessions.c.state),
            proven_at=case((turned, now()), else_=sessions.c.proven_at),
            # NULL leaves the value as it is.
            **{name: func.coalesce(given[name], sessions.c[name]) for name in ("size", "model", "mode", "cut_off")},
        )
    )


_update = Statement(_run_ended)

# FOR UPDATE: the ends of two runs of the lane may be recorded at once, and neither may lose what the other adds.
_also = Statement(
    lambda _: select(sessions.c.also).where(sessions.c.id == bindparam("session")).with_for_update(of=sessions)
)
_set_also = Statement(
    lambda _: sessions.update().where(sessions.c.id == bindparam("session")).values(also=bindparam("also"))
)


def update_session(connection: Connection, row: Row, usage: Usage, left_nothing: bool = False) -> Row:
    """Record in the session what its run used, and that it has seen the prompt if the agent is known to have taken it.
    `left_nothing`: a turn that was cut off had nothing going that the agent could wait for.

    Returns the run with `pinned` as it is now: the report that pins the session may commit while this end waits for
    the lock on the run."""
    if not (row["prompt_sent"] or usage.turns):
        return row
    _clear_remade_if_told(connection, row)
    _add_late(connection, row)
    values = _session_values(row, EntrySeq(row["told"]), usage, left_nothing)
    return {**row, "pinned": _update.count(connection, **values)}


def update_session_deferred(connection: Connection, row: Row, seen: EntrySeq, usage: Usage) -> None:
    """The same for a caller that needs no answer. `seen` may include the agent's own reply."""
    if row["prompt_sent"] or usage.turns:
        _clear_remade_if_told(connection, row)
        _add_late(connection, row)
        _update.defer(connection, **_session_values(row, seen, usage))


def _add_late(connection: Connection, row: Row) -> None:
    """Record the entries that the prompt told although they are older than its session."""
    if TELLS_LATE not in (row["prompt"] or "") or evidence_of(row) not in HELD_BY_AGENT:
        return
    known = _also.first(connection, session=row["session_id"])
    if known is not None:
        also = {*json.loads(known["also"]), *(read_prompted(row["prompt"]).late or ())}
        _set_also.count(connection, session=row["session_id"], also=json.dumps(sorted(also)))


def _clear_remade_if_told(connection: Connection, row: Row) -> None:
    """An agent is told once that its directory was made again: by a prompt that it took."""
    if TELLS_REMADE in (row["prompt"] or "") and evidence_of(row) in HELD_BY_AGENT:
        clear_remade(connection, LaneId(row["lane_id"]))


_CUT_OFF: Mapping[Evidence, int | None] = {
    Evidence.UNSENT: None,
    Evidence.TAKEN: 0,
    Evidence.CUT_OFF: 1,
    Evidence.FINISHED: 0,
    Evidence.UNKNOWN: None,
}
"""Whether the next prompt must say that the turn was cut off. A prompt that the agent took has said so already."""


def _session_values(row: Row, seen: EntrySeq, usage: Usage, left_nothing: bool = False) -> dict[str, Any]:
    evidence = evidence_of(row)
    cut_off = _CUT_OFF[evidence]
    return {
        "session": row["session_id"],
        "seen": seen if evidence in HELD_BY_AGENT else NOTHING_SEEN,
        "cut_off": 0 if cut_off and left_nothing else cut_off,
        "turns": usage.turns,
        "tokens": usage.tokens,
        "size": usage.size,
        "model": None if usage.model is None else storable(usage.model),
        "mode": None if usage.mode is None else storable(usage.mode),
    }


@dataclass(frozen=True, slots=True)
class Adoption:
    """A session that a person already has with an agent, and the thread in which it is to continue."""

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
    """One transaction: make the lane if it is missing, and append the session as its newest generation. A session that
    belongs to another lane stays there."""
    runtime = _runtime.first(connection, runtime=adoption.runtime)
    if runtime is None or adoption.runtime == UNKNOWN_RUNTIME:
        raise NoSuchRuntime(f"There is no runtime {adoption.runtime}.", "Start its daemon once, so that it registers.")
    if _agent.first(connection, agent=adoption.agent) is None:
        raise NoSuchAgent(f"There is no agent {adoption.agent}.", "See them with `clew agent list`.")
    if _thread.first(connection, thread=adoption.thread) is None:
        raise NoSuchThread(f"There is no thread {adoption.thread}.", "Open it first.")
    lane = lane_id(adoption.agent, adoption.thread)
    # A new lane works on the session's runtime. An existing lane stays where it is.
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
