"""The wakes that a run carries: how they end or wait again with it, and the lane's next run for what is pending."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum, auto
from typing import Any

from sqlalchemy import Connection, bindparam, case, func, literal_column, null, select, text
from sqlalchemy.sql import ClauseElement

from clew.kernel import (
    STEER_TABLE,
    WAKE_ENDS,
    AgentId,
    Carried,
    Instant,
    LaneId,
    RunId,
    RunState,
    RuntimeId,
    SteerEvent,
    ThreadId,
    WakeEvent,
    WakeState,
    advance_wake,
)
from clew.store.engine.dialect import greater, now
from clew.store.engine.hints import hint_queue, hint_run, hint_thread
from clew.store.engine.statement import Done, Row, Statement, in_one_trip, named
from clew.store.operations.queue import queue_run
from clew.store.operations.waited_out import let_waiting_go
from clew.store.operations.wake_state import state_after, state_literal
from clew.store.schema.tables import agents, approvals, lanes, runs, wakes


class UnconfirmedSteer(Enum):
    """What happens to a wake that the run was steered with, while it is unknown whether the agent took it."""

    WAITS_AGAIN = auto()
    """The run ended and its daemon had not reported it: the next run takes it."""
    STAYS = auto()
    """The run is being stopped: its daemon will report it."""
    SHARES = auto()
    """The same as to the run's other wakes."""


@dataclass(frozen=True, slots=True)
class WakeEnding:
    """What happens to the wakes that a run carried, and why. `until` is the time before which released wakes wait, and
    `waits_out` the reason if that is an outage or a limit of the model."""

    event: WakeEvent
    code: str
    words: str
    until: Instant | None = None
    unconfirmed: UnconfirmedSteer = UnconfirmedSteer.WAITS_AGAIN
    waits_out: str | None = None


_UNCONFIRMED = wakes.c.code == literal_column(f"'{Carried.STEERING.code}'")


def _ended(event: WakeEvent, unconfirmed: UnconfirmedSteer) -> dict[str, Any]:
    """The new values of wakes that end."""
    receipt = named({"code": wakes.c.code, "words": wakes.c.words})
    ended: dict[str, Any] = {"state": state_after(WakeState.CLAIMED, event), **receipt, "ended_at": now()}
    if unconfirmed is not UnconfirmedSteer.WAITS_AGAIN:
        return ended
    state, why = STEER_TABLE[WakeState.CLAIMED, SteerEvent.REFUSE]
    waiting: dict[str, Any] = {
        "state": state_literal(state),
        "code": literal_column(f"'{why.code}'"),
        "words": literal_column(f"'{why.fill()}'"),
        "ended_at": null(),
        "run_id": null(),
    }
    return {name: case((_UNCONFIRMED, waiting[name]), else_=ended.get(name, wakes.c[name])) for name in waiting}


def _released(dialect: str) -> dict[str, Any]:
    """The new values of wakes that wait again."""
    return {
        "state": state_after(WakeState.CLAIMED, WakeEvent.RELEASE),
        "code": bindparam("code"),
        "words": bindparam("words"),
        "run_id": null(),
        "not_before": bindparam("until"),
        "began": greater(dialect, wakes.c.began, bindparam("began", type_=wakes.c.began.type)),
    }


# Asked here, so that a success takes no statement more. count(*), not EXISTS: PostgreSQL plans EXISTS on an unanalysed
# table as a sequential scan. ix_runs_waited_out answers it.
_WAITING = (
    text(
        "(SELECT count(*) FROM runs AS waiting WHERE waiting.state = 'queued' AND waiting.hold = '' "
        "AND waiting.hold_code IS NOT NULL "
        "AND waiting.agent_id = (SELECT own.agent_id FROM runs AS own WHERE own.id = :run)) AS waiting"
    ),
)
"""How many runs of the agent wait for the end of an outage or a limit of its model."""


def _let_go(dialect: str, event: WakeEvent, unconfirmed: UnconfirmedSteer) -> ClauseElement:
    pending = wakes.alias("others")
    others = (
        select(func.count())
        .select_from(pending)
        # As text: in RETURNING on SQLite, SQLAlchemy renders columns without their table, and `lane_id = lane_id`
        # would compare a column with itself.
        .where(text("others.lane_id = wakes.lane_id AND others.state = 'pending'"))
        .scalar_subquery()
    )
    ends = advance_wake(WakeState.CLAIMED, event) in WAKE_ENDS
    of_run = (wakes.c.run_id == bindparam("run")) & (wakes.c.state == state_literal(WakeState.CLAIMED))
    return (
        wakes.update()
        .where(of_run & ~_UNCONFIRMED if unconfirmed is UnconfirmedSteer.STAYS else of_run)
        .values(_ended(event, unconfirmed) if ends else _released(dialect))
        .returning(
            wakes.c.id, wakes.c.state, others.label("pending"), *(() if event is not WakeEvent.SERVE else _WAITING)
        )
    )


