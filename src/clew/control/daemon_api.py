"""The control plane as daemons call it: the store's operations, and a claim that waits until there is something."""

import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial

from clew.control.hints import Watch
from clew.control.services import Services
from clew.kernel import RunId, RuntimeId
from clew.protocol.control import Claimed
from clew.protocol.orders import ClaimRequest, Order
from clew.protocol.reports import Finish, Finished, Report, Reported
from clew.protocol.runtimes import Expired, Held, Registration, Renewed
from clew.store.engine.hints import ANYTHING, Topics
from clew.store.operations.claim import claim
from clew.store.operations.finish import finish
from clew.store.operations.leases import hear, renew, settle_orphans
from clew.store.operations.report import report
from clew.store.operations.runtimes import register_runtime

LOOK = 3.0
"""Seconds after which a claim looks by itself: a hint may be lost, and what was put off comes due without one."""

HEAR = 20.0
"""Seconds between two notes that a daemon which holds nothing is there."""

MOST_NEWS = 10_000
_NEWS = "news:"


class _Poll:
    """A claim that waits. What its daemon holds grows meanwhile by what another claim of the same daemon brought."""

    def __init__(self, watch: Watch) -> None:
        self._watch = watch
        self.held: set[RunId] = set()

    def hold(self, runs: Iterable[RunId]) -> None:
        new = frozenset(runs)
        self.held |= new
        self._watch.add(frozenset(f"{_NEWS}{run}" for run in new))


class DaemonApi:
    """Implements `clew.protocol.control.ControlPlane`."""

    def __init__(self, services: Services) -> None:
        self._services = services
        # What daemons have not been told yet; a report of the run is answered with it too.
        self._news: dict[RunId, None] = {}
        self._listens = False
        self._heard: dict[tuple[RuntimeId, ...], float] = {}
        # The claims of each daemon that wait.
        self._polls: dict[str, list[_Poll]] = {}

    async def register(self, registration: Registration) -> RuntimeId:
        return await self._services.write(partial(register_runtime, registration=registration))

    async def claim(self, asked: ClaimRequest, holding: frozenset[RunId], wait: float) -> Claimed:
        self._listen()
        until = time.monotonic() + wait
        queues = frozenset(f"queue:{runtime}" for runtime in asked.runtimes)
        with self._services.hints.watch(queues) as watch, self._polling(asked.by, watch, holding) as poll:
            heard: Topics = frozenset()
            while True:
                orders = await self._orders(asked)
                for other in self._polls[asked.by]:
                    other.hold(order.run for order in orders)
                held = frozenset(poll.held)
                news = held if heard & ANYTHING else self._take_news(held)
                left = until - time.monotonic()
                if orders or news or left <= 0:
                    return Claimed(orders, news)
                await self._hear(asked, held)
                heard = await watch.wait(min(left, LOOK))

    async def report(self, said: Report) -> Reported:
        # Before it is answered: what comes after is news again.
        news = said.run in self._news
        self._news.pop(said.run, None)
        try:
            reported = await self._services.write(partial(report, said=said))
        except BaseException:
            # Nobody was told of it.
            self._news |= dict.fromkeys((said.run,) if news else ())
            raise
        # What is to be told within the turn has to be asked for.
        return replace(reported, news=True) if news and not said.steers else reported

    async def finish(self, said: Finish) -> Finished:
        finished = await self._services.write(partial(finish, said=said))
        self._news.pop(said.run, None)
        return finished

    async def renew(self, of: Sequence[RuntimeId], held: Sequence[Held]) -> Renewed:
        return await self._services.write(partial(renew, of=of, held=held))

    async def settle(self, by: str, of: Sequence[RuntimeId], held: Sequence[Held]) -> tuple[Expired, ...]:
        return await self._services.write(partial(settle_orphans, by=by, of=of, held=held))

    @contextmanager
    def _polling(self, by: str, watch: Watch, holding: Iterable[RunId]) -> Iterator["_Poll"]:
        poll = _Poll(watch)
        poll.hold(holding)
        polls = self._polls.setdefault(by, [])
        polls.append(poll)
        try:
            yield poll
        finally:
            polls.remove(poll)

    def _listen(self) -> None:
        if not self._listens:
            self._listens = True
            self._services.hints.listen(self._on_hint)

    def _on_hint(self, topics: Topics) -> None:
        self._news |= {RunId(topic.removeprefix(_NEWS)): None for topic in topics if topic.startswith(_NEWS)}
        while len(self._news) > MOST_NEWS:
            # The oldest: its daemon is another server's.
            self._news.pop(next(iter(self._news)))

    def _take_news(self, holding: frozenset[RunId]) -> frozenset[RunId]:
        mine = frozenset(run for run in holding if run in self._news)
        for run in mine:
            del self._news[run]
        return mine

    async def _orders(self, asked: ClaimRequest) -> tuple[Order, ...]:
        if asked.most < 1 or not asked.runtimes:
            return ()
        return await self._services.write(partial(claim, asked=asked))

    async def _hear(self, asked: ClaimRequest, holding: frozenset[RunId]) -> None:
        """A daemon that holds runs speaks of them when it renews; to hear it before would tell nothing of them."""
        now = time.monotonic()
        if holding or now - self._heard.get(asked.runtimes, -HEAR) < HEAR:
            return
        self._heard[asked.runtimes] = now
        await self._services.write(partial(hear, of=asked.runtimes))
