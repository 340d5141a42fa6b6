"""Sessions as candidates: the newest generations of one lane and scope, by one index."""

from collections.abc import Sequence
from functools import cache

from sqlalchemy import Connection, Select, and_, bindparam, case, or_, select, text
from sqlalchemy.sql import ClauseElement

from clew.kernel import (
    CANDIDATES,
    LaneId,
    RunId,
    Session,
    SessionChange,
    SessionEvent,
    SessionId,
    SessionState,
    advance_session,
)
from clew.store.engine.statement import Statement
from clew.store.operations.rows import read_session
from clew.store.schema.tables import LIVE, archives, runs, sessions


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

_by_id = Statement(lambda _: with_facts().where(sessions.c.id == bindparam("session")))


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


def session_by_id(connection: Connection, session: SessionId) -> Session | None:
    row = _by_id.first(connection, session=session)
    return None if row is None else read_session(row)


def apply_marks(connection: Connection, marks: Sequence[SessionChange]) -> None:
    """What a decision implies for a session's state; what cannot happen to it any more changes nothing."""
    for mark in marks:
        _on(mark.event).count(connection, session=mark.session)
