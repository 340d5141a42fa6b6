"""The port of agents: what a provider does for one agent program in one home.

A provider knows nothing of threads, lanes or the store. It declares what it can do (`Capabilities`), and is asked for
nothing else.
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
    """Seconds. Some programs wait for ever for a model that does not answer; a provider never does."""

    start: float = 60.0
    answer: float = 30.0
    silence: float = 600.0
    close: float = 10.0


@dataclass(frozen=True, slots=True)
class Settings:
    """Where one program lives and whose home it uses.

    `program` is its command line; if empty, the provider searches for it. `home` are the environment variables that
    locate the agent's own store; another home is another runtime. `environment` are its other variables, which may be
    secret: they are never logged and never on a command line. `options` are the provider's own.
    """

    program: tuple[str, ...] = ()
    home: Mapping[str, str] = field(default_factory=dict)
    environment: Mapping[str, str] = field(default_factory=dict, repr=False)
    options: Mapping[str, str] = field(default_factory=dict)
    deadlines: Deadlines = Deadlines()
    # Where the provider records what it must know after a crash, such as its processes. None: nothing is recorded.
    state: Path | None = None


@dataclass(frozen=True, slots=True)
class Discovery:
    """The installed program. If there is none, `missing` says why and what to do, and most other fields are empty.

    `home` identifies the home: the same home gives the same text on every start. `account` is the login that the
    program itself names. A key or token names no account; `credential` is a short digest of it.
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
    """The session to open. Without a cursor it is a new one, with the id `fresh_id` where the provider can choose it.

    With `fork`, the history of the cursor's session is copied into a new session in `directory`. Mode, model and
    instructions are applied at every opening; none of an earlier opening stays in force.
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
    """A session as one file that another home can restore. `digest` is of the file; `turns` counts those in it.

    An archive that is not `whole` holds only what was added since an earlier one. It can be restored after it is joined
    with that one (`clew.programs.archive.join`).
    """

    path: Path
    format: str
    native_id: NativeId
    digest: str
    turns: int | None = None
    whole: bool = True


class LiveSession(Protocol):
    """An open session. `landing` is what the agent itself reported that it opened, before any prompt was sent."""

    @property
    def landing(self) -> Landing: ...

    @property
    def cursor(self) -> Cursor | None:
        """None while no other process could find the session: it is not stored yet, or its store was deleted."""
        ...

    @property
    def address(self) -> Cursor | None:
        """The cursor that the session has, or will have once it is durable. `heard` is called with it after the process
        has ended. None while the program has not named its session."""
        ...

    def turn(self, prompt: str, id: PromptId | None = None) -> AsyncIterator[Event]:  # noqa: A002 - the prompt's own
        """Send a prompt and follow the turn to its end. The last event is always `Done`.

        The program gets `id` where it stores one, so that `heard` can find the prompt. The id is never part of the text
        that a person or a model sees. Without an id, `heard` is not called for the prompt.
        """
        ...

    async def interrupt(self) -> None:
        """End the running turn, and the processes that it started. Does nothing when no turn is running."""
        ...

    async def steer(self, prompt: str, id: PromptId | None = None) -> bool:  # noqa: A002 - the prompt's own
        """Add a prompt to the running turn, and wait until the outcome is certain: true once it is part of the turn,
        false when it never will be. Raises where the provider declares that it cannot steer."""
        ...

    async def answer(self, approval: ApprovalId, given: Answer, words: str = "") -> bool:
        """Answer a request of the agent. False when the request is no longer open."""
        ...

    async def set_mode(self, mode: PermissionMode) -> PermissionMode:
        """Set the mode from the next turn on, and return the one that the agent confirms. Raises when it cannot be
        applied."""
        ...

    async def set_model(self, model: str) -> None: ...

    async def close(self) -> None:
        """End its process and all that it started. The session stays in the program's store."""
        ...


@runtime_checkable
class KnowsItsWork(Protocol):
    """Also implemented by a live session whose program reports commands that run on between turns."""

    @property
    def works_on(self) -> bool: ...


@runtime_checkable
class KnowsItsEnd(Protocol):
    """Also implemented by a live session that notices when its process ends between turns."""

    @property
    def has_ended(self) -> bool: ...


@runtime_checkable
class EndsSilence(Protocol):
    """Also implemented by a live session that ends a turn itself when its program gives no sign of life."""

    @property
    def ends_in(self) -> float | None:
        """Seconds until it ends the running turn if nothing comes. None while nothing would end it: no turn is
        running, or a person is asked."""
        ...


@runtime_checkable
class KnowsItsVisitors(Protocol):
    """Also implemented by a live session whose program tells when a person opens the session at a terminal."""

    def has_visitor(self) -> bool:
        """Whether one has. Reads files, and may block for a moment."""
        ...


@runtime_checkable
class KeepsServer(Protocol):
    """Also implemented by a provider whose program keeps a server running between sessions."""

    async def let_go(self) -> None:
        """End that server unless a session is open in it. The next call starts another."""
        ...


class Provider(Protocol):
    @property
    def name(self) -> ProviderName: ...

    @property
    def capabilities(self) -> Capabilities: ...

    async def discover(self) -> Discovery: ...

    async def probe(self, cursor: Cursor, directory: Directory) -> Probe:
        """Look for a session without opening it. "Missing" only by a structured signal of the program."""
        ...

    async def heard(self, cursor: Cursor, directory: Directory, sent: Sent) -> Attestation:
        """Whether the session took a prompt, read from the program's own store: taken, and what followed; not taken; or
        unknown. Called after the process that got the prompt has ended or failed. Never opens, changes or repairs a
        session.

        "Unsent" only when the store is there, is whole, and does not hold the prompt. A session that is not in the
        store holds nothing. A store that is being written, locked or out of reach is "unknown"; nothing is raised.
        """
        ...

    async def open(self, spec: OpenSpec) -> LiveSession:
        """Open the session, or raise a fault and leave nothing behind."""
        ...

    async def sessions(self) -> Sequence[FoundSession]:
        """Every session in this home, newest first."""
        ...

    async def archive(self, cursor: Cursor, directory: Directory, into: Path, since: Path | None = None) -> ArchiveFile:
        """Copy a session into a file. The session is not changed.

        With `since`, an earlier archive of the session, whole or not, the copy leaves out what that one has. If the
        earlier archive is damaged or of another session, this raises and writes nothing.
        """
        ...

    async def restore(self, archive: Path, directory: Directory) -> Cursor:
        """Put an archived session into this home, bound to that directory. Raises, with nothing changed, if the archive
        is damaged or of another provider, or if the session is open or has diverged here. Permissions in the archive
        take no effect."""
        ...

    async def close(self) -> None:
        """End every process this provider started."""
        ...
