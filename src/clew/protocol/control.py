"""The control plane as a daemon knows it: its calls, the same in one process and across machines, and their values."""

from dataclasses import dataclass
from typing import Protocol

from clew.kernel import AccountId, MachineId, Patience, ProviderName, RunId, RunState, RuntimeId
from clew.protocol.orders import ClaimRequest, Order
from clew.protocol.reports import Finish, Finished, Report, Reported


@dataclass(frozen=True, slots=True)
class Registration:
    """A program in one home, as its machine registers it.

    `program` identifies it there: a digest of its command line, home, environment and options. `account` is its login,
    `credential` a digest of its API key, and `capabilities` what its provider declares, as JSON. These three belong to
    the program; another program in the same home may have others.
    """

    machine: MachineId
    machine_name: str
    provider: ProviderName
    home: str
    account: AccountId | None = None
    capabilities: str = "{}"
    max_live: int = 4
    root: str | None = None
    """The directory below which the machine makes workspaces."""
    program: str = ""
    credential: str | None = None


@dataclass(frozen=True, slots=True)
class Held:
    """A run that a daemon takes to be its own."""

    run: RunId
    attempt: int


@dataclass(frozen=True, slots=True)
class RenewRequest:
    """A request for the leases of all runs that a daemon serves, for as long as its patience says."""

    runtimes: tuple[RuntimeId, ...]
    held: tuple[Held, ...]
    patience: Patience


@dataclass(frozen=True, slots=True)
class Renewed:
    """The answer to a renewal: the runs that the daemon still holds, and those it must stop."""

    held: frozenset[RunId]
    stop: frozenset[RunId]


@dataclass(frozen=True, slots=True)
class OrphansRequest:
    """A daemon has started: its runs from before on these runtimes are to be ended, except those in `held`."""

    by: str
    runtimes: tuple[RuntimeId, ...]
    held: tuple[Held, ...] = ()


@dataclass(frozen=True, slots=True)
class GoOnRequest:
    """Runs that were held for something on this machine that is free now."""

    runs: tuple[RunId, ...]


@dataclass(frozen=True, slots=True)
class FileWanted:
    """A request for a file that was sent in the thread of a run."""

    run: RunId
    attempt: int
    file: str


@dataclass(frozen=True, slots=True)
class FileContent:
    """A file in base64."""

    content: str


@dataclass(frozen=True, slots=True)
class Expired:
    run: RunId
    state: RunState
    why: str


@dataclass(frozen=True, slots=True)
class Claimed:
    """Orders to carry out, and the daemon's runs for which the server has news; a report fetches the news."""

    orders: tuple[Order, ...] = ()
    news: frozenset[RunId] = frozenset()


class ControlPlane(Protocol):
    """Every call is safe to repeat. A call that fails raises a Fault; whether it was carried out is then unknown, and
    repeating it tells."""

    async def register(self, registration: Registration) -> RuntimeId: ...

    async def claim(self, asked: ClaimRequest) -> Claimed: ...

    async def report(self, said: Report) -> Reported: ...

    async def finish(self, said: Finish) -> Finished: ...

    async def file(self, asked: FileWanted) -> FileContent: ...

    async def renew(self, asked: RenewRequest) -> Renewed: ...

    async def go_on(self, asked: GoOnRequest) -> None:
        """The runs are decided again at once."""
        ...

    async def end_orphans(self, asked: OrphansRequest) -> tuple[Expired, ...]: ...
