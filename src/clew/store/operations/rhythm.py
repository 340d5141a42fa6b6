"""The rhythm of a schedule, read from its row: when it is due next, and what keeps its ticks quiet."""

import json
from dataclasses import dataclass
from datetime import UTC, datetime, time, tzinfo
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from cronsim import CronSim, CronSimError

from clew.kernel import Every, Instant, NextAfter, PacePolicy, QuietHours, RouteKey, RouteKind, pace
from clew.store.engine.statement import Row
from clew.store.faults import Unreadable
from clew.store.operations.rows import reading


@dataclass(frozen=True, slots=True)
class Rhythm:
    """What a row says. `interval` is zero for a cron line, which has none."""

    next_after: NextAfter
    interval: float
    checklist: str | None
    quiet: QuietHours | None
    route: RouteKey | None


def read_rhythm(row: Row) -> Rhythm:
    try:
        zone = ZoneInfo(row["zone"])
        settings = json.loads(row["settings"])
        quiet, checklist = settings.get("quiet"), settings.get("checklist")
        if not isinstance(checklist, str | None):
            raise TypeError(f"a checklist is text, and {checklist!r} is none")
        return Rhythm(
            _next_after(row, zone),
            row["every"] if row["cron"] is None else 1.0,
            checklist,
            None if quiet is None else QuietHours(_clock(quiet[0]), _clock(quiet[1]), zone),
            _route(row["route"]),
        )
    except (
        ValueError,
        TypeError,
        KeyError,
        IndexError,
        AttributeError,
        OSError,
        RecursionError,
        CronSimError,
        ZoneInfoNotFoundError,
    ) as fault:
        raise _unreadable(row, fault) from fault


def _unreadable(row: Row, fault: Exception) -> Unreadable:
    return reading("schedules", row["id"], "its rhythm or settings", fault)


def _next_after(row: Row, zone: tzinfo) -> NextAfter:
    if row["cron"] is not None:
        line = row["cron"]
        # Read once here, so that a line that is none is found before it is needed.
        CronSim(line, datetime.now(UTC))
        return lambda after: _next_of_line(line, after, zone)
    anchor = row["next_due"] if row["last_due"] is None else row["last_due"]
    return pace(Every(row["every"], anchor), row["idle_ticks"], anchor, PacePolicy()).schedule.next_after


def _next_of_line(line: str, after: Instant, zone: tzinfo) -> Instant | None:
    found = next(CronSim(line, datetime.fromtimestamp(after, zone)), None)
    return None if found is None else found.timestamp()


def _clock(text: str) -> time:
    return time.fromisoformat(text)


def _route(text: str | None) -> RouteKey | None:
    if text is None:
        return None
    kind, address = json.loads(text)
    return RouteKey(RouteKind(kind), address)
