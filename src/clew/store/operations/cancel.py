"""Cancel a run, a wake, or everything that is pending in a lane. A live run is told to stop, and ends once it has."""

from dataclasses import dataclass

from sqlalchemy import Connection, bindparam, func, null, select, text

from clew.kernel import (
    AgentId,
    LaneId,
    RunEvent,
    RunId,
    RunOutcome,
    RunState,
    ThreadId,
    WakeEnd,
    WakeEvent,
    WakeId,
    WakeState,
    lane_id,
    on_end,
    wakes_on,
)
from clew.store.engine.database import LostRace
from clew.store.engine.dialect import now, read_clock
from clew.store.engine.hints import hint_news, hint_run, hint_thread
from clew.store.engine.statement import Row, Statement
from clew.store.faults import NoSuchRun, NoSuchWake
from clew.store.operations.carried_wakes import UnconfirmedSteer, WakeEnding, end_carried
from clew.store.operations.run_state import RUN_COLUMNS, advance
from clew.store.operations.wake_state import PENDING, state_after
from clew.store.schema.tables import NOT_ENDED, runs, wakes


@dataclass(frozen=True, slots=True)
class Cancelled:
    """The state of the run or wake since; `taken` is false when it had already ended."""

    taken: bool
    state: RunState | WakeState
    words: str


_stop = Statement(
    lambda _: (
        runs.update()
        .where(runs.c.id == bindparam("run"), runs.c.stop_code.is_(None))
        .values(stop_code=bindparam("code"), words=bindparam("words"))
    )
)

end_wakes = Statement(
    lambda _: (
        wakes.update()
        .where(wakes.c.lane_id == bindparam("lane"), text("wakes.state = 'pending'"))
        .values(
            state=state_after(WakeState.PENDING, WakeEvent.CANCEL),
            code=bindparam("code"),
            words=bindparam("words"),
            ended_at=now(),
            run_id=null(),
        )
    )
)

end_wake = Statement(
    lambda _: (
        wakes.update()
        .where(wakes.c.id == bindparam("wake"), wakes.c.state == PENDING)
        .values(
            state=state_after(WakeState.PENDING, WakeEvent.CANCEL),
            code=bindparam("code"),
            words=bindparam("words"),
            ended_at=now(),
        )
        .returning(wakes.c.lane_id, wakes.c.thread_id)
    )
)

_wake = Statement(lambda _: select(wakes).where(wakes.c.id == bindparam("wake")))


# FOR UPDATE of the run: no wake joins or leaves its lane until the transaction ends.
_run = Statement(lambda _: select(*RUN_COLUMNS).where(runs.c.id == bindparam("run")).with_for_update())
_open_run = Statement(
    lambda _: (
        select(*RUN_COLUMNS).where(runs.c.lane_id == bindparam("lane"), text(f"runs.{NOT_ENDED}")).with_for_update()
    )
)

_waiting = Statement(
    lambda _: select(func.count().label("pending")).where(
        wakes.c.lane_id == bindparam("lane"), text("wakes.state = 'pending'")
    )
)


def open_run(connection: Connection, lane: LaneId) -> Row | None:
    """The lane's run that has not ended, locked until the transaction ends.

    Read twice where there is none: on PostgreSQL a statement that waited for the lock of a run which then ended does
    not see the run that was queued in its place."""
    return _open_run.first(connection, lane=lane) or _open_run.first(connection, lane=lane)


