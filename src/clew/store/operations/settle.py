"""Settling: what a run carried is served, pending again or cancelled, and what is pending gets a run."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum, auto
from typing import Any

from sqlalchemy import ColumnElement, Connection, bindparam, case, func, literal_column, null, select, text
from sqlalchemy.sql import ClauseElement

from clew.kernel import (
    HELD_BY_AGENT,
    NOTHING_SEEN,
    SESSION_TABLE,
    STEER_TABLE,
    WAKE_ENDS,
    AgentId,
    Carried,
    EntrySeq,
    Evidence,
    Instant,
    LaneId,
    RunId,
    RunState,
    RuntimeId,
    SessionEvent,
    SteerEvent,
    ThreadId,
    WakeEvent,
    WakeState,
    advance_wake,
)
from clew.protocol.reports import TELLS_REMADE, Usage
from clew.store.engine.dialect import greater, keepable, now
from clew.store.engine.hints import hint_queue, hint_run, hint_thread
from clew.store.engine.statement import POSTGRESQL, Done, Given, Row, Statement, in_one_trip, named
from clew.store.operations.queue import queue_run
from clew.store.operations.wake_state import state_after, state_literal
from clew.store.operations.workspaces import clear_remade
from clew.store.schema.tables import agents, approvals, lanes, runs, sessions, wakes


class Untold(Enum):
    """What becomes of a wake of which it is not known whether the agent was told within its turn."""

    WAITS_AGAIN = auto()
    """Its daemon said no word of it before the run ended."""
    STAYS = auto()
    """The run is being stopped: its daemon knows soon."""
    SHARES = auto()
    """What the others of the run do."""


@dataclass(frozen=True, slots=True)
class Fate:
    """What becomes of the wakes that a run carried, and why. `until` is when released ones may be taken again."""

    event: WakeEvent
    code: str
    words: str
    until: Instant | None = None
    untold: Untold = Untold.WAITS_AGAIN


_RECEIPT = named({"code": wakes.c.code, "words": wakes.c.words})

_UNTOLD = wakes.c.code == literal_column(f"'{Carried.STEERING.code}'")


def ends(event: WakeEvent, untold: Untold, given: Given) -> dict[str, Any]:
    """What is written of a run's wakes as they end."""
    ends: dict[str, Any] = {
        "state": state_after(WakeState.CLAIMED, event),
        "code": given["code"],
        "words": given["words"],
        "ended_at": now(),
    }
    if untold is not Untold.WAITS_AGAIN:
        return ends
    state, why = STEER_TABLE[WakeState.CLAIMED, SteerEvent.REFUSE]
    again: dict[str, Any] = {
        "state": state_literal(state),
        "code": literal_column(f"'{why.code}'"),
        "words": literal_column(f"'{why.fill()}'"),
        "ended_at": null(),
        "run_id": null(),
    }
    return {name: case((_UNTOLD, again[name]), else_=ends.get(name, wakes.c[name])) for name in again}


def _let_go(dialect: str, event: WakeEvent, untold: Untold) -> ClauseElement:
    pending = wakes.alias("others")
    others = (
        select(func.count())
        .select_from(pending)
        # In so many words: SQLAlchemy leaves tables out where SQLite returns rows.
        .where(text("others.lane_id = wakes.lane_id AND others.state = 'pending'"))
        .scalar_subquery()
    )
    if advance_wake(WakeState.CLAIMED, event) in WAKE_ENDS:
        change = ends(event, untold, _RECEIPT)
    else:
        change = {
            "state": state_after(WakeState.CLAIMED, event),
            "code": bindparam("code"),
            "words": bindparam("words"),
            "run_id": null(),
            "not_before": bindparam("until"),
            "began": greater(dialect, wakes.c.began, bindparam("began", type_=wakes.c.began.type)),
        }
    of_run = (wakes.c.run_id == bindparam("run")) & (wakes.c.state == state_literal(WakeState.CLAIMED))
    return (
        wakes.update()
        .where(of_run & ~_UNTOLD if untold is Untold.STAYS else of_run)
        .values(change)
        .returning(wakes.c.id, wakes.c.state, others.label("pending"))
    )


