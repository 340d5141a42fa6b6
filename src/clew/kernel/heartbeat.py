"""Heartbeats: whether a tick wakes its lane. The first rule that applies decides, before any model call.

Two rules have parts of their own here: a checklist that has nothing to check, and quiet hours, which are wall-clock
times in the agent's time zone.
"""

import math
from bisect import bisect_left
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, time, timedelta, tzinfo
from enum import StrEnum

from clew.kernel.ids import Instant, RouteKey
from clew.kernel.reason import Reason
from clew.kernel.wake import WakeEnd

BULLETS = ("-", "*", "+")
BOXES = ("[]", "[x]", "[X]")
HEADING_LEVELS = range(1, 7)


def nothing_to_check(checklist: str | None) -> bool:
    """True for a checklist of blanks, headings, empty bullets and comments. An absent one is not empty."""
    if checklist is None:
        return False
    return all(_is_heading(line) or _is_empty_item(line) for line in _without_comments(checklist).splitlines())


def _without_comments(text: str) -> str:
    shown, opening, rest = text.partition("<!--")
    parts = [shown]
    while opening:
        # A comment that is never closed hides everything after it, as it does when the text is rendered.
        _, _, rest = rest.partition("-->")
        shown, opening, rest = rest.partition("<!--")
        parts.append(shown)
    return "".join(parts)


def _is_heading(line: str) -> bool:
    text = line.strip()
    title = text.lstrip("#")
    return len(text) - len(title) in HEADING_LEVELS and (not title or title[0].isspace())


def _is_empty_item(line: str) -> bool:
    """True when the line has only list markers, or is blank."""
    return all(_is_mark(word) for word in _words(line))


def _words(line: str) -> list[str]:
    # `[ ]` contains a blank, and split() would break it in two.
    return line.replace("[ ]", "[]").split()


def _is_mark(word: str) -> bool:
    return word in BULLETS or word in BOXES or (word[-1] in ".)" and word[:-1].isdecimal())


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
    """The instant at which the clock shows the end of the quiet hours, or the first change of its UTC offset before
    that."""
    end = at + (_second_of_day(hours.end) - _second_of_day(datetime.fromtimestamp(at, hours.zone).time())) % DAY
    before = _offset(hours.zone, at)
    return at + bisect_left(range(end - at), True, key=lambda later: _offset(hours.zone, at + later) != before)


def _second_of_day(shown: time) -> int:
    return shown.hour * 3600 + shown.minute * 60 + shown.second


def _offset(zone: tzinfo, at: int) -> timedelta | None:
    return datetime.fromtimestamp(at, zone).utcoffset()


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
