"""Ownership: a daemon acts for the runtimes and the runs of its own machine, and for no other."""

from collections.abc import Collection, Iterable

from clew.control.actor import MachineDaemon
from clew.control.faults import BadRequest
from clew.control.services import Services
from clew.kernel import RunId, RunState, RuntimeId
from clew.protocol.control import Held
from clew.protocol.orders import Order
from clew.store.queries.runtimes import RuntimeRecord, read_holders, read_runtime

_MOST_KNOWN = 10_000


class Ownership:
    """Everything that was found to be the machine's is remembered, so that a report costs no statement more.

    A runtime never changes its machine, because its id is derived from it. A claimed run never changes its runtime:
    only queued runs are moved, and the next claim has another attempt.
    """

    def __init__(self, services: Services, actor: MachineDaemon) -> None:
        self._services, self._machine = services, actor.machine
        self._runtimes: set[RuntimeId] = set()
        self._held: dict[Held, None] = {}

    def add_orders(self, orders: Iterable[Order]) -> None:
        self._remember(Held(order.run, order.attempt) for order in orders)

    async def check_runtimes(self, runtimes: Iterable[RuntimeId]) -> None:
        new = frozenset(runtimes) - self._runtimes
        if not new:
            return
        found = await self._services.read(lambda tx: [read_runtime(tx, each) for each in new])
        for known in filter(None, found):
            self._check(known)
            self._runtimes.add(known.id)

    async def check_held(self, held: Iterable[Held]) -> None:
        """One read for the attempts that another server handed out, or this one before it was restarted. An attempt
        that no longer holds its run passes: the answer to the call says so, and nothing is written."""
        new = frozenset(held) - self._held.keys()
        if not new:
            return
        found = await self._services.read(lambda tx: read_holders(tx, [each.run for each in new]))
        for holder in found:
            claimed = Held(holder.run, holder.attempt)
            if claimed in new and holder.state is not RunState.QUEUED:
                self._check(holder.runtime, holder.run)
                self._remember([claimed])

    async def check_queued(self, runs: Collection[RunId]) -> None:
        """Whatever state they are in, they are to be runs of this machine."""
        if runs:
            for holder in await self._services.read(lambda tx: read_holders(tx, runs)):
                self._check(holder.runtime, holder.run)

    def _check(self, known: RuntimeRecord, run: RunId | None = None) -> None:
        if known.machine != self._machine:
            what = f"{known.provider} in {known.home}" if run is None else f"Run {run}"
            raise BadRequest(
                f"{what} belongs to machine {known.machine!r}, not to {self._machine!r}.",
                "Act for the runtimes and runs of your own machine only.",
            )

    def _remember(self, held: Iterable[Held]) -> None:
        self._held |= dict.fromkeys(held)
        while len(self._held) > _MOST_KNOWN:
            self._held.pop(next(iter(self._held)))
