"""Pins: a run reports which session it uses, and the lane gets a generation. Session, runtime and run are one row."""

import json
from dataclasses import dataclass
from typing import Any

from sqlalchemy import ColumnElement, Connection, bindparam, func, literal_column, select, text
from sqlalchemy.sql import ClauseElement

from clew.kernel import (
    Directory,
    Floor,
    Instant,
    NativeId,
    Pin,
    PinReason,
    RunId,
    RuntimeId,
    SessionId,
    pin,
    write_cursor,
)
from clew.protocol.reports import NewSession
from clew.store.engine.dialect import greater, insert_in, now
from clew.store.engine.statement import Row, Statement
from clew.store.faults import SessionHeld
from clew.store.operations.ids import new_id
from clew.store.schema.tables import UNKNOWN_RUNTIME, lanes, runs, sessions


@dataclass(frozen=True, slots=True)
class PinnedSession:
    """The row of the run's session, and the result of the pin."""

    session: SessionId
    reason: PinReason


# The others are computed, or have defaults.
_OTHERS = frozenset({"generation", "state", "born_at", "proven_at", "archive_id", "superseded", "cut_off"})
_COLUMNS = tuple(column.name for column in sessions.c if column.name not in _OTHERS)


def _append(dialect: str) -> ClauseElement:
    """Insert the next generation of the lane and scope; nothing if uq_sessions_native has a row for that session."""
    values = {name: bindparam(name, type_=sessions.c[name].type) for name in _COLUMNS}
    own = (sessions.c.lane_id == values["lane_id"], sessions.c.scope_run == values["scope_run"])
    appended = insert_in(dialect, sessions).from_select(
        [*_COLUMNS, "generation", "born_at"],
        select(*values.values(), func.coalesce(func.max(sessions.c.generation), 0) + 1, now()).where(*own),
    )
    return appended.on_conflict_do_nothing(
        index_elements=[sessions.c.runtime_id, sessions.c.native_id],
        index_where=text(f"superseded = 0 AND runtime_id <> '{UNKNOWN_RUNTIME}'"),
    ).returning(sessions.c.id, sessions.c.generation)


append_session = Statement(_append)

holder_of = Statement(
    lambda _: (
        select(sessions, lanes.c.thread_id)
        .join(lanes, lanes.c.id == sessions.c.lane_id)
        .where(
            sessions.c.runtime_id == bindparam("runtime"),
            sessions.c.native_id == bindparam("native"),
            text(f"sessions.superseded = 0 AND sessions.runtime_id <> '{UNKNOWN_RUNTIME}'"),
        )
    )
)

_newest = Statement(
    lambda _: (
        select(sessions, runs.c.queued_at)
        .outerjoin(runs, runs.c.id == sessions.c.run_id)
        .where(sessions.c.lane_id == bindparam("lane"), sessions.c.scope_run == bindparam("scope"))
        .order_by(sessions.c.generation.desc())
        .limit(1)
    )
)

_supersede = Statement(
    lambda _: sessions.update().where(sessions.c.id == bindparam("session")).values(superseded=literal_column("1"))
)

_set_session = Statement(
    lambda _: runs.update().where(runs.c.id == bindparam("run")).values(session_id=bindparam("session"))
)


# Reported each time an agent uses the session; the newest value counts.
_REPORTED_EACH_TIME = ("cursor", "directory", "real_directory", "model", "mode", "instructions", "tools", "credential")

_set_reported = Statement(
    lambda _: (
        sessions.update()
        .where(sessions.c.id == bindparam("session"))
        .values({name: bindparam(name) for name in _REPORTED_EACH_TIME})
    )
)


def _copy(_: str) -> ClauseElement:
    """Insert a copy of a session's row as the next generation of its lane and scope."""
    known = sessions.alias("known")
    others = sessions.alias("others")
    newest = select(func.max(others.c.generation)).where(
        others.c.lane_id == known.c.lane_id, others.c.scope_run == known.c.scope_run
    )
    changed: dict[str, ColumnElement[Any]] = {
        "id": bindparam("session", type_=sessions.c.id.type),
        "generation": newest.scalar_subquery() + 1,
        "run_id": bindparam("run", type_=sessions.c.run_id.type),
        "superseded": literal_column("0"),
    }
    names = sessions.c.keys()
    again = select(*(changed.get(name, known.c[name]) for name in names)).where(known.c.id == bindparam("known"))
    return sessions.insert().from_select(names, again)


_append_again = Statement(_copy)


def _floor(dialect: str) -> ClauseElement:
    newest = (
        select(func.coalesce(func.max(sessions.c.generation), 0))
        .where(
            sessions.c.lane_id == bindparam("lane"),
            sessions.c.scope_run == literal_column("''"),
            sessions.c.id != bindparam("session"),
        )
        .scalar_subquery()
    )
    return (
        lanes.update()
        .where(lanes.c.id == bindparam("lane"))
        .values(
            floor_generation=greater(dialect, newest, bindparam("generation", type_=lanes.c.floor_generation.type)),
            floor_entry=bindparam("entry"),
            floor_kept=bindparam("kept"),
        )
    )


_set_floor = Statement(_floor)


