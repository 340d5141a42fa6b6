"""Heartbeats: a rhythm that makes sense, and the lane it wakes."""

import math
from datetime import UTC, datetime
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from cronsim import CronSim, CronSimError
from sqlalchemy import Connection

from clew.control.faults import BadRhythm
from clew.kernel import AgentId, RouteKey, RouteKind, ThreadId, own_thread
from clew.protocol.requests import RhythmChange
from clew.protocol.views import Rhythm
from clew.store.operations.schedules import Heartbeat, put_heartbeat, schedule_of
from clew.store.operations.threads import make_lane, must_be_open
from clew.store.queries.agents import read_schedule
from clew.store.queries.names import thread_called
from clew.store.queries.threads import read_thread_of_lane, thread_ref

SHORTEST = 15.0
"""A heart that beats faster would use up the runs that an agent may start in a minute."""

LONGEST = 366 * 86_400.0
_FIELDS = 5


def check_rhythm(rhythm: Rhythm) -> Rhythm:
    if (rhythm.every is None) == (rhythm.cron is None):
        raise BadRhythm("A heartbeat has an interval or a cron line, and not both.", "Give one of them.")
    if rhythm.every is not None and not (math.isfinite(rhythm.every) and SHORTEST <= rhythm.every <= LONGEST):
        raise BadRhythm(f"No heart beats every {rhythm.every:g} seconds.", f"Give from {SHORTEST:g}s to a year (366d).")
    try:
        zone = ZoneInfo(rhythm.zone)
    except (ZoneInfoNotFoundError, ValueError, OSError) as fault:
        raise BadRhythm(f"There is no time zone {rhythm.zone!r}.", "Name one like Europe/Berlin, or UTC.") from fault
    if rhythm.cron is not None:
        if len(rhythm.cron.split()) != _FIELDS:
            raise BadRhythm(f"{rhythm.cron!r} has not five fields.", "Give five, as in `0 9 * * 1-5`; no seconds.")
        try:
            first = next(CronSim(rhythm.cron, datetime.now(UTC).astimezone(zone)), None)
        except CronSimError as fault:
            raise BadRhythm(
                f"{rhythm.cron!r} is no cron line: {fault}.", "Give five fields, as in `0 9 * * 1-5`."
            ) from fault
        if first is None:
            raise BadRhythm(f"{rhythm.cron!r} never comes.", "Give a line that does.")
    return rhythm


def changed_rhythm(beat: Rhythm | None, change: RhythmChange) -> Rhythm:
    """The heartbeat that there is, with what was named of it changed."""
    if beat is None and change.every is None and change.cron is None:
        raise BadRhythm("There is no heartbeat that this could be about.", "Give it an interval or a cron line.")
    beat = beat or Rhythm()
    when = (beat.every, beat.cron) if change.every is None and change.cron is None else (change.every, change.cron)
    return check_rhythm(
        Rhythm(
            *when,
            zone=change.zone or beat.zone,
            isolated=beat.isolated if change.isolated is None else change.isolated,
            thread=beat.thread if change.thread is None else change.thread or None,
        )
    )


def set_rhythm(connection: Connection, agent: AgentId, rhythm: Rhythm) -> None:
    """It wakes the agent in its own thread, or in the one it is tied to, whose directory it then works in."""
    thread = own_thread(agent)
    if rhythm.thread is not None:
        row = thread_called(connection, rhythm.thread, held=True)
        must_be_open(row, rhythm.thread)
        thread = ThreadId(row["id"])
    lane = make_lane(connection, agent, thread)
    route = RouteKey(RouteKind.THREAD, thread)
    beat = Heartbeat(lane, route, rhythm.every, rhythm.cron, rhythm.zone, rhythm.isolated)
    put_heartbeat(connection, agent, beat)


def show_rhythm(connection: Connection, agent: AgentId) -> Rhythm | None:
    row = read_schedule(connection, schedule_of(agent))
    if row is None:
        return None
    thread = read_thread_of_lane(connection, row["lane_id"])
    own = thread is None or thread["id"] == own_thread(agent)
    return Rhythm(
        every=row["every"],
        cron=row["cron"],
        zone=row["zone"],
        isolated=bool(row["isolated"]),
        thread=None if own or thread is None else thread_ref(thread),
        next_at=row["next_due"] if row["enabled"] else None,
        last_at=row["last_due"],
        fault=row["fault"],
    )
