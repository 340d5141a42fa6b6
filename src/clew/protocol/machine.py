"""A machine as the server knows it: the calls that need the machine's own programs and directories."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Protocol

from clew.kernel import LaneId, MachineId, NativeId, PermissionMode, RunId, RuntimeId, WorkspaceId
from clew.ports.logins import Logins
from clew.ports.provider import FoundSession
from clew.ports.work import WorkOf
from clew.ports.workspaces import Cleaned, Listed, SourceFound
from clew.protocol.control import Registration


@dataclass(frozen=True, slots=True)
class AgentProgram:
    """The program of an agent: its command line, options, home and environment. Stored as JSON in the agent's
    settings."""

    provider: str
    program: tuple[str, ...] = ()
    options: Mapping[str, str] = field(default_factory=dict)
    home: Mapping[str, str] = field(default_factory=dict)
    environment: Mapping[str, str] = field(default_factory=dict, repr=False)


@dataclass(frozen=True, slots=True)
class Looked:
    """The result of a search for one program: its registration, or in `missing` why it cannot be used."""

    program: AgentProgram
    registration: Registration | None
    version: str = ""
    models: tuple[str, ...] = ()
    missing: str = ""


@dataclass(frozen=True, slots=True)
class Tried:
    """What came of a first prompt in a session of its own: the agent's reply, or in `failed` why there is none.
    `login`: its login was refused, or it has none."""

    reply: str = ""
    failed: str = ""
    seconds: float = 0.0
    mode: str = ""
    login: bool = False


@dataclass(frozen=True, slots=True)
class UnreadLetter:
    """A report or an end of a run in the daemon's outbox that its version of Clew cannot read."""

    run: RunId
    attempt: int
    kind: str
    why: str


class Machine(Protocol):
    @property
    def id(self) -> MachineId: ...

    async def providers(self) -> Sequence[str]:
        """The names of all installed providers."""
        ...

    async def discover(self, program: AgentProgram) -> Looked:
        """Look for the program. The caller registers its runtime."""
        ...

    async def check_homes(self, home: Mapping[str, str], create: bool) -> None:
        """Refuse a home that does not exist, which is probably a typing error; with `create`, make its directories."""
        ...

    async def logins(self, program: AgentProgram) -> Logins | None:
        """Which keys and logins it has; None for a program that needs none, or whose provider does not know them."""
        ...

    async def try_prompt(self, program: AgentProgram, model: str | None, mode: PermissionMode) -> Tried:
        """Send one prompt in a new session and in a directory of its own, which is removed afterwards."""
        ...

    async def offer(self, runtime: RuntimeId, program: AgentProgram) -> None:
        """Claim work for this runtime from now on."""
        ...

    async def unread_letters(self) -> Sequence[UnreadLetter]:
        """What its daemon keeps and cannot deliver."""
        ...

    async def sessions(self, runtime: RuntimeId) -> Sequence[FoundSession]: ...

    async def release(self, runtime: RuntimeId, natives: Collection[NativeId]) -> Sequence[NativeId]:
        """End the idle ones of these sessions that the daemon keeps open; those that it ended."""
        ...

    async def inspect(self, source: str, plain: bool, base: str | None = None) -> SourceFound: ...

    async def workspaces(self) -> Sequence[Listed]: ...

    @property
    def worktrees(self) -> WorkOf:
        """The work in its worktrees."""
        ...

    async def clean(
        self,
        asked: Collection[WorkspaceId] = (),
        spared: Mapping[LaneId, str] = MappingProxyType({}),
        dry: bool = False,
    ) -> Sequence[Cleaned]: ...