def cancel_run(
    connection: Connection, run: RunId, why: RunOutcome = RunOutcome.BY_USER, by: str | None = None
) -> Cancelled:
    """A queued run ends together with its lane's pending wakes. A live run is told to stop, and its wakes end now. A
    message that its agent is being steered with is treated as pending, unless the agent takes it. `by` names the actor,
    and is recorded with the reason."""
    found = _run.first(connection, run=run)
    if found is None:
        raise NoSuchRun(f"There is no run {run}.", "See them with `clew runs`.")
    words = _with_actor(why.fill(), by)
    row = advance(connection, run, found["attempt"], (RunEvent.CANCEL,), outcome=why.code, words=words)
    if row is None:
        return Cancelled(False, RunState(found["state"]), f"Run {run} has already ended as {found['state']}.")
    settlement = wakes_on(why)
    end = settlement.why
    if RunState(found["state"]) is not RunState.QUEUED:
        _stop.count(connection, run=run, code=why.code, words=words)
        hint_news(connection, run)
    elif end is not None:
        end_wakes.count(connection, lane=row["lane_id"], code=end.code, words=_with_actor(end.fill(), by))
    ending = WakeEnding(settlement.wakes, why.code, words)
    if settlement.wakes is WakeEvent.CANCEL and end is not None:
        # A person cancels this turn only; closing or reassigning the thread cancels what is pending too.
        unconfirmed = UnconfirmedSteer.STAYS if end is WakeEnd.BY_USER else UnconfirmedSteer.SHARES
        ending = WakeEnding(settlement.wakes, end.code, _with_actor(end.fill(), by), unconfirmed=unconfirmed)
    end_carried(connection, row, ending)
    return Cancelled(True, RunState(row["state"]), words)


def cancel_wake(
    connection: Connection, wake: WakeId, end: WakeEnd = WakeEnd.BY_USER, by: str | None = None
) -> Cancelled:
    """Cancel a pending wake. With the last one of its lane, the run that was queued for it ends too."""
    found = _wake.first(connection, wake=wake)
    if found is None:
        raise NoSuchWake(f"There is no wake {wake!r}.", "`clew queue THREAD` lists those that wait.")
    # Lock order: the run before its wakes, as a claim does.
    run = _open_run.first(connection, lane=found["lane_id"])
    words = _with_actor(on_end(wake, end, read_clock(connection)).words, by)
    row = end_wake.first(connection, wake=wake, code=end.code, words=words)
    if row is None:
        found = _wake.first(connection, wake=wake) or found
        return Cancelled(False, WakeState(found["state"]), found["words"])
    _end_waiting(connection, run, RunOutcome.BY_USER, by)
    hint_thread(connection, ThreadId(row["thread_id"]))
    return Cancelled(True, WakeState.CANCELLED, words)


def end_pending(connection: Connection, lane: LaneId, end: WakeEnd, outcome: RunOutcome, by: str | None = None) -> int:
    """Cancel every pending wake of a lane, and the run that was queued for them; a live run continues. How many wakes
    there were."""
    run = _open_run.first(connection, lane=lane)
    ended = end_wakes.count(connection, lane=lane, code=end.code, words=_with_actor(end.fill(), by))
    if ended:
        _end_waiting(connection, run, outcome, by)
    return ended


def reassign(connection: Connection, thread: ThreadId, old: AgentId, new: AgentId, by: str | None = None) -> int:
    """The thread was assigned to another agent: cancel what is pending for the former one. How many wakes that was."""
    if old == new:
        return 0
    return end_pending(connection, lane_id(old, thread), WakeEnd.REASSIGNED, RunOutcome.REASSIGNED, by)


def _with_actor(words: str, by: str | None) -> str:
    """The reason with the actor: "The thread was closed (by ann)." """
    return words if by is None else f"{words.removesuffix('.')} (by {by})."


def _end_waiting(connection: Connection, run: Row | None, why: RunOutcome, by: str | None) -> None:
    if run is None:
        raise LostRace("the run of the wake ended meanwhile, and another was queued")
    end_idle(connection, run, why, _with_actor(why.fill(), by))


def end_idle(connection: Connection, run: Row, why: RunOutcome, words: str) -> bool:
    """End a queued run if its lane has no pending wake left; whether it did. `run` is locked by this transaction."""
    left = _waiting.first(connection, lane=run["lane_id"])
    if RunState(run["state"]) is not RunState.QUEUED or (left is not None and left["pending"]):
        return False
    advance(connection, run["id"], run["attempt"], (RunEvent.CANCEL,), outcome=why.code, words=words)
    hint_run(connection, RunId(run["id"]))
    return True
