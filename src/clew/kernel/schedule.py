"""Schedules: when a heartbeat is due, one tick for all that were missed, and longer intervals without progress."""

import math
from collections.abc import Callable
from dataclasses import dataclass

from clew.kernel.ids import Instant
from clew.kernel.reason import Reason

NextAfter = Callable[[Instant], Instant | None]
"""Any schedule (an interval, a cron line): the first due time strictly after an instant, None when there is none."""

COUNT_CAP = 10_000
"""Missed ticks are counted up to this number; beyond it the count is "at least"."""


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
            raise ValueError(f"an interval must be 0 (never) or at least 1 second (got {self.seconds})")

    def next_after(self, after: Instant) -> Instant | None:
        if self.seconds == 0:
            return None
        steps = math.floor((after - self.anchor) / self.seconds)
        # Division rounds, so the neighbours are tried too: no tick may be skipped or come twice.
        candidates = (self.anchor + (steps + more) * self.seconds for more in (0, 1, 2))
        # Beyond the precision of a float there is no later time; no clock gets there.
        return next((at for at in candidates if at > after), None)


@dataclass(frozen=True, slots=True)
class Tick:
    """One tick for all that were due. Store `due` as the last due time."""

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
    """None while nothing is due; otherwise one tick, however many were missed."""
    latest, stands_for = last_due, 0
    while (at := next_after(latest)) is not None and at <= now:
        if at <= latest:
            raise ValueError("a schedule must advance: its next due time is not after the last one")
        if stands_for == cap:
            # The rest is dropped: with `now` as the last due time the next call does not catch up again.
            return Tick(now, stands_for, TickReason.CATCH_UP_MANY)
        latest, stands_for = at, stands_for + 1
    if stands_for == 0:
        return None
    return Tick(latest, stands_for, TickReason.ON_TIME if stands_for == 1 else TickReason.CATCH_UP)


class PaceReason(Reason):
    AS_SET = "pace:as-set", "The next tick comes after {seconds:.0f} s, as set."
    STRETCHED = (
        "pace:stretched",
        "Ticks in a row without progress: {idle}. The next comes after {seconds:.0f} s, not {interval:.0f} s.",
    )
    CAPPED = (
        "pace:capped",
        "Ticks in a row without progress: {idle}. The next comes after {seconds:.0f} s, the longest allowed.",
    )


@dataclass(frozen=True, slots=True)
class PacePolicy:
    """Each tick without progress multiplies the interval by `factor`, up to `cap` seconds."""

    factor: float = 2.0
    cap: float = 24 * 60 * 60.0

    def __post_init__(self) -> None:
        if self.factor <= 1:
            raise ValueError(f"the factor of a pace must be above 1 (got {self.factor})")


@dataclass(frozen=True, slots=True)
class Pace:
    schedule: Every
    reason: PaceReason
    words: str


def idle_ticks(before: int, progress: bool) -> int:
    """The number of ticks in a row without progress, after one more tick."""
    return 0 if progress else before + 1


def pace(every: Every, idle: int, last_due: Instant, policy: PacePolicy) -> Pace:
    """The schedule after `idle` ticks without progress. An interval above the cap stays as it is."""
    seconds = every.seconds
    if idle == 0 or seconds == 0 or seconds >= policy.cap:
        return Pace(every, PaceReason.AS_SET, PaceReason.AS_SET.fill(seconds=seconds))
    # Capped at every step: after a long idle time the product would overflow.
    for _ in range(idle):
        seconds = min(seconds * policy.factor, policy.cap)
        if seconds == policy.cap:
            break
    reason = PaceReason.CAPPED if seconds == policy.cap else PaceReason.STRETCHED
    words = reason.fill(idle=idle, seconds=seconds, interval=every.seconds)
    # Anchored at the last tick: counted from the old anchor, a longer interval could come sooner.
    return Pace(Every(seconds, last_due), reason, words)