def pin_session(connection: Connection, row: Row, new: NewSession) -> PinnedSession:
    """Record the run's session. A run that has ended must not replace what a newer run pinned. `row` is the run as it
    is now."""
    planned = SessionId(row["session_id"])
    if row["ended_at"] is not None or row["pinned"]:
        newest = _newest.first(connection, lane=row["lane_id"], scope=row["scope_run"])
        if row["ended_at"] is not None and _is_late(newest, row, new):
            return PinnedSession(planned, PinReason.LATE)
        if newest is not None and newest["id"] == planned and _is_same(newest, row, new):
            _update_reported(connection, newest, new)
            return PinnedSession(planned, PinReason.SAME)
    # An agent that changes its session within a run leaves one generation behind and starts another.
    session = SessionId(new_id("ss")) if row["pinned"] else planned
    appended = append_session.first(connection, **_values(row, new, session))
    if appended is None:
        return _known(connection, row, new)
    if session != planned:
        set_session(connection, row, session)
    if new.floor is not None:
        _raise_floor(connection, row, new.floor, session)
    return PinnedSession(session, PinReason.FIRST if appended["generation"] == 1 else PinReason.NEW_GENERATION)


def set_session(connection: Connection, row: Row, session: SessionId) -> None:
    """The run uses that session from now on. A run that ended with a pinned session keeps it."""
    if row["ended_at"] is None or not row["pinned"]:
        _set_session.defer(connection, run=row["id"], session=session)


def _is_late(newest: Row | None, row: Row, new: NewSession) -> bool:
    """A run that has ended may pin a session where there is none; it never replaces what a newer run pinned."""
    held = None if newest is None else _pin(newest["run_id"], newest["queued_at"], newest["native_id"], newest)
    return pin(held, _pin(row["id"], row["queued_at"], new.cursor.native_id, row)).reason is PinReason.LATE


def _pin(run: str | None, queued_at: Instant | None, native: str, row: Row) -> Pin:
    order = 0 if queued_at is None else int(queued_at * 1_000_000)
    # The directory does not matter for which pin is newer.
    return Pin(RunId(run or ""), order, NativeId(native), RuntimeId(row["runtime_id"]), Directory("/"))


def _is_same(record: Row, row: Row, new: NewSession) -> bool:
    return (record["native_id"], record["runtime_id"]) == (new.cursor.native_id, row["runtime_id"])


def _update_reported(connection: Connection, record: Row, new: NewSession) -> None:
    reported = {name: value for name, value in session_facts(new).items() if name in _REPORTED_EACH_TIME}
    if any(record[name] != value for name, value in reported.items()):
        _set_reported.count(connection, session=record["id"], **reported)


def _known(connection: Connection, row: Row, new: NewSession) -> PinnedSession:
    """A row for that session exists. If it is of this lane and scope it is reused; any other keeps the session."""
    known = holder_of.first(connection, runtime=row["runtime_id"], native=new.cursor.native_id)
    if known is None or (known["lane_id"], known["scope_run"]) != (row["lane_id"], row["scope_run"]):
        raise held_by_another(new.cursor.native_id, known)
    newest = _newest.first(connection, lane=row["lane_id"], scope=row["scope_run"])
    reason = PinReason.SAME
    if newest is None or newest["id"] != known["id"]:
        known, reason = _go_back(connection, row, known), PinReason.NEW_GENERATION
    if row["session_id"] != known["id"]:
        set_session(connection, row, SessionId(known["id"]))
    _update_reported(connection, known, new)
    return PinnedSession(SessionId(known["id"]), reason)


def _go_back(connection: Connection, row: Row, known: Row) -> Row:
    """The lane returns to an earlier session: append it again as a new generation, with everything it has seen."""
    _supersede.count(connection, session=known["id"])
    session = new_id("ss")
    _append_again.count(connection, session=session, known=known["id"], run=row["id"])
    return {**known, "id": session}


def held_by_another(native: NativeId, known: Row | None) -> SessionHeld:
    holder = "another lane" if known is None else f"thread {known['thread_id']}, generation {known['generation']}"
    return SessionHeld(
        f"Session {native} belongs to {holder} and was left there.",
        "A session belongs to one lane. Start a new session here.",
    )


def _values(row: Row, new: NewSession, session: SessionId) -> dict[str, object]:
    return {
        "id": session,
        "lane_id": row["lane_id"],
        "scope_run": row["scope_run"],
        "provider": row["provider"],
        "runtime_id": row["runtime_id"],
        "run_id": row["id"],
        "adopted_at": None,
        **session_facts(new),
    }


def session_facts(new: NewSession) -> dict[str, object]:
    """The columns that describe a session, pinned or adopted."""
    return {
        "native_id": new.cursor.native_id,
        "cursor": write_cursor(new.cursor),
        "directory": new.directory.path,
        "real_directory": new.directory.real,
        "account": new.account,
        "credential": new.credential,
        "begins": new.begins,
        "also": json.dumps(new.also),
        # What it had seen before this run's prompt. It is raised once the agent is known to have taken the prompt.
        "seen": new.seen,
        "inherited": new.seen,
        "model": new.model,
        "mode": new.mode,
        "instructions": new.instructions,
        "tools": new.tools,
        "turns": 0,
        "tokens": 0,
        "size": 0,
    }


def _raise_floor(connection: Connection, row: Row, floor: Floor, session: SessionId) -> None:
    _set_floor.defer(
        connection,
        lane=row["lane_id"],
        session=session,
        generation=floor.generation,
        entry=floor.entry,
        kept=json.dumps(floor.kept),
    )
