"""Moving a lane to another runtime: what waits goes with it, what is going ends where it is."""

from dataclasses import dataclass

from sqlalchemy import Connection, bindparam, case, literal_column, null, select, text
from sqlalchemy.sql import ClauseElement

from clew.kernel import LaneId, RunId, RuntimeId, ThreadId
from clew.store.faults import NoSuchLane, NoSuchRuntime
from clew.store.hints import hint_queue, hint_thread
from clew.store.statement import POSTGRESQL, Statement
from clew.store.tables import NOT_ENDED, UNKNOWN_RUNTIME, lanes, runs, runtimes


@dataclass(frozen=True, slots=True)
class Moved:
    """Where the lane works from now on; `run` is the queued one that went with it."""

    lane: LaneId
    before: RuntimeId | None
    now: RuntimeId
    run: RunId | None


_lane = Statement(lambda _: select(lanes).where(lanes.c.id == bindparam("lane")))
_runtime = Statement(lambda _: select(runtimes.c.id).where(runtimes.c.id == bindparam("runtime")))
_set = Statement(
    lambda _: lanes.update().where(lanes.c.id == bindparam("lane")).values(runtime_id=bindparam("runtime"))
)


def _held(dialect: str) -> ClauseElement:
    statement = select(runs.c.id).where(runs.c.lane_id == bindparam("lane"), text(f"runs.{NOT_ENDED}"))
    return statement.with_for_update() if dialect == POSTGRESQL else statement


_open_run = Statement(_held)

_requeue = Statement(
    lambda _: (
        runs.update()
        .where(runs.c.lane_id == bindparam("lane"), text("runs.state = 'queued'"))
        .values(
            runtime_id=bindparam("runtime"),
            words=bindparam("words"),
            # What held it where it was is looked at again; a delay of its own stays.
            not_before=case((runs.c.hold == literal_column("''"), runs.c.not_before), else_=null()),
            hold=literal_column("''"),
            hold_code=null(),
        )
        .returning(runs.c.id)
    )
)


def move_lane(connection: Connection, lane: LaneId, to: RuntimeId, why: str) -> Moved:
    """One transaction. Its sessions stay where they are: the next decision carries one over, or starts anew, and says
    which. Safe to repeat."""
    found = _lane.first(connection, lane=lane)
    if found is None:
        raise NoSuchLane(f"There is no lane {lane}.", "Wake its agent in its thread once.")
    if to == UNKNOWN_RUNTIME or _runtime.first(connection, runtime=to) is None:
        raise NoSuchRuntime(f"There is no runtime {to}.", "Start its daemon once, so that it registers.")
    # Its run before the lane, so that one which ends meanwhile is followed by one in the new place.
    _open_run.first(connection, lane=lane)
    _set.count(connection, lane=lane, runtime=to)
    queued = _requeue.first(connection, lane=lane, runtime=to, words=f"Moved to {to}: {why}")
    hint_queue(connection, to)
    hint_thread(connection, ThreadId(found["thread_id"]))
    before = found["runtime_id"]
    return Moved(
        lane, None if before is None else RuntimeId(before), to, None if queued is None else RunId(queued["id"])
    )
