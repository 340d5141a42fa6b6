"""Moves: a lane goes to another runtime with its queued run; a live run ends where it is."""

from dataclasses import dataclass

from sqlalchemy import Connection, bindparam, case, literal_column, null, select, text

from clew.kernel import AgentId, LaneId, RunId, RuntimeId, ThreadId
from clew.store.engine.hints import hint_queue, hint_thread
from clew.store.engine.statement import Row, Statement, wait_briefly
from clew.store.faults import NoSuchLane, NoSuchRuntime
from clew.store.schema.tables import UNKNOWN_RUNTIME, agents, lanes, runs, runtimes


@dataclass(frozen=True, slots=True)
class Moved:
    """The lane's runtime before and now; `run` is the queued run that went with it."""

    lane: LaneId
    before: RuntimeId | None
    now: RuntimeId
    run: RunId | None


_runtime = Statement(lambda _: select(runtimes.c.id).where(runtimes.c.id == bindparam("runtime")))
_set = Statement(
    lambda _: lanes.update().where(lanes.c.id == bindparam("lane")).values(runtime_id=bindparam("runtime"))
)


_lock_lane = Statement(lambda _: select(lanes).where(lanes.c.id == bindparam("lane")).with_for_update())
_lock_agent = Statement(lambda _: select(agents).where(agents.c.id == bindparam("agent")).with_for_update())

_requeue = Statement(
    lambda _: (
        runs.update()
        .where(runs.c.lane_id == bindparam("lane"), text("runs.state = 'queued'"))
        .values(
            runtime_id=bindparam("runtime"),
            words=bindparam("words"),
            # The reason it was held on the old runtime is dropped; a delay of its own stays.
            not_before=case((runs.c.hold == literal_column("''"), runs.c.not_before), else_=null()),
            hold=literal_column("''"),
            hold_code=null(),
        )
        .returning(runs.c.id)
    )
)


def lock_lane(connection: Connection, lane: LaneId) -> Row | None:
    """The lane, FOR UPDATE: no run is queued for it until the transaction ends, because queueing one takes FOR KEY
    SHARE on the lane and its agent."""
    wait_briefly(connection)
    return _lock_lane.first(connection, lane=lane)


def lock_agent(connection: Connection, agent: AgentId) -> Row:
    """The agent, FOR UPDATE: the same for all its lanes."""
    wait_briefly(connection)
    found = _lock_agent.first(connection, agent=agent)
    assert found is not None
    return found


def move_lane(connection: Connection, lane: LaneId, to: RuntimeId, why: str) -> Moved:
    """One transaction. The lane's sessions stay where they are: the next decision transfers one or starts a new one,
    and says which. Safe to repeat."""
    found = lock_lane(connection, lane)
    if found is None:
        raise NoSuchLane(f"There is no lane {lane}.", "Wake its agent in its thread once; that makes the lane.")
    if to == UNKNOWN_RUNTIME or _runtime.first(connection, runtime=to) is None:
        raise NoSuchRuntime(f"There is no runtime {to}.", "Start its daemon once, so that it registers.")
    _set.count(connection, lane=lane, runtime=to)
    queued = _requeue.first(connection, lane=lane, runtime=to, words=f"Moved to {to}: {why}")
    hint_queue(connection, to)
    hint_thread(connection, ThreadId(found["thread_id"]))
    before = found["runtime_id"]
    return Moved(
        lane, None if before is None else RuntimeId(before), to, None if queued is None else RunId(queued["id"])
    )