let_go = {
    (event, steer): Statement(lambda dialect, event=event, steer=steer: _let_go(dialect, event, steer))  # type: ignore[misc]
    for event in (WakeEvent.SERVE, WakeEvent.CANCEL, WakeEvent.RELEASE)
    for steer in UnconfirmedSteer
}
"""The statement for each event of carried wakes. It returns them, and how many others of the lane are pending."""


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


# FOR KEY SHARE on lane and agent: a concurrent move (moves.py) has committed, or waits until this run is queued.
_lane_runtime = Statement(
    lambda _: (
        select(lanes.c.runtime_id.label("lanes"), agents.c.runtime_id.label("agents"))
        .select_from(lanes.join(agents, agents.c.id == lanes.c.agent_id))
        .where(lanes.c.id == bindparam("lane"))
        .with_for_update(read=True, key_share=True)
    )
)

_set_runtime = Statement(
    lambda _: runs.update().where(runs.c.id == bindparam("run")).values(runtime_id=bindparam("runtime"))
)

_stale_approvals = Statement(
    lambda _: (
        approvals.update()
        .where(approvals.c.run_id == bindparam("run"), text("approvals.state = 'pending'"))
        .values(state=literal_column("'stale'"), ended_at=now())
    )
)


def end_carried(
    connection: Connection, row: Row, ending: WakeEnding, tries: int = 0, beside: Sequence[tuple[Statement, Row]] = ()
) -> list[Done]:
    """End or release the run's wakes, and queue a run for what is pending then. `row` is the run after it ended or
    returned to the queue. The statements in `beside` run before, in the same trip; their results are returned."""
    began = {"began": int(bool(row["pinned"])), "until": ending.until} if ending.event is WakeEvent.RELEASE else {}
    release = {"run": row["id"], "code": ending.code, "words": ending.words, **began}
    *done, released = in_one_trip(connection, *beside, (let_go[ending.event, ending.unconfirmed], release))
    state = RunState(row["state"])
    if row["asked"]:
        _stale_approvals.count(connection, run=row["id"])
    waits = any(each["state"] == "pending" for each in released.rows)
    left = released.rows[0]["pending"] if released.rows and not waits else None
    if state is RunState.QUEUED:
        _requeue(connection, row)
    elif state is not RunState.STOPPING and left != 0:
        queue_pending(connection, row, tries, ending.waits_out)
    if state is RunState.SUCCEEDED and released.rows and released.rows[0].get("waiting"):
        let_waiting_go(connection, row)
    hint_thread(connection, ThreadId(row["thread_id"]))
    hint_run(connection, RunId(row["id"]))
    return done


def carried_by(connection: Connection, run: RunId) -> int:
    """How many wakes the run carries."""
    carried = _carried.first(connection, run=run)
    return 0 if carried is None else carried["carried"]


def pending_in(connection: Connection, lane: LaneId) -> int:
    """How many wakes of the lane are pending."""
    waiting = _pending.first(connection, lane=lane)
    return 0 if waiting is None else waiting["pending"] or 0


def _requeue(connection: Connection, row: Row) -> None:
    """Put a run that returned to the queue on the runtime that a new run for the same wakes would get: its lane or
    agent may have been moved while it was live."""
    waiting = _pending.first(connection, lane=row["lane_id"])
    runtime = _next_runtime(connection, row, bool(waiting and waiting["began"]))
    if runtime is not None and runtime != row["runtime_id"]:
        _set_runtime.count(connection, run=row["id"], runtime=runtime)
        hint_queue(connection, runtime)


def _next_runtime(connection: Connection, row: Row, began: bool) -> RuntimeId | None:
    """The runtime for what is pending after a run: the lane's own; else the run's, if a session was opened for it
    there; else the agent's; else the run's."""
    chosen = _lane_runtime.first(connection, lane=row["lane_id"])
    assert chosen is not None
    runtime = chosen["lanes"] or (None if began else chosen["agents"]) or row["runtime_id"]
    return None if runtime is None else RuntimeId(runtime)


def queue_pending(connection: Connection, row: Row, tries: int = 0, waits_out: str | None = None) -> None:
    """Queue a run for what is pending in the lane, if anything is."""
    lane = LaneId(row["lane_id"])
    waiting = _pending.first(connection, lane=lane)
    if waiting is None or not waiting["pending"]:
        return
    queue_run(
        connection,
        lane,
        AgentId(row["agent_id"]),
        _next_runtime(connection, row, bool(waiting["began"])),
        row["now"],
        waiting["priority"],
        None if waiting["due"] else waiting["until"],
        tries,
        since=waiting["since"],
        waits_out=None if waiting["due"] else waits_out,
    )
