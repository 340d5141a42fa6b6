"""Lanes: what a wake does to one that is busy."""

from sqlalchemy import Connection

from clew.control.desk import Desk
from clew.control.faults import BadRequest
from clew.control.showing.threads import show_lane
from clew.kernel import AgentId, Overlap, ThreadId
from clew.protocol.views import LaneView
from clew.store.operations.threads import make_lane
from clew.store.operations.threads import set_overlap as put_overlap
from clew.store.queries.names import agent_named, thread_called
from clew.store.queries.threads import lanes_of


def overlap_called(name: str) -> Overlap:
    try:
        return Overlap(name)
    except ValueError as fault:
        raise BadRequest(f"{name!r} is no overlap policy.", f"Name one of {', '.join(Overlap)}.") from fault


async def set_overlap(desk: Desk, ref: str, agent: str, overlap: str) -> LaneView:
    """From now on a wake that comes while the agent works in that thread queues, steers, interrupts or is rejected."""
    chosen = overlap_called(overlap)

    def do(connection: Connection) -> LaneView:
        thread = ThreadId(thread_called(connection, ref)["id"])
        lane = make_lane(connection, AgentId(agent_named(connection, agent)["id"]), thread)
        put_overlap(connection, lane, chosen.value)
        rows = lanes_of.rows(connection, thread=thread)
        return next(show_lane(row) for row in rows if row["id"] == lane)

    return await desk.write(do)
