"""Heartbeats: whether a tick wakes its lane. The first rule that applies decides."""

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum

from clew.kernel.checklist import nothing_to_check
from clew.kernel.ids import Instant, RouteKey
from clew.kernel.quiet import QuietHours, quiet_until
from clew.kernel.reason import Reason
from clew.kernel.wake import WakeEnd


class TickVerdict(StrEnum):
    WAKE = "wake"
    SKIP = "skip"
    RETRY = "retry"


class HeartbeatReason(Reason):
    DUE = "heartbeat:due", "The heartbeat is due and there may be something to do."
    EVENT = "heartbeat:event", "An event waits for the agent."
    QUIET = "heartbeat:after-quiet", "These are the agent's quiet hours; the event waits until they end."
    BUSY = "heartbeat:lane-busy", "The lane is busy; the event is tried again in {seconds:g} s."


@dataclass(frozen=True, slots=True)
class TickFacts:
    """The facts when a tick is due. `event`: something that belongs to the lane is waiting to be handled.

    `checklist` is the text. An empty text means nothing to check; None means that the agent has no checklist.
    """

    now: Instant
    interval: float
    enabled: bool = True
    event: bool = False
    route: RouteKey | None = None
    checklist: str | None = None
    quiet: QuietHours | None = None
    lane_busy: bool = False
    retry_seconds: float = 30.0


@dataclass(frozen=True, slots=True)
class TickDecision:
    """The answer. `retry_at` is set when the tick is to be tried again instead of being dropped."""

    verdict: TickVerdict
    reason: HeartbeatReason | WakeEnd
    words: str
    retry_at: Instant | None = None


def tick(facts: TickFacts) -> TickDecision:
    """Stopped by: switched off, no route, nothing to check, quiet hours, a busy lane. Otherwise the lane is woken.

    A pending event passes the first three rules. The last two only postpone it.
    """
    for rule in RULES:
        decision = rule(facts)
        if decision is not None:
            return decision
    reason = HeartbeatReason.EVENT if facts.event else HeartbeatReason.DUE
    return TickDecision(TickVerdict.WAKE, reason, reason.fill())


def _disabled(facts: TickFacts) -> TickDecision | None:
    on = facts.enabled and facts.interval > 0
    return None if on or facts.event else _skip(WakeEnd.DISABLED)


def _no_route(facts: TickFacts) -> TickDecision | None:
    return _skip(WakeEnd.NO_ROUTE) if facts.route is None and not facts.event else None


def _nothing_to_check(facts: TickFacts) -> TickDecision | None:
    return _skip(WakeEnd.NOTHING_TO_CHECK) if not facts.event and nothing_to_check(facts.checklist) else None


def _quiet_hours(facts: TickFacts) -> TickDecision | None:
    ends = None if facts.quiet is None else quiet_until(facts.quiet, facts.now)
    if ends is None:
        return None
    if not facts.event:
        return _skip(WakeEnd.QUIET_HOURS)
    return TickDecision(TickVerdict.RETRY, HeartbeatReason.QUIET, HeartbeatReason.QUIET.fill(), ends)


def _busy_lane(facts: TickFacts) -> TickDecision | None:
    if not facts.lane_busy:
        return None
    if not facts.event:
        return _skip(WakeEnd.LANE_BUSY)
    words = HeartbeatReason.BUSY.fill(seconds=facts.retry_seconds)
    return TickDecision(TickVerdict.RETRY, HeartbeatReason.BUSY, words, facts.now + facts.retry_seconds)


def _skip(end: WakeEnd) -> TickDecision:
    return TickDecision(TickVerdict.SKIP, end, end.fill())


RULES: tuple[Callable[[TickFacts], TickDecision | None], ...] = (
    _disabled,
    _no_route,
    _nothing_to_check,
    _quiet_hours,
    _busy_lane,
)
