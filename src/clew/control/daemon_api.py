"""The API that daemons call: the store's operations, and a claim that waits until there is work."""

import asyncio
import base64
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial

from clew.control.actor import MachineDaemon
from clew.control.faults import BadRequest
from clew.control.hints import Watch
from clew.control.ownership import Ownership
from clew.control.services import Services
from clew.kernel import RunId, RuntimeId
from clew.protocol.control import (
    Claimed,
    Expired,
    FileContent,
    FileWanted,
    GoOnRequest,
    Held,
    OrphansRequest,
    Registration,
    Renewed,
    RenewRequest,
)
from clew.protocol.orders import ClaimRequest, Order
from clew.protocol.reports import Finish, Finished, Report, Reported
from clew.store.engine.hints import ANYTHING, Topics
from clew.store.operations.claim import claim
from clew.store.operations.files import read_content
from clew.store.operations.finish import finish
from clew.store.operations.leases import end_orphans, mark_seen, renew
from clew.store.operations.report import report
from clew.store.operations.retry import let_go
from clew.store.operations.runtimes import register_runtime
from clew.store.queries.runs import read_run

POLL = 3.0
"""Seconds between two polls of a waiting claim: a hint may be lost, and a delayed run comes due without one."""

SEEN = 20.0
"""Seconds between two writes that an idle daemon was seen."""

MOST_NEWS = 10_000
_NEWS = "news:"


class _Poll:
    """A claim that waits. Its daemon may get runs by another claim in the meantime; `held` has those too."""

    def __init__(self, watch: Watch) -> None:
        self._watch = watch
        self.held: set[RunId] = set()

    def hold(self, runs: Iterable[RunId]) -> None:
        new = frozenset(runs)
        self.held |= new
        self._watch.add(frozenset(f"{_NEWS}{run}" for run in new))


class DaemonApi:
    """Implements `clew.protocol.control.ControlPlane` for the daemon of one machine."""

    def __init__(self, services: Services, actor: MachineDaemon) -> None:
        self._services = services
        self._actor = actor
        # Runs with news that their daemon has not been told of yet; the answer to a report tells it too.
        self._news: dict[RunId, None] = {}
        self._listens = False
        self._own = Ownership(services, actor)
        self._seen: dict[tuple[RuntimeId, ...], float] = {}
        # The waiting claims of each daemon.
        self._polls: dict[str, list[_Poll]] = {}

    async def register(self, registration: Registration) -> RuntimeId:
        if registration.machine != self._actor.machine:
            raise BadRequest(
                f"The daemon of machine {self._actor.machine!r} cannot register runtimes of {registration.machine!r}.",
                "Register them from that machine.",
            )
        return await self._services.write(partial(register_runtime, registration=registration))

    async def claim(self, asked: ClaimRequest) -> Claimed:
        await self._own.check_runtimes(asked.runtimes)
        self._listen()
        until = time.monotonic() + asked.wait
        queues = frozenset(f"queue:{runtime}" for runtime in asked.runtimes)
        with self._services.hints.watch(queues) as watch, self._polling(asked.by, watch, asked.holding) as poll:
            heard: Topics = frozenset()
            while True:
                orders = await self._orders(asked)
                self._own.add_orders(orders)
                for other in self._polls[asked.by]:
                    other.hold(order.run for order in orders)
                held = frozenset(poll.held)
                news = held if heard & ANYTHING else self._take_news(held)
                if orders or news:
                    return Claimed(orders, news)
                await self._note_seen(asked, held)
                left = until - time.monotonic()
                if left <= 0:
                    return Claimed((), frozenset())
                heard = await watch.wait(min(left, POLL))

    async def report(self, said: Report) -> Reported:
        await self._own.check_held([Held(said.run, said.attempt)])
        # Removed before the report is written: what arrives afterwards is news again.
        news = said.run in self._news
        self._news.pop(said.run, None)
        try:
            reported = await self._services.write(partial(report, said=said))
        except BaseException:
            # The daemon was not told.
            self._news |= dict.fromkeys((said.run,) if news else ())
            raise
        # Messages that arrive during the turn are handed out only to a report that asks for them.
        return replace(reported, news=True) if news and not said.steers else reported

    async def finish(self, said: Finish) -> Finished:
        await self._own.check_held([Held(said.run, said.attempt)])
        finished = await self._services.write(partial(finish, said=said))
        self._news.pop(said.run, None)
        return finished

    async def file(self, asked: FileWanted) -> FileContent:
        await self._own.check_held([Held(asked.run, asked.attempt)])
        _, content, thread = await self._services.read(partial(read_content, id_=asked.file))
        run = await self._services.read(partial(read_run, run=asked.run))
        if thread is None or thread != run.thread:
            raise BadRequest(
                f"The file {asked.file} was not sent in the thread of {asked.run}.", "Fetch its own files."
            )
        return FileContent(await asyncio.to_thread(_in_base64, content))

    async def renew(self, asked: RenewRequest) -> Renewed:
        await self._own.check_runtimes(asked.runtimes)
        await self._own.check_held(asked.held)
        return await self._services.write(partial(renew, of=asked.runtimes, held=asked.held, patience=asked.patience))

    async def go_on(self, asked: GoOnRequest) -> None:
        await self._own.check_queued(asked.runs)
        await self._services.write(partial(let_go, runs=asked.runs))

    async def end_orphans(self, asked: OrphansRequest) -> tuple[Expired, ...]:
        await self._own.check_runtimes(asked.runtimes)
        return await self._services.write(partial(end_orphans, by=asked.by, of=asked.runtimes, held=asked.held))

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
            # The oldest belong to daemons of other servers.
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

    async def _note_seen(self, asked: ClaimRequest, holding: frozenset[RunId]) -> None:
        """Busy daemons are seen by renew(); only idle ones need this write."""
        now = time.monotonic()
        if holding or now - self._seen.get(asked.runtimes, -SEEN) < SEEN:
            return
        self._seen[asked.runtimes] = now
        await self._services.write(partial(mark_seen, of=asked.runtimes))


def _in_base64(content: bytes) -> str:
    return base64.b64encode(content).decode("ascii")
