"""A machine as the server knows it: the calls that need the machine's own programs and directories."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from clew.kernel import MachineId, RuntimeId, WorkspaceId
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


class Machine(Protocol):
    @property
    def id(self) -> MachineId: ...

    async def providers(self) -> Sequence[str]:
        """The names of all installed providers."""
        ...

    async def discover(self, program: AgentProgram) -> Looked:
        """Look for the program. The caller registers its runtime."""
        ...

    async def offer(self, runtime: RuntimeId, program: AgentProgram) -> None:
        """Claim work for this runtime from now on."""
        ...

    async def sessions(self, runtime: RuntimeId) -> Sequence[FoundSession]: ...

    async def inspect(self, source: str, plain: bool, base: str | None = None) -> SourceFound: ...

    async def workspaces(self) -> Sequence[Listed]: ...

    @property
    def worktrees(self) -> WorkOf:
        """The work in its worktrees."""
        ...

    async def clean(self, asked: Collection[WorkspaceId] = ()) -> Sequence[Cleaned]: ...
