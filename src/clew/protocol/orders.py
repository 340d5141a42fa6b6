"""A daemon's request for work, and the orders that answer it."""

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
from clew.protocol.files import SentFile


@dataclass(frozen=True, slots=True)
class Entry:
    """One journal entry as it is stored: its facts, its text, and when it was written."""

    facts: JournalEntry
    body: str
    at: Instant
    run: RunId | None = None
    files: tuple[SentFile, ...] = ()

    @property
    def seq(self) -> EntrySeq:
        return self.facts.seq


@dataclass(frozen=True, slots=True)
class ClaimRequest:
    """A request for at most `most` runs on these runtimes. `by` is the daemon's name.

    It is answered when there are orders or news of the runs in `holding`, or empty after `wait` seconds.
    """

    by: str
    runtimes: tuple[RuntimeId, ...]
    most: int = 1
    patience: Patience = Patience()
    holding: frozenset[RunId] = frozenset()
    wait: float = 0.0


@dataclass(frozen=True, slots=True)
class OrderedAgent:
    """The agent that works. `settings` is its `AgentProgram` as JSON."""

    id: AgentId
    name: str
    settings: str = "{}"
    instructions: str | None = None


@dataclass(frozen=True, slots=True)
class OrderedThread:
    """The thread that the work is for."""

    id: ThreadId
    kind: str
    title: str = ""
    number: int | None = None


@dataclass(frozen=True, slots=True)
class OrderedProject:
    """The project that the workspace is made from; `settings` says how, as JSON."""

    id: ProjectId
    name: str
    source: str
    settings: str = "{}"


@dataclass(frozen=True, slots=True)
class StoreQuestion:
    """An earlier run of the lane whose prompt, or steering message, the agent may or may not have received: the daemon
    asks the agent's store on `runtime`. Without a cursor it cannot be asked."""

    run: RunId
    runtime: RuntimeId
    cursor: Cursor | None
    directory: Directory | None
    prompt: Sent | None = None
    steered: Sent | None = None


@dataclass(frozen=True, slots=True)
class Order:
    """Everything a daemon needs to serve a run; it needs no further call.

    `attempt` is the fence that every report carries. `session` is the id of the session to continue, or the id for a
    new one. `entries` are the journal entries for the prompt, in order. The run's log continues after line `logged`.
    With `questions`, nothing is opened: the daemon asks them, and the run is decided again with the answers. `tries`:
    how often its wakes were tried before.
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
    tries: int = 0
