"""Warm sessions: when an idle agent process is ended or kept, and why."""

from dataclasses import dataclass, replace
from enum import StrEnum

from clew.kernel.reason import Reason


@dataclass(frozen=True, slots=True)
class Moment:
    """One reading of two clocks: the wall clock, and one that stops while the machine sleeps."""

    wall: float
    active: float


@dataclass(frozen=True, slots=True)
class WarmFacts:
    """What the reaper saw of one warm session. `epoch` counts its uses: every turn increments it before it starts."""

    epoch: int
    last_used: Moment
    now: Moment
    turn_running: bool = False
    open_question: bool = False
    background_work: bool = False

    @property
    def idle(self) -> float:
        return max(0.0, self.now.active - self.last_used.active)

    @property
    def slept(self) -> float:
        return max(0.0, self.now.wall - self.last_used.wall - self.idle)


class Fate(StrEnum):
    KEEP = "keep"
    END = "end"


class WarmReason(Reason):
    TURN = "warm:turn", "A turn is running."
    QUESTION = "warm:question", "The agent has an open question."
    BACKGROUND = "warm:background", "The agent has work running in the background."
    RECENT = "warm:recent", "Idle for {idle:.0f} s of {limit:.0f} s; {slept:.0f} s of machine sleep do not count."
    IDLE = "warm:idle", "Idle for {idle:.0f} s, {limit:.0f} s allowed: the process is ended and its cursor kept."
    USED_MEANWHILE = "warm:used-meanwhile", "A turn started meanwhile, so the process is kept."


@dataclass(frozen=True, slots=True)
class Reaped:
    """Whether a warm session's process is ended. The cursor is kept either way, so the next turn resumes."""

    fate: Fate
    reason: WarmReason
    seen_epoch: int
    idle: float
    slept: float
    limit: float

    @property
    def words(self) -> str:
        return self.reason.fill(idle=self.idle, slept=self.slept, limit=self.limit)


def reap(facts: WarmFacts, limit: float) -> Reaped:
    """Keep or end, from what was seen. An end takes effect only after `confirm` found the session unused since."""
    if facts.turn_running:
        fate, reason = Fate.KEEP, WarmReason.TURN
    elif facts.open_question:
        fate, reason = Fate.KEEP, WarmReason.QUESTION
    elif facts.background_work:
        fate, reason = Fate.KEEP, WarmReason.BACKGROUND
    elif facts.idle < limit:
        fate, reason = Fate.KEEP, WarmReason.RECENT
    else:
        fate, reason = Fate.END, WarmReason.IDLE
    return Reaped(fate, reason, facts.epoch, facts.idle, facts.slept, limit)


def still_idle(seen_epoch: int, epoch: int) -> bool:
    """Whether nothing has used the session since the reaper examined it."""
    return seen_epoch == epoch


def confirm(reaped: Reaped, epoch: int) -> Reaped:
    """Decide again when the end is carried out, under the session's own lock: a turn that started since wins."""
    if reaped.fate is Fate.KEEP or still_idle(reaped.seen_epoch, epoch):
        return reaped
    return replace(reaped, fate=Fate.KEEP, reason=WarmReason.USED_MEANWHILE)
