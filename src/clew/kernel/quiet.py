"""Quiet hours: wall-clock times in the agent's time zone without heartbeats."""

import math
from bisect import bisect_left
from dataclasses import dataclass
from datetime import datetime, time, timedelta, tzinfo

from clew.kernel.ids import Instant

DAY = 24 * 60 * 60


@dataclass(frozen=True, slots=True)
class QuietHours:
    """From `start` (inclusive) to `end` (exclusive), across midnight if `end` is earlier; empty when they are equal.

    Only the wall clock counts: an hour that it shows twice is treated the same both times, and a time that it skips
    never comes.
    """

    start: time
    end: time
    zone: tzinfo

    def __post_init__(self) -> None:
        if any(each.microsecond or each.tzinfo is not None for each in (self.start, self.end)):
            raise ValueError("quiet hours must start and end on a whole second, without a time zone of their own")

    def covers(self, now: Instant) -> bool:
        shown = datetime.fromtimestamp(math.floor(now), self.zone).time()
        if self.start <= self.end:
            return self.start <= shown < self.end
        return shown >= self.start or shown < self.end


def quiet_until(hours: QuietHours, now: Instant) -> Instant | None:
    """When the current quiet hours end; None when it is not quiet now."""
    if not hours.covers(now):
        return None
    at = math.floor(now)
    while hours.covers(at):
        at = _end_or_change(hours, at)
    return float(at)


def _end_or_change(hours: QuietHours, at: int) -> int:
    """When the clock shows the end if it runs evenly, or when it is changed before that."""
    end = at + (_second_of_day(hours.end) - _second_of_day(datetime.fromtimestamp(at, hours.zone).time())) % DAY
    before = _offset(hours.zone, at)
    return at + bisect_left(range(end - at), True, key=lambda later: _offset(hours.zone, at + later) != before)


def _second_of_day(shown: time) -> int:
    return shown.hour * 3600 + shown.minute * 60 + shown.second


def _offset(zone: tzinfo, at: int) -> timedelta | None:
    return datetime.fromtimestamp(at, zone).utcoffset()
