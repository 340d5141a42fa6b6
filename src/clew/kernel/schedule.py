"""Schedules: when a heartbeat is due next, and what one tick stands for after a long sleep."""

import math
from collections.abc import Callable
from dataclasses import dataclass

from clew.kernel.ids import Instant
from clew.kernel.reason import Reason

NextAfter = Callable[[Instant], Instant | None]
"""The first due time strictly after an instant, or None when there is none; of an interval, a cron line, anything."""

COUNT_CAP = 10_000
"""How many missed ticks are counted before the count says "at least"."""


class TickReason(Reason):
    ON_TIME = "tick:on-time", "It was due."
    CATCH_UP = "tick:catch-up", "One tick for the {stands_for} that were due: {missed} were missed."
    CATCH_UP_MANY = "tick:catch-up-many", "One tick for at least {stands_for} that were due: too many to count."


@dataclass(frozen=True, slots=True)
class Every:
    """An interval, counted from its anchor. Zero seconds means never."""

    seconds: float
    anchor: Instant = 0.0

    def __post_init__(self) -> None:
        if not (self.seconds == 0 or self.seconds >= 1):
            raise ValueError("an interval is 0 (never) or at least one second")

    def next_after(self, after: Instant) -> Instant | None:
        if self.seconds == 0:
            return None
        steps = math.floor((after - self.anchor) / self.seconds)
        # Division rounds, so the neighbours are tried too: none may be passed over, none come twice.
        candidates = (self.anchor + (steps + more) * self.seconds for more in (0, 1, 2))
        # Beyond what a number can tell apart there is no later time; no clock comes near it.
        return next((at for at in candidates if at > after), None)


@dataclass(frozen=True, slots=True)
class Tick:
    """One tick for all that were due. `due` is what to remember as the last due time."""

    due: Instant
    stands_for: int
    reason: TickReason

    @property
    def missed(self) -> int:
        return self.stands_for - 1

    @property
    def words(self) -> str:
        return self.reason.fill(stands_for=self.stands_for, missed=self.missed)


def due(next_after: NextAfter, last_due: Instant, now: Instant, cap: int = COUNT_CAP) -> Tick | None:
    """None while nothing is due; otherwise one tick, however many were slept through."""
    latest, stands_for = last_due, 0
    while (at := next_after(latest)) is not None and at <= now:
        if at <= latest:
            raise ValueError("a schedule must move on: its next due time is not after the last")
        if stands_for == cap:
            # The rest is let go: remembering `now` keeps the next look from catching up again.
            return Tick(now, stands_for, TickReason.CATCH_UP_MANY)
        latest, stands_for = at, stands_for + 1
    if stands_for == 0:
        return None
    return Tick(latest, stands_for, TickReason.ON_TIME if stands_for == 1 else TickReason.CATCH_UP)
