"""A machine as the server knows it: what can only be asked where the agents and their directories are."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from clew.kernel import MachineId, RuntimeId, WorkspaceId
from clew.ports.provider import FoundSession
from clew.ports.workspaces import Cleaned, Listed, SourceFound
from clew.protocol.control import Registration


@dataclass(frozen=True, slots=True)
class AgentProgram:
    """Which program an agent is, in whose home and how it is used. It is kept as the agent's settings, as JSON."""

    provider: str
    program: tuple[str, ...] = ()
    options: Mapping[str, str] = field(default_factory=dict)
    home: Mapping[str, str] = field(default_factory=dict)
    environment: Mapping[str, str] = field(default_factory=dict, repr=False)


@dataclass(frozen=True, slots=True)
class Looked:
    """What a machine found of one program: its registration where it is there, and otherwise why not."""

    program: AgentProgram
    registration: Registration | None
    version: str = ""
    models: tuple[str, ...] = ()
    missing: str = ""


class Machine(Protocol):
    @property
    def id(self) -> MachineId: ...

    async def providers(self) -> Sequence[str]:
        """The names of all providers that are installed here."""
        ...

    async def discover(self, program: AgentProgram) -> Looked:
        """Whether the program is installed. The caller registers a runtime of it."""
        ...

    async def offer(self, runtime: RuntimeId, program: AgentProgram) -> None:
        """Claim work for that runtime from now on."""
        ...

    async def sessions(self, runtime: RuntimeId) -> Sequence[FoundSession]: ...

    async def inspect(self, source: str, plain: bool, base: str | None = None) -> SourceFound: ...

    async def workspaces(self) -> Sequence[Listed]: ...

    async def clean(self, asked: Collection[WorkspaceId] = ()) -> Sequence[Cleaned]: ...
