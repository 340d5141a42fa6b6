"""The queue: which run may start, which goes first, and what a queued run waits for."""

from dataclasses import dataclass

from clew.kernel.ids import Instant, RunId
from clew.kernel.lease import Presence
from clew.kernel.reason import Reason

LANE_LIMIT = 1
"""A lane is one conversation, so it has at most one live run. No setting changes that."""


@dataclass(frozen=True, slots=True)
class Limits:
    """How many runs may be live at once."""

    agent: int
    runtime: int


@dataclass(frozen=True, slots=True)
class LiveRuns:
    """How many runs are live: in the lane, of its agent, on the runtime."""

    lane: int = 0
    agent: int = 0
    runtime: int = 0


@dataclass(frozen=True, slots=True)
class QueuedRun:
    id: RunId
    queued_at: Instant
    priority: int = 0
    not_before: Instant | None = None


@dataclass(frozen=True, slots=True)
class Aging:
    """How many seconds of waiting weigh as much as one step of priority."""

    seconds_per_step: float = 300.0

    def __post_init__(self) -> None:
        if self.seconds_per_step <= 0:
            raise ValueError(f"the seconds per step of priority must be above 0 (got {self.seconds_per_step})")


class WaitReason(Reason):
    LANE_BUSY = "waits:lane-busy", "Its lane has a live run; it starts when that one ends."
    AGENT_FULL = "waits:agent-full", "Its agent has {live.agent} live runs; {limits.agent} are allowed."
    RUNTIME_FULL = "waits:runtime-full", "Its runtime has {live.runtime} live runs; {limits.runtime} are allowed."
    RUNTIME_AWAY = "waits:runtime-away", "Its runtime is {where}."
    NOT_YET = "waits:not-yet", "It is not due for {left:.0f} s."
    BEHIND = "waits:behind", "Runs that go first: {ahead}."
    NEXT = "waits:next", "It is next; the runtime takes it with its next claim."


@dataclass(frozen=True, slots=True)
class Waiting:
    """What a queued run waits for, with the numbers behind it."""

    reason: WaitReason
    live: LiveRuns
    limits: Limits
    where: Presence = Presence.ONLINE
    left: float = 0.0
    ahead: int = 0

    @property
    def words(self) -> str:
        return self.reason.fill(live=self.live, limits=self.limits, where=self.where, left=self.left, ahead=self.ahead)


def may_start(live: LiveRuns, limits: Limits) -> WaitReason | None:
    """None when one more run may start; else the limit that is reached, the narrowest first."""
    if live.lane >= LANE_LIMIT:
        return WaitReason.LANE_BUSY
    if live.agent >= limits.agent:
        return WaitReason.AGENT_FULL
    if live.runtime >= limits.runtime:
        return WaitReason.RUNTIME_FULL
    return None


def rank(run: QueuedRun, aging: Aging) -> Instant:
    """The time it was queued, moved back by its priority; the lowest goes first.

    All runs age at the same rate, so their order never changes while they wait: the rank can be stored and indexed.
    Waiting outweighs any priority in the end, so no stream of urgent runs delays a run forever.
    """
    return run.queued_at - run.priority * aging.seconds_per_step


def waits_for(run: QueuedRun, live: LiveRuns, limits: Limits, where: Presence, ahead: int, now: Instant) -> Waiting:
    """Why a queued run does not start: its own delay, its runtime, a limit, or its position in the queue."""
    left = 0.0 if run.not_before is None else max(0.0, run.not_before - now)
    if left > 0:
        return Waiting(WaitReason.NOT_YET, live, limits, where, left, ahead)
    if where is not Presence.ONLINE:
        return Waiting(WaitReason.RUNTIME_AWAY, live, limits, where, left, ahead)
    reason = may_start(live, limits) or (WaitReason.BEHIND if ahead else WaitReason.NEXT)
    return Waiting(reason, live, limits, where, left, ahead)
