"""The port of context engines: an engine writes the prompts of a session, and keeps the state that it needs for that.

Every call names its scope, and state is found by the scope alone: a lane's, or one run's where the run is isolated. A
route is never a key. Every call but `assemble` and `compact` is idempotent: a run that is retried, or a restarted
daemon, repeats it.
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
    """The thread as people know it."""

    @property
    def kind(self) -> str: ...

    @property
    def title(self) -> str: ...

    @property
    def number(self) -> int | None: ...


@dataclass(frozen=True, slots=True)
class PromptRequest:
    """The facts of one prompt. `entries` are the journal entries that the plan hands to the session, in order.
    `tries`: how often these wakes were tried before."""

    plan: Plan
    agent: AgentId
    thread: Thread
    wakes: tuple[Wake, ...]
    entries: Sequence[Entry]
    budget: Budget
    tries: int = 0


@dataclass(frozen=True, slots=True)
class Prompt:
    """`told` is the last journal entry that the text covers. `words` says what was shortened or left out."""

    text: str
    told: EntrySeq
    words: str = ""


@dataclass(frozen=True, slots=True)
class TurnEnded:
    """A turn that has ended. `key` identifies it, so that a second report of it is recognised."""

    key: PromptId
    run: RunId
    told: EntrySeq
    completed: bool
    tokens: int


@dataclass(frozen=True, slots=True)
class Compacted:
    """The result of `compact`: entries up to `through` are stored only in short form. `words` is for the run's log."""

    through: EntrySeq = NOTHING_SEEN
    words: str = ""


@dataclass(frozen=True, slots=True)
class EngineSettings:
    """`state` is a directory for the engine alone, which creates it when it first needs it."""

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
        """These entries are about to be sent to the session of this scope. The same entry may come again."""
        ...

    async def assemble(self, scope: ScopeKey, request: PromptRequest) -> Prompt:
        """Write the prompt, within the request's budget. Raises a Fault that says why that is not possible."""
        ...

    async def after_turn(self, scope: ScopeKey, turn: TurnEnded) -> None:
        """A turn has ended, well or badly."""
        ...

    async def compact(self, scope: ScopeKey, budget: Budget) -> Compacted:
        """Shorten the state of the scope until it fits the budget."""
        ...

    async def maintain(self, scope: ScopeKey) -> None:
        """Do work that could wait until the scope is idle. No turn is running or waiting for it."""
        ...

    async def dispose(self, scope: ScopeKey) -> None:
        """The scope has ended, and its state is not needed again. It may never have been bootstrapped here."""
        ...
