"""Admission: whether a wake is accepted, deferred, skipped or refused; the first rule that applies decides.

A receipt says what happened to a wake and why, also when nothing ran.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum

from clew.kernel.contract import must_be
from clew.kernel.ids import AgentId, Instant, ThreadId, WakeId, own_thread
from clew.kernel.reason import Reason
from clew.kernel.wake import Origin, OriginKind, WakeEnd, WakeReason, WakeState


class AdmissionVerdict(StrEnum):
    ACCEPT = "accept"
    DEFER = "defer"
    SKIP = "skip"
    REFUSE = "refuse"


class AgentState(StrEnum):
    ACTIVE = "active"
    PAUSED = "paused"
    ARCHIVED = "archived"


class Overlap(StrEnum):
    """What a wake does to a lane that already has a live run."""

    QUEUE = "queue"
    STEER = "steer"
    INTERRUPT = "interrupt"
    REJECT = "reject"


class AdmissionReason(Reason):
    LANE_FREE = "accepted:lane-free", "The next run of the lane takes it."
    QUEUED = "accepted:queued", "The agent is busy; this waits for the next run."
    STEERED = "accepted:steered", "The agent is busy; it will be told during this turn, or at the start of the next."
    NOT_STEERED = "accepted:not-steered", "The running turn did not take it; it waits for the next run."
    INTERRUPTS = "accepted:interrupts", "The agent is busy; its run is interrupted for this."
    FLOOD = "deferred:flood", "The agent started {started} runs in the last {window:g} s; the limit is {limit}."
    PAUSED = "refused:agent-paused", "The agent is paused; resume it, then wake it again."
    ARCHIVED = "refused:agent-archived", "The agent was removed; choose another, or bring it back."
    KEY_CONFLICT = "refused:key-conflict", "This key was used for a wake on another thread; choose another key."


@dataclass(frozen=True, slots=True)
class AdmissionPolicy:
    """A chain of agents that wake one another is served up to `depth_limit` links."""

    flood_limit: int = 5
    flood_window: float = 60.0
    depth_limit: int = 6
    overlap: Overlap = Overlap.QUEUE

    def __post_init__(self) -> None:
        if self.flood_limit < 1:
            raise ValueError("a flood limit lets at least one run start: to stop an agent, pause it")


@dataclass(frozen=True, slots=True)
class Request:
    """The facts about one incoming wake. `starts` are the start times of the agent's recent runs, in any order."""

    agent: AgentId
    reason: WakeReason
    origin: Origin
    now: Instant
    agent_state: AgentState = AgentState.ACTIVE
    starts: tuple[Instant, ...] = ()
    lane_busy: bool = False


@dataclass(frozen=True, slots=True)
class Admission:
    """The answer. `until` is set when the wake is deferred, `overlap` when the lane was busy and its policy applied."""

    verdict: AdmissionVerdict
    reason: AdmissionReason | WakeEnd
    words: str
    until: Instant | None = None
    overlap: Overlap | None = None


SPOKEN = frozenset({WakeReason.COMMENT, WakeReason.MENTION, WakeReason.CHAT, WakeReason.REVIEW})
"""The reasons that are messages. An agent cannot wake itself by one, but it may assign work to itself."""

REFUSALS: Mapping[AgentState, AdmissionReason | None] = {
    AgentState.ACTIVE: None,
    AgentState.PAUSED: AdmissionReason.PAUSED,
    AgentState.ARCHIVED: AdmissionReason.ARCHIVED,
}

OVERLAPS: Mapping[Overlap, tuple[AdmissionVerdict, AdmissionReason | WakeEnd]] = {
    Overlap.QUEUE: (AdmissionVerdict.ACCEPT, AdmissionReason.QUEUED),
    Overlap.STEER: (AdmissionVerdict.ACCEPT, AdmissionReason.STEERED),
    Overlap.INTERRUPT: (AdmissionVerdict.ACCEPT, AdmissionReason.INTERRUPTS),
    Overlap.REJECT: (AdmissionVerdict.SKIP, WakeEnd.OVERLAP),
}


def admit(request: Request, policy: AdmissionPolicy) -> Admission:
    """Check, in order: paused or archived agents, agents that wake themselves or one another, floods, a busy lane."""
    must_be(request, Request, "what is asked")
    must_be(policy, AdmissionPolicy, "the policy of an admission")
    for rule in RULES:
        admission = rule(request, policy)
        if admission is not None:
            return admission
    return _overlap(request, policy)


def _agent_state(request: Request, _: AdmissionPolicy) -> Admission | None:
    reason = REFUSALS[request.agent_state]
    return None if reason is None else Admission(AdmissionVerdict.REFUSE, reason, reason.fill())


def _own_words(request: Request, _: AdmissionPolicy) -> Admission | None:
    by_itself = request.origin.kind is OriginKind.AGENT and request.origin.agent == request.agent
    if not (by_itself and request.reason in SPOKEN):
        return None
    return Admission(AdmissionVerdict.SKIP, WakeEnd.SELF, WakeEnd.SELF.fill())


