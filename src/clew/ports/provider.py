"""The port of agents: what every provider offers, whichever program is behind it.

A provider knows nothing of threads, lanes or the store. It is asked for one program in one home; what it can do it
declares (`Capabilities`), and what it does not declare is not asked of it.
"""

from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol, runtime_checkable

from clew.kernel import (
    AccountId,
    Answer,
    ApprovalId,
    Attestation,
    Capabilities,
    Cursor,
    Directory,
    Instant,
    Landing,
    NativeId,
    PermissionMode,
    Probe,
    PromptId,
    ProviderName,
    Sent,
)
from clew.ports.events import Event


@dataclass(frozen=True, slots=True)
class Deadlines:
    """Seconds. Some programs wait for ever on a model that does not answer; nothing here does."""

    start: float = 60.0
    answer: float = 30.0
    silence: float = 600.0
    close: float = 10.0


@dataclass(frozen=True, slots=True)
class Settings:
    """Where one program lives and whose home it uses.

    `program` is its command line; empty means that it is looked for. `home` are the environment variables that locate
    the agent's own store: they are part of the runtime, and another home is another runtime. `environment` is what
    else it gets, secrets among it: it is never logged and never on a command line. `options` are the provider's own.
    """

    program: tuple[str, ...] = ()
    home: Mapping[str, str] = field(default_factory=dict)
    environment: Mapping[str, str] = field(default_factory=dict, repr=False)
    options: Mapping[str, str] = field(default_factory=dict)
    deadlines: Deadlines = Deadlines()
    # Where Clew keeps what it must know after a crash (which processes it started); None keeps nothing.
    state: Path | None = None


@dataclass(frozen=True, slots=True)
class Discovery:
    """What is there. `missing` says why nothing is, and what to do; the rest is empty then.

    `home` is the one text by which this home is known: the same home gives the same text on every start. `account` is
    the login that the program itself names; a key or token names nobody, and `credential` is a short digest of it.
    """

    installed: bool
    home: str
    version: str = ""
    program: tuple[str, ...] = ()
    account: AccountId | None = None
    models: tuple[str, ...] = ()
    missing: str = ""
    credential: str | None = None


@dataclass(frozen=True, slots=True)
class OpenSpec:
    """What is to be opened. Without a cursor it is a new session, under `fresh_id` where the provider takes one.

    With `fork` the cursor's history goes into a new session in `directory`. Mode, model and instructions are applied
    every time: nothing is left over from an earlier opening.
    """

    directory: Directory
    mode: PermissionMode
    cursor: Cursor | None = None
    fork: bool = False
    fresh_id: NativeId | None = None
    model: str | None = None
    instructions: str | None = None
    environment: Mapping[str, str] = field(default_factory=dict, repr=False)


@dataclass(frozen=True, slots=True)
class FoundSession:
    """A session in the program's own store."""

    cursor: Cursor
    directory: Directory | None
    title: str = ""
    updated_at: Instant | None = None
    turns: int | None = None


@dataclass(frozen=True, slots=True)
class ArchiveFile:
    """A session as one file that another home can restore. `digest` is of its bytes; `turns` is the copy's own.

    One that is not `whole` holds only what was added since an earlier one, and is restored once it is joined with that
    (`clew.programs.archive.join`).
    """

    path: Path
    format: str
    native_id: NativeId
    digest: str
    turns: int | None = None
    whole: bool = True


class LiveSession(Protocol):
    """An open session. `landing` is what the agent itself said it opened, before any prompt went out."""

    @property
    def landing(self) -> Landing: ...

    @property
    def cursor(self) -> Cursor | None:
        """None while no other process could find the session: it is not kept yet, or what kept it was deleted."""
        ...

    @property
    def address(self) -> Cursor | None:
        """The cursor that the session has, or will have once it is durable: what `heard` is asked with when the process
        is gone. None while the program has not named its session."""
        ...

    def turn(self, prompt: str, id: PromptId | None = None) -> AsyncIterator[Event]:  # noqa: A002 - the prompt's own
        """Send a prompt and follow the turn to its end. The last event is always `Done`.

        The program is handed `id` where it keeps one, so that `heard` can find the prompt in its store. It is never
        part of the text that a person or a model sees. Without one, nobody will ask for the prompt.
        """
        ...

    async def interrupt(self) -> None:
        """End the turn that is going, and what it runs. Nothing happens when none is."""
        ...

    async def steer(self, prompt: str, id: PromptId | None = None) -> bool:  # noqa: A002 - the prompt's own
        """Tell it something within the turn that is going, and wait until that is certain: true once it is part of the
        turn, false when it is not and never will be. What is declared unable raises."""
        ...

    async def answer(self, approval: ApprovalId, given: Answer, words: str = "") -> bool:
        """Answer what the agent asked. False when it asks no more."""
        ...

    async def set_mode(self, mode: PermissionMode) -> PermissionMode:
        """From the next turn on; what the agent confirms is returned. Raises when it cannot be applied."""
        ...

    async def set_model(self, model: str) -> None: ...

    async def close(self) -> None:
        """End its process and all it started. The session stays in the program's store."""
        ...


@runtime_checkable
class KnowsItsWork(Protocol):
    """What a live session may be as well, where its program tells of commands that go on between turns."""

    @property
    def works_on(self) -> bool: ...


@runtime_checkable
class KnowsItsEnd(Protocol):
    """What a live session may be as well, where it notices that its process is gone while nobody uses it."""

    @property
    def has_ended(self) -> bool: ...


class Provider(Protocol):
    @property
    def name(self) -> ProviderName: ...

    @property
    def capabilities(self) -> Capabilities: ...

    async def discover(self) -> Discovery: ...

    async def probe(self, cursor: Cursor, directory: Directory) -> Probe:
        """Ask for a session without opening it. "Missing" only by the program's own structured sign."""
        ...

    async def heard(self, cursor: Cursor, directory: Directory, sent: Sent) -> Attestation:
        """Whether the session took a prompt, read from the program's own store: taken, and what follows it; not taken;
        or that it cannot be told. It is asked after the process that was handed the prompt is gone or has failed. It
        never opens, changes or repairs a session.

        "Unsent" only when the store is there, whole, and does not hold the prompt. A session that is not in the store
        holds nothing. What is still being written, busy or out of reach is "unknown"; nothing is raised.
        """
        ...

    async def open(self, spec: OpenSpec) -> LiveSession:
        """Open as told, or raise a fault and leave nothing behind."""
        ...

    async def sessions(self) -> Sequence[FoundSession]:
        """Every session in this home, newest first."""
        ...

    async def archive(self, cursor: Cursor, directory: Directory, into: Path, since: Path | None = None) -> ArchiveFile:
        """Copy a session into a file. The session is not changed.

        With `since`, an earlier archive of it, whole or not, what that has is left out. One that is damaged or of
        another session is refused, with nothing written.
        """
        ...

    async def restore(self, archive: Path, directory: Directory) -> Cursor:
        """Put an archived session into this home, bound to that directory. What is damaged, foreign, loaded or has
        diverged is refused with nothing changed; grants in it take no effect."""
        ...

    async def close(self) -> None:
        """End every process this provider started."""
        ...
