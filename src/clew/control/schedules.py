"""Heartbeats: rhythms that are valid, and the lane that each wakes."""

import math
from datetime import UTC, datetime
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from cronsim import CronSim, CronSimError

from clew.control.faults import BadRhythm
from clew.kernel import AgentId, RouteKey, RouteKind, own_thread
from clew.protocol.requests import RhythmChange
from clew.protocol.views import Rhythm
from clew.store.engine.database import Transaction
from clew.store.operations.schedules import Heartbeat, put_heartbeat
from clew.store.operations.threads import make_lane, must_be_open
from clew.store.queries.names import thread_called

SHORTEST = 15.0
"""Seconds. A faster heartbeat would use up the runs that an agent may start in a minute."""

_DAY = 86_400.0
LONGEST = 366 * _DAY
_FIELDS = 5


def check_rhythm(rhythm: Rhythm) -> Rhythm:
    if rhythm.every is None and rhythm.cron is None:
        raise BadRhythm("A heartbeat needs an interval or a cron line.", "Give one of them.")
    if rhythm.every is not None and rhythm.cron is not None:
        raise BadRhythm("A heartbeat has an interval or a cron line, not both.", "Give one of them.")
    if rhythm.every is not None and not (math.isfinite(rhythm.every) and SHORTEST <= rhythm.every <= LONGEST):
        raise BadRhythm(
            f"A heartbeat interval must be between {SHORTEST:g} s and 366 d (got {_spelled(rhythm.every)}).",
            "Choose an interval within that range.",
        )
    try:
        zone = ZoneInfo(rhythm.zone)
    except (ZoneInfoNotFoundError, ValueError, OSError) as fault:
        raise BadRhythm(f"There is no time zone {rhythm.zone!r}.", "Name one like Europe/Berlin, or UTC.") from fault
    if rhythm.cron is not None:
        _check_cron(rhythm.cron, zone)
    return rhythm


def _spelled(seconds: float) -> str:
    return f"{seconds:g} s" if abs(seconds) < _DAY else f"{seconds / _DAY:,.6g} d"


def _check_cron(line: str, zone: ZoneInfo) -> None:
    if len(line.split()) != _FIELDS:
        raise BadRhythm(f"{line!r} does not have five fields.", "Give five, as in `0 9 * * 1-5`; no seconds.")
    try:
        first = next(CronSim(line, datetime.now(UTC).astimezone(zone)), None)
    except CronSimError as fault:
        raise BadRhythm(f"{line!r} is not a cron line: {fault}.", "Give five fields, as in `0 9 * * 1-5`.") from fault
    if first is None:
        raise BadRhythm(f"{line!r} never comes due.", "Give a line that does.")


def changed_rhythm(beat: Rhythm | None, change: RhythmChange) -> Rhythm:
    """The heartbeat with the given fields changed."""
    if beat is None and change.every is None and change.cron is None:
        raise BadRhythm("The agent has no heartbeat to change.", "Give it an interval or a cron line.")
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


def set_rhythm(tx: Transaction, agent: AgentId, rhythm: Rhythm) -> None:
    """It wakes the agent in its own thread, or in the thread that it names, in whose directory it then works."""
    thread = own_thread(agent)
    if rhythm.thread is not None:
        found = thread_called(tx, rhythm.thread, locked=True)
        must_be_open(found, rhythm.thread)
        thread = found.id
    lane = make_lane(tx, agent, thread)
    route = RouteKey(RouteKind.THREAD, thread)
    put_heartbeat(tx, agent, Heartbeat(lane, route, rhythm.every, rhythm.cron, rhythm.zone, rhythm.isolated))
