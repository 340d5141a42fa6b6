"""What a machine says of itself and of the runs it holds, and what it is answered."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from clew.kernel import AccountId, MachineId, ProviderName, RunId, RunState, RuntimeId
from clew.protocol.orders import ClaimRequest, Order
from clew.protocol.reports import Finish, Finished, Report, Reported


@dataclass(frozen=True, slots=True)
class Registration:
    """What a machine says of one program as it is started in one home.

    `program` is its key there: a digest of its command line, home, environment and options. `account` is the login that
    it names, and `credential` a digest of the key that it is given. `capabilities` is what the provider declared of it,
    as JSON. All three are the program's own, and not of every program in that home.
    """

    machine: MachineId
    machine_name: str
    provider: ProviderName
    home: str
    account: AccountId | None = None
    capabilities: str = "{}"
    max_live: int = 4
    # Below which directory the machine makes workspaces.
    root: str | None = None
    program: str = ""
    credential: str | None = None


@dataclass(frozen=True, slots=True)
class Held:
    """A run that a daemon believes to hold."""

    run: RunId
    attempt: int


@dataclass(frozen=True, slots=True)
class Renewed:
    """What a daemon is told of its runs: which it still holds, and which it must stop."""

    held: frozenset[RunId]
    stop: frozenset[RunId]


@dataclass(frozen=True, slots=True)
class Expired:
    run: RunId
    state: RunState
    why: str


@dataclass(frozen=True, slots=True)
class Claimed:
    """Orders to carry out, and runs of this daemon of which the server has something to say: a report asks for it."""

    orders: tuple[Order, ...] = ()
    news: frozenset[RunId] = frozenset()


class ControlPlane(Protocol):
    """Every call is safe to repeat. One that cannot be made raises a Fault; nothing was changed then, or it was changed
    and saying it again says so."""

    async def register(self, registration: Registration) -> RuntimeId: ...

    async def claim(self, asked: ClaimRequest, holding: frozenset[RunId], wait: float) -> Claimed:
        """Orders as soon as there are any, or news of the runs it holds; nothing when the time is over."""
        ...

    async def report(self, said: Report) -> Reported: ...

    async def finish(self, said: Finish) -> Finished: ...

    async def renew(self, of: Sequence[RuntimeId], held: Sequence[Held]) -> Renewed: ...

    async def settle(self, by: str, of: Sequence[RuntimeId], held: Sequence[Held]) -> tuple[Expired, ...]:
        """The daemon was started anew: what it had going, but for what it still holds, is settled."""
        ...
