"""Quiet hours: wall-clock times in the agent's zone during which no heartbeat comes."""

import math
from bisect import bisect_left
from dataclasses import dataclass
from datetime import datetime, time, timedelta, tzinfo

from clew.kernel.ids import Instant

DAY = 24 * 60 * 60


@dataclass(frozen=True, slots=True)
class QuietHours:
    """From `start` until just before `end`, over midnight if `end` is earlier; never when they are equal.

    The wall clock alone decides: an hour that the clock shows twice is judged the same both times,
    and a time that it jumps over never comes.
    """

    start: time
    end: time
    zone: tzinfo

    def __post_init__(self) -> None:
        if any(each.microsecond or each.tzinfo is not None for each in (self.start, self.end)):
            raise ValueError("quiet hours start and end on a whole second of the zone's wall clock")

    def covers(self, now: Instant) -> bool:
        shown = datetime.fromtimestamp(math.floor(now), self.zone).time()
        if self.start <= self.end:
            return self.start <= shown < self.end
        return shown >= self.start or shown < self.end


def quiet_until(hours: QuietHours, now: Instant) -> Instant | None:
    """The first instant from now on that is not quiet; None when now is not quiet."""
    if not hours.covers(now):
        return None
    at = math.floor(now)
    while hours.covers(at):
        at = _end_or_change(hours, at)
    return float(at)


def _end_or_change(hours: QuietHours, at: int) -> int:
    """When the clock would show the end if it ran evenly, or when it is changed before that."""
    end = at + (_second_of_day(hours.end) - _second_of_day(datetime.fromtimestamp(at, hours.zone).time())) % DAY
    before = _offset(hours.zone, at)
    return at + bisect_left(range(end - at), True, key=lambda later: _offset(hours.zone, at + later) != before)


def _second_of_day(shown: time) -> int:
    return shown.hour * 3600 + shown.minute * 60 + shown.second


def _offset(zone: tzinfo, at: int) -> timedelta | None:
    return datetime.fromtimestamp(at, zone).utcoffset()
