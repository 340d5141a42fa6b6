"""The port of context engines: what a session is told, and the state an engine keeps for that.

Every call names its scope and finds state by nothing else: a lane's scope, or one run's where that run is isolated. A
route is never a key. Every call but `assemble` and `compact` may be repeated and then changes nothing: a run that is
tried again, or a daemon that starts anew, makes it once more.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from clew.kernel import (
    NOTHING_SEEN,
    AgentId,
    Budget,
    EntrySeq,
    Instant,
    JournalEntry,
    Plan,
    PromptId,
    RunId,
    ScopeKey,
    Wake,
)


class Entry(Protocol):
    """A journal entry: its facts, its text, when it was written, and the run that wrote it."""

    @property
    def facts(self) -> JournalEntry: ...

    @property
    def body(self) -> str: ...

    @property
    def at(self) -> Instant: ...

    @property
    def run(self) -> RunId | None: ...


class Thread(Protocol):
    """What people call the thread."""

    @property
    def kind(self) -> str: ...

    @property
    def title(self) -> str: ...

    @property
    def number(self) -> int | None: ...


@dataclass(frozen=True, slots=True)
class PromptRequest:
    """The facts of one prompt. `entries` are those of the journal that the plan hands to the session, in order."""

    plan: Plan
    agent: AgentId
    thread: Thread
    wakes: tuple[Wake, ...]
    entries: Sequence[Entry]
    budget: Budget


@dataclass(frozen=True, slots=True)
class Prompt:
    """`told` is how far into the journal the text goes. `words` says what of it was shortened or left out."""

    text: str
    told: EntrySeq
    words: str = ""


@dataclass(frozen=True, slots=True)
class TurnEnded:
    """A turn that is over. `key` identifies it, also when it is reported a second time."""

    key: PromptId
    run: RunId
    told: EntrySeq
    completed: bool
    tokens: int


@dataclass(frozen=True, slots=True)
class Compacted:
    """What `compact` did: entries up to `through` are kept in short form only. `words` is for the run's log."""

    through: EntrySeq = NOTHING_SEEN
    words: str = ""


@dataclass(frozen=True, slots=True)
class EngineSettings:
    """`state` is a directory of the engine's own; it makes it when it first needs it."""

    state: Path


class ContextEngine(Protocol):
    @property
    def name(self) -> str:
        """The name of its entry point."""
        ...

    async def bootstrap(self, scope: ScopeKey) -> None:
        """A run begins in this scope. Called before any other call of the run."""
        ...

    async def ingest(self, scope: ScopeKey, entries: Sequence[Entry]) -> None:
        """The session of this scope is about to be told these entries. The same entry may come again."""
        ...

    async def assemble(self, scope: ScopeKey, request: PromptRequest) -> Prompt:
        """The prompt, within the request's budget. Raises a Fault that says why there can be none."""
        ...

    async def after_turn(self, scope: ScopeKey, turn: TurnEnded) -> None:
        """A turn has ended, well or badly."""
        ...

    async def compact(self, scope: ScopeKey, budget: Budget) -> Compacted:
        """Shorten what is kept for the scope until it fits the budget."""
        ...

    async def maintain(self, scope: ScopeKey) -> None:
        """Work that can wait until the scope is idle: no turn is going, and none waits for this."""
        ...

    async def dispose(self, scope: ScopeKey) -> None:
        """The scope has ended: nothing of it is needed again. It may never have been bootstrapped here."""
        ...
