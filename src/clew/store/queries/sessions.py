"""Sessions as views: those of a thread's lanes, or those that the newest runs used."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, bindparam, select, text

from clew.kernel import Resumability, resumability
from clew.protocol.views import SessionView
from clew.store.engine.dialect import among
from clew.store.engine.statement import Row, Statement
from clew.store.faults import Unreadable
from clew.store.operations.rows import read_session
from clew.store.operations.sessions import with_facts
from clew.store.queries.refs import THREAD_NAME, thread_ref, with_owner
from clew.store.schema.tables import UNKNOWN_RUNTIME, agents, lanes, runs, sessions, threads

RECENT = 500
"""How many of the newest runs are read for the sessions they used."""


@dataclass(frozen=True, slots=True)
class LaneName:
    """A lane as people name it."""

    thread: str
    agent: str


_names = select(
    lanes.c.id.label("lane_id"), lanes.c.thread_id, agents.c.name.label("agent_name"), *THREAD_NAME
).select_from(
    with_owner(lanes.join(threads, threads.c.id == lanes.c.thread_id).join(agents, agents.c.id == lanes.c.agent_id))
)

names_of_lanes = Statement(lambda dialect: _names.where(among(dialect, lanes.c.id, "lanes")))
names_in_thread = Statement(lambda _: _names.where(lanes.c.thread_id == bindparam("thread")))

# Two statements: isolated runs have a scope each, and there may be any number of them.
of_lane = Statement(
    lambda _: (
        with_facts()
        .where(sessions.c.lane_id == bindparam("lane"), sessions.c.scope_run == "")
        .order_by(sessions.c.generation.desc())
        .limit(bindparam("most"))
    )
)
isolated_of_lane = Statement(
    lambda _: (
        with_facts()
        .where(sessions.c.lane_id == bindparam("lane"), sessions.c.scope_run > "")
        .order_by(sessions.c.scope_run.desc(), sessions.c.generation.desc())
        .limit(bindparam("most"))
    )
)
_by_ids = Statement(lambda dialect: with_facts().where(among(dialect, sessions.c.id, "sessions")))

_recent = select(runs.c.session_id).order_by(runs.c.id.desc()).limit(RECENT)
recent = Statement(lambda _: _recent)
recent_of_agent = Statement(lambda _: _recent.where(runs.c.agent_id == bindparam("agent")))

known = Statement(
    lambda dialect: (
        select(sessions.c.native_id, lanes.c.thread_id, *THREAD_NAME)
        .select_from(
            with_owner(
                sessions.join(lanes, lanes.c.id == sessions.c.lane_id).join(threads, threads.c.id == lanes.c.thread_id)
            )
        )
        .where(
            sessions.c.runtime_id == bindparam("runtime"),
            among(dialect, sessions.c.native_id, "natives"),
            text(f"sessions.superseded = 0 AND sessions.runtime_id <> '{UNKNOWN_RUNTIME}'"),
        )
    )
)


@dataclass(frozen=True, slots=True)
class SessionName:
    """A session as people name it: session 3. Two rows with the same `native` are one session."""

    number: int
    native: tuple[str, str]


def session_name(connection: Connection, session: str) -> SessionName | None:
    rows = _by_ids.rows(connection, sessions=[session])
    return SessionName(rows[0]["generation"], (rows[0]["runtime_id"], rows[0]["native_id"])) if rows else None


def sessions_of_thread(connection: Connection, thread: str, agent: str | None, most: int) -> tuple[SessionView, ...]:
    """The newest generations of each lane of the thread, or of that agent's lane."""
    found: list[dict[str, Any]] = []
    for lane in names_in_thread.rows(connection, thread=thread):
        if agent is None or lane["agent_name"] == agent:
            for statement in (of_lane, isolated_of_lane):
                rows = statement.rows(connection, lane=lane["lane_id"], most=most)
                found += [{**row, **lane} for row in rows]
    return _newest(found, most)


def recent_sessions(connection: Connection, agent: str | None, most: int) -> tuple[SessionView, ...]:
    """The sessions that the newest runs used, of one agent or of all."""
    statement, asked = (recent, {}) if agent is None else (recent_of_agent, {"agent": agent})
    names = list(dict.fromkeys(row["session_id"] for row in statement.rows(connection, **asked) if row["session_id"]))
    return _newest(_with_lanes(connection, names), most)


def show_session(connection: Connection, session: str) -> SessionView:
    (row,) = _with_lanes(connection, [session])
    return _view(row)


def threads_of_natives(connection: Connection, runtime: str, natives: Sequence[str]) -> dict[str, str]:
    """The name of the thread that has each of these sessions of a runtime, by the agent's own ids."""
    rows = known.rows(connection, runtime=runtime, natives=list(natives)) if natives else []
    return {row["native_id"]: thread_ref(row) for row in rows}


def lane_names(connection: Connection, of: Collection[str]) -> dict[str, LaneName]:
    rows = names_of_lanes.rows(connection, lanes=list(of)) if of else []
    return {row["lane_id"]: LaneName(thread_ref(row), row["agent_name"]) for row in rows}


def _with_lanes(connection: Connection, names: Sequence[str]) -> list[dict[str, Any]]:
    rows = _by_ids.rows(connection, sessions=list(names)) if names else []
    lanes_by_id = {
        row["lane_id"]: row for row in names_of_lanes.rows(connection, lanes=list({row["lane_id"] for row in rows}))
    }
    return [{**row, **lanes_by_id[row["lane_id"]]} for row in rows]


def _newest(rows: list[dict[str, Any]], most: int) -> tuple[SessionView, ...]:
    ordered = sorted(rows, key=lambda row: (row["born_at"], row["generation"]), reverse=True)
    return tuple(map(_view, ordered[:most]))


def _view(row: Row) -> SessionView:
    """A row that cannot be read is shown as damaged, with what its columns hold: it hides no other session."""
    try:
        return _readable(row)
    except Unreadable:
        return SessionView(
            id=row["id"],
            thread=thread_ref(row),
            agent=row["agent_name"],
            generation=row["generation"],
            provider=row["provider"],
            runtime=row["runtime_id"],
            native_id=row["native_id"],
            directory=row["directory"],
            state="damaged",
            turns=row["turns"],
            seen=row["seen"],
            born_at=row["born_at"],
            proven_at=row["proven_at"],
            resumability=Resumability.UNUSABLE.value,
            scope=row["scope_run"] or "lane",
            superseded=bool(row["superseded"]),
        )


def _readable(row: Row) -> SessionView:
    session = read_session(row)
    return SessionView(
        id=session.id,
        thread=thread_ref(row),
        agent=row["agent_name"],
        generation=session.generation,
        provider=session.provider,
        runtime=row["runtime_id"],
        native_id=row["native_id"],
        directory=session.directory.path,
        state=session.state.value,
        turns=session.turns,
        seen=session.seen,
        born_at=session.born_at,
        proven_at=session.proven_at,
        resumability=resumability(session).value,
        scope=row["scope_run"] or "lane",
        superseded=bool(row["superseded"]),
    )
