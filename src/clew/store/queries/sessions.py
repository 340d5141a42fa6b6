"""Sessions as they are shown: those of a thread's lanes, or those that an agent's newest runs were in."""

from collections.abc import Sequence
from typing import Any

from sqlalchemy import Connection, bindparam, select, text

from clew.store.engine.statement import Row, Statement, among
from clew.store.operations.sessions import with_facts
from clew.store.queries.threads import THREAD_NAME, with_owner
from clew.store.schema.tables import UNKNOWN_RUNTIME, agents, lanes, runs, sessions, threads

RECENT = 500
"""How many of the newest runs are looked at for the sessions they were in."""

_names = select(
    lanes.c.id.label("lane_id"), lanes.c.thread_id, agents.c.name.label("agent_name"), *THREAD_NAME
).select_from(
    with_owner(lanes.join(threads, threads.c.id == lanes.c.thread_id).join(agents, agents.c.id == lanes.c.agent_id))
)

names_of_lanes = Statement(lambda dialect: _names.where(among(dialect, lanes.c.id, "lanes")))
names_in_thread = Statement(lambda _: _names.where(lanes.c.thread_id == bindparam("thread")))

# The lane's own scope apart from those of single runs, of which there may be any number.
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
by_ids = Statement(lambda dialect: with_facts().where(among(dialect, sessions.c.id, "sessions")))

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


def in_thread(connection: Connection, thread: str, agent: str | None, most: int) -> Sequence[Row]:
    """The newest generations of each lane; what names the lane is in each row."""
    found: list[dict[str, Any]] = []
    for lane in names_in_thread.rows(connection, thread=thread):
        if agent is None or lane["agent_name"] == agent:
            for statement in (of_lane, isolated_of_lane):
                rows = statement.rows(connection, lane=lane["lane_id"], most=most)
                found += [{**row, **lane} for row in rows]
    return sorted(found, key=lambda row: (row["born_at"], row["generation"]), reverse=True)[:most]


def recently_used(connection: Connection, agent: str | None, most: int) -> Sequence[Row]:
    """The sessions that the newest runs were in, of one agent or of all."""
    statement, asked = (recent, {}) if agent is None else (recent_of_agent, {"agent": agent})
    names = list(dict.fromkeys(row["session_id"] for row in statement.rows(connection, **asked) if row["session_id"]))
    rows = by_ids.rows(connection, sessions=names) if names else []
    lanes_by_id = {
        row["lane_id"]: row for row in names_of_lanes.rows(connection, lanes=list({row["lane_id"] for row in rows}))
    }
    found = [{**row, **lanes_by_id[row["lane_id"]]} for row in rows]
    return sorted(found, key=lambda row: (row["born_at"], row["generation"]), reverse=True)[:most]


def read_session_row(connection: Connection, session: str) -> Row | None:
    rows = by_ids.rows(connection, sessions=[session])
    if not rows:
        return None
    (lane,) = names_of_lanes.rows(connection, lanes=[rows[0]["lane_id"]])
    return {**rows[0], **lane}


def whose_are(connection: Connection, runtime: str, natives: Sequence[str]) -> dict[str, Row]:
    """Which threads have these sessions of a runtime, by the agent's own ids."""
    rows = known.rows(connection, runtime=runtime, natives=list(natives)) if natives else []
    return {row["native_id"]: row for row in rows}
