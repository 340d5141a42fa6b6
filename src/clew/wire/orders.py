"""What a daemon asks for, and the orders it is given."""

from dataclasses import dataclass

from clew.kernel import (
    AgentId,
    EntrySeq,
    Instant,
    JournalEntry,
    LaneId,
    Patience,
    Plan,
    RouteKey,
    RunId,
    RuntimeId,
    SessionId,
    ThreadId,
    Wake,
)


@dataclass(frozen=True, slots=True)
class Entry:
    """One entry as it is kept: its facts, its text, and when it was written."""

    facts: JournalEntry
    body: str
    at: Instant
    run: RunId | None = None

    @property
    def seq(self) -> EntrySeq:
        return self.facts.seq


@dataclass(frozen=True, slots=True)
class ClaimRequest:
    """What a daemon asks for: work for these runtimes, so many runs at most. `by` names the daemon."""

    by: str
    runtimes: tuple[RuntimeId, ...]
    most: int = 1
    patience: Patience = Patience()


@dataclass(frozen=True, slots=True)
class Order:
    """Everything a daemon needs to serve a run; it asks nothing back.

    `attempt` is the fence that every report must carry. `session` is the id of the session to continue, or the one
    that the new one gets. `entries` are those the session is to be told, in order. Its log goes on after `logged`.
    """

    run: RunId
    attempt: int
    lane: LaneId
    thread: ThreadId
    agent: AgentId
    runtime: RuntimeId
    lease_until: Instant
    session: SessionId
    plan: Plan
    wakes: tuple[Wake, ...]
    entries: tuple[Entry, ...]
    route: RouteKey | None = None
    logged: int = 0
