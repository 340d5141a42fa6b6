"""The control plane as a daemon knows it: the same calls in one process and across machines."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from clew.kernel import RunId, RuntimeId
from clew.protocol.orders import ClaimRequest, Order
from clew.protocol.reports import Finish, Finished, Report, Reported
from clew.protocol.runtimes import Expired, Held, Registration, Renewed


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
