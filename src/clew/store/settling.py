"""Settling: what a run carried is served, pending again or cancelled, and what is pending gets a run."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, bindparam, case, func, literal_column, null, select, text
from sqlalchemy.sql import ClauseElement

from clew.kernel import (
    SESSION_TABLE,
    AgentId,
    EntrySeq,
    Instant,
    LaneId,
    RunId,
    RunState,
    RuntimeId,
    SessionEvent,
    ThreadId,
    WakeEvent,
)
from clew.store.clock import now
from clew.store.dialect import greater
from clew.store.hints import hint_run, hint_thread
from clew.store.queueing import queue_run
from clew.store.statement import Done, Row, Statement, may_guess, together
from clew.store.tables import agents, approvals, lanes, sessions, wakes
from clew.wire.ends import Usage

_ENDS = {WakeEvent.SERVE: "served", WakeEvent.CANCEL: "cancelled"}


@dataclass(frozen=True, slots=True)
class Fate:
    """What becomes of the wakes that a run carried, and why. `until` is when released ones may be taken again."""

    event: WakeEvent
    code: str
    words: str
    until: Instant | None = None


def _let_go(dialect: str, event: WakeEvent) -> ClauseElement:
    pending = wakes.alias("others")
    others = (
        select(func.count())
        .select_from(pending)
        # In so many words: SQLAlchemy leaves tables out where SQLite returns rows.
        .where(text("others.lane_id = wakes.lane_id AND others.state = 'pending'"))
        .scalar_subquery()
    )
    change: dict[str, Any] = {
        "state": literal_column(f"'{_ENDS.get(event, 'pending')}'"),
        "code": bindparam("code"),
        "words": bindparam("words"),
    }
    if event in _ENDS:
        change["ended_at"] = now()
    else:
        change |= {
            "run_id": null(),
            "not_before": bindparam("until"),
            "began": greater(dialect, wakes.c.began, bindparam("began", type_=wakes.c.began.type)),
        }
    return (
        wakes.update()
        .where(wakes.c.run_id == bindparam("run"), wakes.c.state == literal_column("'claimed'"))
        .values(change)
        .returning(wakes.c.id, wakes.c.route, others.label("pending"))
    )


_LETS_GO = {
    event: Statement(lambda dialect, event=event: _let_go(dialect, event))  # type: ignore[misc]
    for event in (WakeEvent.SERVE, WakeEvent.CANCEL, WakeEvent.RELEASE)
}


def _serve_alone(_: str) -> ClauseElement:
    """It fails where another wake waits in the lane, and with it all that was done for the end of the run."""
    gone = (
        wakes.update()
        .where(wakes.c.run_id == bindparam("run"), wakes.c.state == literal_column("'claimed'"))
        .values(state=literal_column("'served'"), code=bindparam("code"), words=bindparam("words"), ended_at=now())
        .returning(wakes.c.id)
        .cte("gone")
    )
    others = select(wakes.c.id).where(wakes.c.lane_id == bindparam("lane"), text("wakes.state = 'pending'")).exists()
    alone = literal_column("1") / case((others, literal_column("0")), else_=literal_column("1"))
    return select(alone, select(func.count()).select_from(gone).scalar_subquery())


_serve_all = Statement(_serve_alone)

_pending = Statement(
    lambda _: select(
        func.count().label("pending"),
        func.max(wakes.c.priority).label("priority"),
        func.min(wakes.c.accepted_at).label("since"),
        func.sum(wakes.c.not_before.is_(None).cast(wakes.c.began.type)).label("due"),
        func.min(wakes.c.not_before).label("until"),
        func.max(wakes.c.began).label("began"),
    ).where(wakes.c.lane_id == bindparam("lane"), text("wakes.state = 'pending'"))
)

_lane_runtime = Statement(
    lambda _: (
        select(lanes.c.runtime_id.label("lanes"), agents.c.runtime_id.label("agents"))
        .select_from(lanes.join(agents, agents.c.id == lanes.c.agent_id))
        .where(lanes.c.id == bindparam("lane"))
    )
)

_stale_approvals = Statement(
    lambda _: (
        approvals.update()
        .where(approvals.c.run_id == bindparam("run"), text("approvals.state = 'pending'"))
        .values(state=literal_column("'stale'"), ended_at=now())
    )
)


def _session_end(dialect: str) -> ClauseElement:
    healthy = [start.value for (start, event) in SESSION_TABLE if event is SessionEvent.TURN_COMPLETED]
    back = sessions.c.state.in_([literal_column(f"'{state}'") for state in healthy])
    turned = bindparam("turns", type_=sessions.c.turns.type)
    return (
        sessions.update()
        .where(sessions.c.id == bindparam("session"))
        .values(
            seen=greater(dialect, sessions.c.seen, bindparam("seen", type_=sessions.c.seen.type)),
            turns=sessions.c.turns + turned,
            tokens=sessions.c.tokens + bindparam("tokens", type_=sessions.c.tokens.type),
            size=func.coalesce(bindparam("size", type_=sessions.c.size.type), sessions.c.size),
            model=func.coalesce(bindparam("model", type_=sessions.c.model.type), sessions.c.model),
            mode=func.coalesce(bindparam("mode", type_=sessions.c.mode.type), sessions.c.mode),
            # A turn that was completed proves that the session is there and well.
            state=case(((turned > 0) & back, literal_column("'healthy'")), else_=sessions.c.state),
            proven_at=case((turned > 0, now()), else_=sessions.c.proven_at),
        )
    )


_end_session = Statement(_session_end)


def told(connection: Connection, row: Row, seen: EntrySeq, usage: Usage) -> Row:
    """Keep with the session how far it has seen and what it has used, once its run has let go of it. The run as it
    is now: its session may have been pinned while the end of the run was waiting for that very report."""
    if not (row["prompt_sent"] or usage.turns):
        return row
    return {**row, "pinned": _end_session.count(connection, **_at_the_end(row, seen, usage))}


def told_at_last(connection: Connection, row: Row, seen: EntrySeq, usage: Usage) -> None:
    """The same where nothing follows."""
    if row["prompt_sent"] or usage.turns:
        _end_session.leave(connection, **_at_the_end(row, seen, usage))


def _at_the_end(row: Row, seen: EntrySeq, usage: Usage) -> dict[str, Any]:
    return {
        "session": row["session_id"],
        "seen": seen,
        "turns": usage.turns,
        "tokens": usage.tokens,
        "size": usage.size,
        "model": usage.model,
        "mode": usage.mode,
    }


def settle(
    connection: Connection, row: Row, fate: Fate, tries: int = 0, beside: Sequence[tuple[Statement, Row]] = ()
) -> list[Done]:
    """Let go of the run's wakes, once. `row` is the run after it ended or went back to the queue. What is to be done
    beside it is done first, and answered."""
    began = {"began": int(bool(row["pinned"])), "until": fate.until} if fate.event is WakeEvent.RELEASE else {}
    release = {"run": row["id"], "code": fate.code, "words": fate.words, **began}
    *done, let_go = together(connection, *beside, (_LETS_GO[fate.event], release))
    state = RunState(row["state"])
    if row["asked"]:
        _stale_approvals.count(connection, run=row["id"])
    left = let_go.rows[0]["pending"] if let_go.rows and fate.event is not WakeEvent.RELEASE else None
    if state is not RunState.QUEUED and state is not RunState.STOPPING and left != 0:
        queue_pending(connection, row, tries)
    _tell(connection, row)
    return done


def is_alone(connection: Connection, row: Row) -> bool:
    """Whether no other wake waited in the lane when the run ended: then its own may be served without another look.
    Whoever is wrong about it is run again, and looks."""
    return may_guess(connection) and not row["waiting"] and not row["asked"]


def serve_alone(connection: Connection, row: Row, fate: Fate) -> None:
    """What `settle` does where nothing else waits."""
    _serve_all.leave(connection, run=row["id"], lane=row["lane_id"], code=fate.code, words=fate.words)
    _tell(connection, row)


def _tell(connection: Connection, row: Row) -> None:
    hint_thread(connection, ThreadId(row["thread_id"]))
    hint_run(connection, RunId(row["id"]))


def pending_in(connection: Connection, lane: LaneId) -> int:
    """How many wakes of the lane wait for a run."""
    waiting = _pending.first(connection, lane=lane)
    return 0 if waiting is None else waiting["pending"] or 0


def queue_pending(connection: Connection, row: Row, tries: int = 0) -> None:
    """A run for what is pending in the lane, if anything is: where somebody put the lane, else where its last run was
    while it has to go on there, else where its agent is."""
    lane = LaneId(row["lane_id"])
    waiting = _pending.first(connection, lane=lane)
    if waiting is None or not waiting["pending"]:
        return
    runtime = RuntimeId(row["runtime_id"]) if row["runtime_id"] is not None else None
    chosen = _lane_runtime.first(connection, lane=lane)
    if chosen is not None:
        put = chosen["lanes"] if waiting["began"] or chosen["lanes"] is not None else chosen["agents"]
        runtime = runtime if put is None else RuntimeId(put)
    queue_run(
        connection,
        lane,
        AgentId(row["agent_id"]),
        runtime,
        row["now"],
        waiting["priority"],
        None if waiting["due"] else waiting["until"],
        tries,
        since=waiting["since"],
    )
