"""What a daemon asks for, and the orders it is given."""

from dataclasses import dataclass

from clew.kernel import (
    AgentId,
    Cursor,
    Directory,
    EntrySeq,
    Instant,
    JournalEntry,
    LaneId,
    Patience,
    Plan,
    ProjectId,
    RouteKey,
    RunId,
    RuntimeId,
    Sent,
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
class OrderedAgent:
    """Who works: `settings` says which program it is, in whose home and how it is used, as JSON."""

    id: AgentId
    name: str
    settings: str = "{}"
    instructions: str | None = None


@dataclass(frozen=True, slots=True)
class OrderedThread:
    """What the work is called."""

    id: ThreadId
    kind: str
    title: str = ""
    number: int | None = None


@dataclass(frozen=True, slots=True)
class OrderedProject:
    """What the workspace is made from; `settings` says how, as JSON."""

    id: ProjectId
    name: str
    source: str
    settings: str = "{}"


@dataclass(frozen=True, slots=True)
class StoreQuestion:
    """An earlier run of the lane whose agent's store is to be asked what became of its prompt, and of what it was told
    within its turn. `runtime` is where that store is; without a cursor it cannot be asked."""

    run: RunId
    runtime: RuntimeId
    cursor: Cursor | None
    directory: Directory | None
    prompt: Sent | None = None
    steered: Sent | None = None


@dataclass(frozen=True, slots=True)
class Order:
    """Everything a daemon needs to serve a run; it asks nothing back.

    `attempt` is the fence that every report must carry. `session` is the id of the session to continue, or the one
    that the new one gets. `entries` are those the session is to be told, in order. Its log goes on after `logged`. With
    `questions` nothing is opened: they are asked, and the run is decided again by the answers.
    """

    run: RunId
    attempt: int
    lane: LaneId
    thread: OrderedThread
    agent: OrderedAgent
    project: OrderedProject | None
    runtime: RuntimeId
    lease_until: Instant
    session: SessionId
    plan: Plan
    wakes: tuple[Wake, ...]
    entries: tuple[Entry, ...]
    route: RouteKey | None = None
    logged: int = 0
    questions: tuple[StoreQuestion, ...] = ()
