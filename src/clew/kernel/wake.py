"""Wakes: requests that a lane act, how several become one demand, and how each one ends."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum

from clew.kernel.contract import must_be
from clew.kernel.ids import AgentId, EntrySeq, Instant, LaneId, RouteKey, RunId, WakeId
from clew.kernel.reason import Reason


class WakeReason(StrEnum):
    ASSIGNMENT = "assignment"
    COMMENT = "comment"
    MENTION = "mention"
    CHAT = "chat"
    REVIEW = "review"
    TIMER = "timer"
    EVENT = "event"
    MANUAL = "manual"
    RETRY = "retry"


class Freshness(StrEnum):
    """Whether a wake accepts the earlier conversation.

    Handover: the thread changed hands. If the policy starts a new session for it, that session gets the thread's
    history instead of beginning blank.
    """

    FOLLOW_POLICY = "follow-policy"
    FRESH = "fresh"
    HANDOVER = "handover"


class OriginKind(StrEnum):
    HUMAN = "human"
    AGENT = "agent"
    TIMER = "timer"
    OUTSIDE = "outside"
    CLEW = "clew"


@dataclass(frozen=True, slots=True)
class Origin:
    """Who or what asked. `depth` is the length of the chain of agents that woke one another."""

    kind: OriginKind
    agent: AgentId | None = None
    depth: int = 0


HUMAN = Origin(OriginKind.HUMAN)


@dataclass(frozen=True, slots=True)
class Wake:
    """A durable request that a lane act. `entries` are the journal entries it wants answered.

    `began`: a run has opened a session for it. Its demand for a fresh start is fulfilled, and it counts as a retry.
    """

    id: WakeId
    lane: LaneId
    reason: WakeReason
    origin: Origin = HUMAN
    accepted_at: Instant = 0.0
    entries: tuple[EntrySeq, ...] = ()
    freshness: Freshness = Freshness.FOLLOW_POLICY
    resume_run: RunId | None = None
    priority: int = 0
    not_before: Instant | None = None
    route: RouteKey | None = None
    began: bool = False


@dataclass(frozen=True, slots=True)
class ResetPolicy:
    """The reasons that start a new session without being asked to."""

    reasons: frozenset[WakeReason] = frozenset({WakeReason.ASSIGNMENT})

    def resets(self, reason: WakeReason) -> bool:
        return reason in self.reasons


@dataclass(frozen=True, slots=True)
class Demand:
    """What the pending wakes of one lane ask for together. `handed_over`: one of them hands the thread over, no session
    was opened for it yet, and none demands a fresh start."""

    wakes: tuple[WakeId, ...]
    reasons: tuple[WakeReason, ...]
    entries: tuple[EntrySeq, ...]
    fresh_asked_by: WakeId | None
    resume_run: RunId | None
    priority: int
    route: RouteKey | None
    handed_over: bool = False


def arrival(wake: Wake) -> tuple[Instant, tuple[EntrySeq, ...], WakeId]:
    """The sort key of wakes. Two may have the same time; then the journal says which came first."""
    return wake.accepted_at, wake.entries, wake.id


def coalesce(wakes: Iterable[Wake]) -> Demand:
    """One demand for all of them, in order of arrival.

    A demand for a fresh start stays, whatever the others ask for, until a session was opened for it. The latest request
    for an earlier run counts, and the latest route; the highest priority applies to all.
    """
    must_be(wakes, Iterable, "what is to be coalesced")
    given = tuple(wakes)
    for wake in given:
        must_be(wake, Wake, "each of the wakes to coalesce")
    ordered = sorted(given, key=arrival)
    if not ordered:
        raise ValueError("there is nothing to coalesce: a demand needs at least one wake")
    if len({wake.lane for wake in ordered}) > 1:
        raise ValueError("wakes of different lanes cannot be coalesced: each lane has its own conversation")
    fresh = [wake.id for wake in ordered if wake.freshness is Freshness.FRESH and not wake.began]
    asked = [wake.resume_run for wake in ordered if wake.resume_run is not None]
    routes = [wake.route for wake in ordered if wake.route is not None]
    return Demand(
        wakes=tuple(wake.id for wake in ordered),
        reasons=tuple(dict.fromkeys(WakeReason.RETRY if wake.began else wake.reason for wake in ordered)),
        entries=tuple(sorted({entry for wake in ordered for entry in wake.entries})),
        fresh_asked_by=fresh[0] if fresh else None,
        resume_run=asked[-1] if asked else None,
        priority=max(wake.priority for wake in ordered),
        route=routes[-1] if routes else None,
        handed_over=not fresh and any(wake.freshness is Freshness.HANDOVER and not wake.began for wake in ordered),
    )


class WakeState(StrEnum):
    PENDING = "pending"
    CLAIMED = "claimed"
    SERVED = "served"
    SKIPPED = "skipped"
    CANCELLED = "cancelled"


class WakeEvent(StrEnum):
    CLAIM = "claim"
    RELEASE = "release"
    SERVE = "serve"
    SKIP = "skip"
    CANCEL = "cancel"


class WakeEnd(Reason):
    """Why a wake ended without being served."""

    DUPLICATE = "skipped:duplicate", "A duplicate: the same request was already accepted."
    SELF = "skipped:self", "An agent's own message does not wake it."
    PING_PONG = "skipped:ping-pong", "Agents have woken one another {depth} times in a row; the limit is {limit}."
    NOTHING_TO_CHECK = "skipped:nothing-to-check", "The checklist is empty, so the agent is not asked."
    NO_ROUTE = "skipped:no-route", "No event is pending, and there is no route for a reply."
    QUIET_HOURS = "skipped:quiet-hours", "These are the agent's quiet hours."
    LANE_BUSY = "skipped:lane-busy", "The lane is busy; this tick is left to the next one."
    DISABLED = "skipped:disabled", "The heartbeat is switched off."
    OVERLAP = (
        "skipped:overlap",
        "The agent is busy, and its policy refuses wakes until it is free; the message stays in the thread.",
    )
    REASSIGNED = "cancelled:reassigned", "The thread was assigned to another agent."
    CLOSED = "cancelled:closed", "The thread was closed."
    BY_USER = "cancelled:by-user", "It was cancelled."
    TAKEN_BACK = "cancelled:taken-back", "The message was taken back."
    GAVE_UP = "cancelled:gave-up", "Given up: {why}"


WAKE_TABLE: Mapping[tuple[WakeState, WakeEvent], WakeState] = {
    (WakeState.PENDING, WakeEvent.CLAIM): WakeState.CLAIMED,
    (WakeState.PENDING, WakeEvent.SKIP): WakeState.SKIPPED,
    (WakeState.PENDING, WakeEvent.CANCEL): WakeState.CANCELLED,
    (WakeState.CLAIMED, WakeEvent.RELEASE): WakeState.PENDING,
    (WakeState.CLAIMED, WakeEvent.SERVE): WakeState.SERVED,
    (WakeState.CLAIMED, WakeEvent.CANCEL): WakeState.CANCELLED,
}
"""A pair that is not listed changes nothing: the three ends are final."""

WAKE_ENDS = frozenset({WakeState.SERVED, WakeState.SKIPPED, WakeState.CANCELLED})


def advance_wake(state: WakeState, event: WakeEvent) -> WakeState | None:
    """The next state, or None when the event cannot happen in this one."""
    return WAKE_TABLE.get((state, event))


def is_due(wake: Wake, now: Instant) -> bool:
    return wake.not_before is None or wake.not_before <= now


def ready(pending: Iterable[Wake], now: Instant) -> tuple[Wake, ...]:
    """The lane's pending wakes that a run may take now, in order of arrival.

    A delayed wake (a retry, a deferral) waits until it is due, unless a person wakes the lane meanwhile: that run takes
    the delayed ones along.
    """
    ordered = sorted(pending, key=arrival)
    takes_all = any(is_due(wake, now) and wake.origin.kind is OriginKind.HUMAN for wake in ordered)
    return tuple(wake for wake in ordered if takes_all or is_due(wake, now))