let_go = {
    (event, untold): Statement(lambda dialect, event=event, untold=untold: _let_go(dialect, event, untold))  # type: ignore[misc]
    for event in (WakeEvent.SERVE, WakeEvent.CANCEL, WakeEvent.RELEASE)
    for untold in Untold
}


_carried = Statement(
    lambda _: select(func.count().label("carried")).where(
        wakes.c.run_id == bindparam("run"), wakes.c.state == state_literal(WakeState.CLAIMED)
    )
)

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


def _runtime_of_lane(dialect: str) -> ClauseElement:
    statement = (
        select(lanes.c.runtime_id.label("lanes"), agents.c.runtime_id.label("agents"))
        .select_from(lanes.join(agents, agents.c.id == lanes.c.agent_id))
        .where(lanes.c.id == bindparam("lane"))
    )
    # Neither is moved before the run that this is for is there (moving.py).
    return statement.with_for_update(read=True, key_share=True) if dialect == POSTGRESQL else statement


_lane_runtime = Statement(_runtime_of_lane)

_put = Statement(lambda _: runs.update().where(runs.c.id == bindparam("run")).values(runtime_id=bindparam("runtime")))

_stale_approvals = Statement(
    lambda _: (
        approvals.update()
        .where(approvals.c.run_id == bindparam("run"), text("approvals.state = 'pending'"))
        .values(state=literal_column("'stale'"), ended_at=now())
    )
)


def session_after(dialect: str, seen: ColumnElement[int], usage: Given, cut_off: ColumnElement[int]) -> dict[str, Any]:
    """What is written of a session when a run lets go of it that has brought it to see so far. `cut_off` is null where
    it is not known whether the turn was."""
    healthy = [start.value for (start, event) in SESSION_TABLE if event is SessionEvent.TURN_COMPLETED]
    back = sessions.c.state.in_([literal_column(f"'{state}'") for state in healthy])
    turned = usage["turns"] > literal_column("0")
    return {
        "seen": greater(dialect, sessions.c.seen, seen),
        "turns": sessions.c.turns + usage["turns"],
        "tokens": sessions.c.tokens + usage["tokens"],
        **{name: func.coalesce(usage[name], sessions.c[name]) for name in ("size", "model", "mode")},
        # A turn that was completed proves that the session is there and well.
        "state": case((turned & back, literal_column("'healthy'")), else_=sessions.c.state),
        "proven_at": case((turned, now()), else_=sessions.c.proven_at),
        "cut_off": func.coalesce(cut_off, sessions.c.cut_off),
    }


def _session_end(dialect: str) -> ClauseElement:
    said = named({name: sessions.c[name] for name in ("seen", "turns", "tokens", "size", "model", "mode", "cut_off")})
    ended = session_after(dialect, said["seen"], said, said["cut_off"])
    return sessions.update().where(sessions.c.id == bindparam("session")).values(ended)


_end_session = Statement(_session_end)


def told(connection: Connection, row: Row, usage: Usage) -> Row:
    """Keep with the session what it has used, and how far it has seen: as far as the prompt told, if it is known that
    it took it. The run as it is now: its session may have been pinned while its end waited for that very report."""
    if not (row["prompt_sent"] or usage.turns):
        return row
    _told_of_place(connection, row)
    return {**row, "pinned": _end_session.count(connection, **_at_the_end(row, EntrySeq(row["told"]), usage))}


def told_at_last(connection: Connection, row: Row, seen: EntrySeq, usage: Usage) -> None:
    """The same where nothing follows. `seen` may count its own reply."""
    if row["prompt_sent"] or usage.turns:
        _told_of_place(connection, row)
        _end_session.defer(connection, **_at_the_end(row, seen, usage))


def _told_of_place(connection: Connection, row: Row) -> None:
    """A directory that was made again is told of once: by a prompt that the agent took."""
    if TELLS_REMADE in (row["prompt"] or "") and evidence_of(row) in HELD_BY_AGENT:
        clear_remade(connection, LaneId(row["lane_id"]))


def evidence_of(row: Row) -> Evidence:
    """What is known of the prompt of a run. One that never reported a prompt has sent none."""
    if not row["prompt_sent"]:
        return Evidence.UNSENT
    return Evidence(row["evidence"] or Evidence.UNKNOWN)


