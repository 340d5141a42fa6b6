"""Pace: a heartbeat without progress comes less often, and says so."""

from dataclasses import dataclass

from clew.kernel.ids import Instant
from clew.kernel.reason import Reason
from clew.kernel.schedule import Every


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
