"""The queue: which run may start, which goes first, and what a queued run waits for."""

from dataclasses import dataclass

from clew.kernel.ids import Instant, RunId
from clew.kernel.lease import Presence
from clew.kernel.reason import Reason

LANE_LIMIT = 1
"""A lane is one conversation, so it has at most one live run. No setting changes that."""


@dataclass(frozen=True, slots=True)
class RunLimits:
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


@dataclass(frozen=True, slots=True)
class Aging:
    """How many seconds of waiting weigh as much as one step of priority."""

    seconds_per_step: float = 300.0

    def __post_init__(self) -> None:
        if self.seconds_per_step <= 0:
            raise ValueError(f"the seconds per step of priority must be above 0 (got {self.seconds_per_step})")


class WaitReason(Reason):
    PAUSED = "waits:agent-paused", "{facts.agent} is paused. Resume it with `clew agent resume {facts.agent}`."
    PROGRAM_GONE = (
        "waits:program-gone",
        "{facts.agent} cannot be started: {facts.missing} Clew keeps looking for it; `clew doctor` looks at once.",
    )
    NO_RUNTIME = "waits:no-runtime", "No connected machine has the program of {facts.agent}; the run waits for one."
    NOT_YET = "waits:not-yet", "{why}"
    MACHINE_AWAY = (
        "waits:machine-away",
        "Machine {facts.machine} is {facts.where}; the run starts when Clew runs there again.",
    )
    LANE_BUSY = "waits:lane-busy", "Its lane has a live run; it starts when that one ends."
    AGENT_FULL = "waits:agent-full", "{facts.agent} is busy{busy}; it may have {runs} at once."
    RUNTIME_FULL = (
        "waits:runtime-full",
        "Machine {facts.machine} is busy: {facts.live.runtime} runs are live there, and no more are allowed.",
    )
    BEHIND = "waits:behind", "Queued behind {runs}."
    NEXT = "waits:next", "It is next, and starts within seconds."


NEEDS_PERSON = frozenset({WaitReason.PAUSED, WaitReason.PROGRAM_GONE})
"""Waits that do not end by themselves."""


@dataclass(frozen=True, slots=True)
class QueueFacts:
    """What is known about a queued run. `missing`: why its agent's program cannot be started, empty if it can. `why`:
    why it is delayed. `busy_in`: where its agent works now."""

    agent: str
    live: LiveRuns
    limits: RunLimits
    active: bool = True
    missing: str = ""
    registered: bool = True
    machine: str = ""
    where: Presence = Presence.ONLINE
    ahead: int = 0
    why: str = ""
    busy_in: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Waiting:
    """What a queued run waits for. `until` is when that ends, where it is known."""

    reason: WaitReason
    facts: QueueFacts
    until: Instant | None = None

    @property
    def needs_person(self) -> bool:
        return self.reason in NEEDS_PERSON

    @property
    def words(self) -> str:
        facts = self.facts
        number = facts.ahead if self.reason is WaitReason.BEHIND else facts.limits.agent
        return self.reason.fill(
            facts=facts,
            why=facts.why or "It is not due yet.",
            busy=f" in {', '.join(facts.busy_in)}" if facts.busy_in else "",
            runs="1 run" if number == 1 else f"{number} runs",
        )


def may_start(live: LiveRuns, limits: RunLimits) -> WaitReason | None:
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


def waits_for(facts: QueueFacts, not_before: Instant | None, now: Instant) -> Waiting:
    """Why a queued run does not start. What a person must mend comes first: nothing else helps before that."""
    if not facts.active:
        return Waiting(WaitReason.PAUSED, facts)
    if facts.missing:
        return Waiting(WaitReason.PROGRAM_GONE, facts)
    if not facts.registered:
        return Waiting(WaitReason.NO_RUNTIME, facts)
    if not_before is not None and not_before > now:
        return Waiting(WaitReason.NOT_YET, facts, not_before)
    if facts.where is not Presence.ONLINE:
        return Waiting(WaitReason.MACHINE_AWAY, facts)
    return Waiting(may_start(facts.live, facts.limits) or _in_line(facts), facts)


def _in_line(facts: QueueFacts) -> WaitReason:
    return WaitReason.BEHIND if facts.ahead else WaitReason.NEXT
