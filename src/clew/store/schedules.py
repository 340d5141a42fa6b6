"""Schedules: an agent's heartbeat, which wakes it in one lane by a rhythm."""

import json
from dataclasses import dataclass

from sqlalchemy import Connection, bindparam

from clew.kernel import AgentId, Instant, LaneId, RouteKey
from clew.store.clock import read_clock
from clew.store.dialect import insert
from clew.store.naming import derived_id
from clew.store.rhythms import read_rhythm
from clew.store.statement import Statement
from clew.store.tables import schedules


@dataclass(frozen=True, slots=True)
class Heartbeat:
    """`every` in seconds, or a `cron` line in a `zone`. Replies go by the `route`, whatever scope a tick has."""

    lane: LaneId
    route: RouteKey
    every: float | None = None
    cron: str | None = None
    zone: str = "UTC"
    isolated: bool = True


_remove = Statement(lambda _: schedules.delete().where(schedules.c.id == bindparam("schedule")))


def schedule_of(agent: AgentId) -> str:
    """An agent has one heartbeat, so its schedule needs no name of its own."""
    return derived_id("sc", "heartbeat", agent)


def put_heartbeat(connection: Connection, agent: AgentId, beat: Heartbeat) -> Instant | None:
    """It beats from now on, and no longer as before. When it does first; None when never."""
    at = read_clock(connection)
    values = {
        "lane_id": beat.lane,
        "every": beat.every,
        "cron": beat.cron,
        "zone": beat.zone,
        "isolated": int(beat.isolated),
        "route": json.dumps([beat.route.kind.value, beat.route.address]),
        "settings": "{}",
        "idle_ticks": 0,
        "last_due": None,
        "fault": None,
    }
    row = {**values, "id": schedule_of(agent), "next_due": at}
    following = read_rhythm(row).next_after(at)
    put = {**values, "next_due": following, "enabled": int(following is not None)}
    made = insert(connection, schedules).values(id=row["id"], **put)
    connection.execute(made.on_conflict_do_update(index_elements=[schedules.c.id], set_=put))
    return following


def remove_heartbeat(connection: Connection, agent: AgentId) -> None:
    _remove.count(connection, schedule=schedule_of(agent))