_CUT_OFF: Mapping[Evidence, int | None] = {
    Evidence.UNSENT: None,
    Evidence.TAKEN: 0,
    Evidence.CUT_OFF: 1,
    Evidence.FINISHED: 0,
    Evidence.UNKNOWN: None,
}
"""Whether the session is to be told that its turn was cut off. A prompt that it took has told it of an earlier one."""


def _at_the_end(row: Row, seen: EntrySeq, usage: Usage) -> dict[str, Any]:
    evidence = evidence_of(row)
    return {
        "session": row["session_id"],
        "seen": seen if evidence in HELD_BY_AGENT else NOTHING_SEEN,
        "cut_off": _CUT_OFF[evidence],
        **used(usage),
    }


def used(usage: Usage) -> dict[str, Any]:
    """What a run used, as it is kept."""
    model, mode = (None if said is None else keepable(said) for said in (usage.model, usage.mode))
    return {"turns": usage.turns, "tokens": usage.tokens, "size": usage.size, "model": model, "mode": mode}


def settle(
    connection: Connection, row: Row, fate: Fate, tries: int = 0, beside: Sequence[tuple[Statement, Row]] = ()
) -> list[Done]:
    """Let go of the run's wakes, once. `row` is the run after it ended or went back to the queue. What is to be done
    beside it is done first, and answered."""
    began = {"began": int(bool(row["pinned"])), "until": fate.until} if fate.event is WakeEvent.RELEASE else {}
    release = {"run": row["id"], "code": fate.code, "words": fate.words, **began}
    *done, released = in_one_trip(connection, *beside, (let_go[fate.event, fate.untold], release))
    state = RunState(row["state"])
    if row["asked"]:
        _stale_approvals.count(connection, run=row["id"])
    waits = any(each["state"] == "pending" for each in released.rows)
    left = released.rows[0]["pending"] if released.rows and not waits else None
    if state is RunState.QUEUED:
        _go_along(connection, row)
    elif state is not RunState.STOPPING and left != 0:
        queue_pending(connection, row, tries)
    _tell(connection, row)
    return done


def _tell(connection: Connection, row: Row) -> None:
    hint_thread(connection, ThreadId(row["thread_id"]))
    hint_run(connection, RunId(row["id"]))


def carried_by(connection: Connection, run: RunId) -> int:
    """How many wakes the run carries."""
    carried = _carried.first(connection, run=run)
    return 0 if carried is None else carried["carried"]


def pending_in(connection: Connection, lane: LaneId) -> int:
    """How many wakes of the lane wait for a run."""
    waiting = _pending.first(connection, lane=lane)
    return 0 if waiting is None else waiting["pending"] or 0


def _go_along(connection: Connection, row: Row) -> None:
    """A run that went back to the queue waits where another for the same wakes would: its lane or its agent may have
    been moved while it was going."""
    waiting = _pending.first(connection, lane=row["lane_id"])
    runtime = _where(connection, row, bool(waiting and waiting["began"]))
    if runtime is not None and runtime != row["runtime_id"]:
        _put.count(connection, run=row["id"], runtime=runtime)
        hint_queue(connection, runtime)


def _where(connection: Connection, row: Row, began: bool) -> RuntimeId | None:
    """Where what waits is taken up after a run: where somebody put the lane, else where the run was while it has to go
    on there, else where its agent is."""
    chosen = _lane_runtime.first(connection, lane=row["lane_id"])
    assert chosen is not None
    put = chosen["lanes"] or (None if began else chosen["agents"]) or row["runtime_id"]
    return None if put is None else RuntimeId(put)


def queue_pending(connection: Connection, row: Row, tries: int = 0) -> None:
    """A run for what is pending in the lane, if anything is."""
    lane = LaneId(row["lane_id"])
    waiting = _pending.first(connection, lane=lane)
    if waiting is None or not waiting["pending"]:
        return
    queue_run(
        connection,
        lane,
        AgentId(row["agent_id"]),
        _where(connection, row, bool(waiting["began"])),
        row["now"],
        waiting["priority"],
        None if waiting["due"] else waiting["until"],
        tries,
        since=waiting["since"],
    )