def _ping_pong(request: Request, policy: AdmissionPolicy) -> Admission | None:
    # An agent's message may come back through an outside system, so only a person's wake ends the chain.
    depth = request.origin.depth
    if request.origin.kind is OriginKind.HUMAN or depth <= policy.depth_limit:
        return None
    words = WakeEnd.PING_PONG.fill(depth=depth, limit=policy.depth_limit)
    return Admission(AdmissionVerdict.SKIP, WakeEnd.PING_PONG, words)


def _flood(request: Request, policy: AdmissionPolicy) -> Admission | None:
    if request.reason is WakeReason.MANUAL or request.origin.kind is OriginKind.HUMAN:
        return None
    # One sum both decides and gives `until`, so that the wake is accepted at that very instant whatever the rounding.
    leaves = sorted(at + policy.flood_window for at in request.starts if at + policy.flood_window > request.now)
    if len(leaves) < policy.flood_limit:
        return None
    words = AdmissionReason.FLOOD.fill(started=len(leaves), window=policy.flood_window, limit=policy.flood_limit)
    return Admission(AdmissionVerdict.DEFER, AdmissionReason.FLOOD, words, until=leaves[-policy.flood_limit])


def _overlap(request: Request, policy: AdmissionPolicy) -> Admission:
    if not request.lane_busy:
        return Admission(AdmissionVerdict.ACCEPT, AdmissionReason.LANE_FREE, AdmissionReason.LANE_FREE.fill())
    verdict, reason = OVERLAPS[policy.overlap]
    return Admission(verdict, reason, reason.fill(), overlap=policy.overlap)


RULES: tuple[Callable[[Request, AdmissionPolicy], Admission | None], ...] = (
    _agent_state,
    _own_words,
    _ping_pong,
    _flood,
)


class Sameness(StrEnum):
    NEW = "new"
    SAME = "same"
    CONFLICT = "conflict"


@dataclass(frozen=True, slots=True)
class Deduped:
    """The result of comparing an idempotency key; `first` is the wake that the same request created."""

    sameness: Sameness
    first: WakeId | None = None
    reason: AdmissionReason | WakeEnd | None = None


def dedupe(existing: tuple[WakeId, ThreadId] | None, thread: ThreadId) -> Deduped:
    """Compare with the wake that already has the key. A conflict does not name that wake: it is in another thread."""
    if existing is None:
        return Deduped(Sameness.NEW)
    first, its_thread = existing
    if its_thread != thread:
        return Deduped(Sameness.CONFLICT, reason=AdmissionReason.KEY_CONFLICT)
    return Deduped(Sameness.SAME, first, WakeEnd.DUPLICATE)


def thread_for(agent: AgentId, thread: ThreadId | None) -> ThreadId:
    """The wake's thread. A wake that names none goes to the agent's own thread, never into another conversation."""
    return own_thread(agent) if thread is None else thread


class Carried(Reason):
    BY_RUN = "carried:by-run", "Taken by run {run}."
    STEERING = "carried:steering", "Run {run} is telling its agent during the current turn."
    STEERED = "carried:steered", "Run {run} told its agent during the turn."


class Served(Reason):
    BY_RUN = "served:by-run", "Run {run} served it."
    READ_BACK = "served:read-back", "Run {run} served it; the reply was read from the agent's own store afterwards."


@dataclass(frozen=True, slots=True)
class Receipt:
    """One line of a wake's record: its state since `at`, and why."""

    wake: WakeId
    state: WakeState
    reason: Reason
    words: str
    at: Instant


CANCELLING = frozenset({WakeEnd.REASSIGNED, WakeEnd.CLOSED, WakeEnd.BY_USER, WakeEnd.TAKEN_BACK, WakeEnd.GAVE_UP})
"""The ends after a wake was accepted; all others are skips."""

ADMITTED: Mapping[AdmissionVerdict, WakeState] = {
    AdmissionVerdict.ACCEPT: WakeState.PENDING,
    AdmissionVerdict.DEFER: WakeState.PENDING,
    AdmissionVerdict.SKIP: WakeState.SKIPPED,
    AdmissionVerdict.REFUSE: WakeState.SKIPPED,
}
"""A refused wake was never queued. It leaves a receipt only, as a skipped one does."""


def on_admission(wake: WakeId, admission: Admission, at: Instant) -> Receipt:
    return Receipt(wake, ADMITTED[admission.verdict], admission.reason, admission.words, at)


def on_end(wake: WakeId, end: WakeEnd, at: Instant, **facts: object) -> Receipt:
    """The receipt of a wake that ended without being served; `facts` fill the places of the sentence."""
    state = WakeState.CANCELLED if end in CANCELLING else WakeState.SKIPPED
    return Receipt(wake, state, end, end.fill(**facts), at)
