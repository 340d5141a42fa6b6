"""Moving a lane to another runtime: what waits goes with it, what is going ends where it is."""

from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, Select, bindparam, case, literal_column, null, select, text

from clew.kernel import AgentId, LaneId, RunId, RuntimeId, ThreadId
from clew.store.engine.hints import hint_queue, hint_thread
from clew.store.engine.statement import POSTGRESQL, Row, Statement, wait_briefly
from clew.store.faults import NoSuchLane, NoSuchRuntime
from clew.store.schema.tables import UNKNOWN_RUNTIME, agents, lanes, runs, runtimes


@dataclass(frozen=True, slots=True)
class Moved:
    """Where the lane works from now on; `run` is the queued one that went with it."""

    lane: LaneId
    before: RuntimeId | None
    now: RuntimeId
    run: RunId | None


_runtime = Statement(lambda _: select(runtimes.c.id).where(runtimes.c.id == bindparam("runtime")))
_set = Statement(
    lambda _: lanes.update().where(lanes.c.id == bindparam("lane")).values(runtime_id=bindparam("runtime"))
)


def _held(what: Select[Any]) -> Statement:
    return Statement(lambda dialect: what.with_for_update() if dialect == POSTGRESQL else what)


_hold_lane = _held(select(lanes).where(lanes.c.id == bindparam("lane")))
_hold_agent = _held(select(agents).where(agents.c.id == bindparam("agent")))

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


def lock_lane(connection: Connection, lane: LaneId) -> Row | None:
    """The lane, for which no run is queued until the end of the transaction: whoever queues one holds its lane and its
    agent where they are."""
    wait_briefly(connection)
    return _hold_lane.first(connection, lane=lane)


def lock_agent(connection: Connection, agent: AgentId) -> Row:
    """The agent in the same way, with all its lanes."""
    wait_briefly(connection)
    found = _hold_agent.first(connection, agent=agent)
    assert found is not None
    return found


def move_lane(connection: Connection, lane: LaneId, to: RuntimeId, why: str) -> Moved:
    """One transaction. Its sessions stay where they are: the next decision carries one over, or starts anew, and says
    which. Safe to repeat."""
    found = lock_lane(connection, lane)
    if found is None:
        raise NoSuchLane(f"There is no lane {lane}.", "Wake its agent in its thread once.")
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
