"""Claiming: asking for work for what is offered here, again and again, and hearing what the server has to say."""

import asyncio
import logging
from collections.abc import Callable, Sequence

from clew.daemon.delivering import Backlog, until_answered
from clew.daemon.limits import Limits
from clew.kernel import RunId, RuntimeId
from clew.protocol.control import Claimed, ControlPlane
from clew.protocol.orders import ClaimRequest, Order
from clew.protocol.runtimes import Held

_log = logging.getLogger("clew.daemon")


class Claimer:
    """One question for work goes for runtimes that were offered together; none waits for another's answer."""

    def __init__(
        self,
        by: str,
        plane: ControlPlane,
        backlog: Backlog,
        limits: Limits,
        holding: Callable[[], Sequence[Held]],
        start: Callable[[Order], None],
        news: Callable[[RunId], None],
    ) -> None:
        self._by, self._plane, self._backlog, self._limits = by, plane, backlog, limits
        self._holding, self._start, self._news = holding, start, news
        self._polls: set[asyncio.Task[None]] = set()
        self._room = asyncio.Event()
        self._looking: asyncio.Task[None] | None = None
        self._look_again = self._stopped = False
        self.runtimes: list[RuntimeId] = []

    def offer(self, runtimes: Sequence[RuntimeId]) -> None:
        """Settle what an earlier daemon of this name had going there, then ask for work."""
        poll = asyncio.create_task(self._serve(tuple(runtimes)), name=f"claims for {', '.join(runtimes)}")
        self._polls.add(poll)
        poll.add_done_callback(self._polls.discard)

    def has_room(self) -> None:
        """One run less is served here."""
        self._room.set()

    def look(self) -> None:
        """A run has ended, and with it a place of its agent and runtime is free: who waited for it is not hinted at."""
        self._look_again = True
        if not self._stopped and (self._looking is None or self._looking.done()):
            self._looking = asyncio.create_task(self._look(), name="claims for free places")

    async def stop(self) -> None:
        """No more is claimed. What an answer on its way would have brought is settled by the next start."""
        self._stopped = True
        polls = [*self._polls, *([] if self._looking is None else [self._looking])]
        for poll in polls:
            poll.cancel()
        if polls:
            await asyncio.wait(polls)

    async def _serve(self, runtimes: tuple[RuntimeId, ...]) -> None:
        # What was said before the crash counts, above all which sessions there are; then the rest is settled.
        await self._backlog.delivered(self._limits.backlog)
        settled = await until_answered(
            "settling", lambda: self._plane.settle(self._by, runtimes, self._held()), self._limits
        )
        for left in settled:
            _log.info("run %s was left by an earlier daemon: %s", left.run, left.why)
        self.runtimes += runtimes
        while not self._stopped:
            self._take(await until_answered("claiming", lambda: self._claim(runtimes), self._limits))

    async def _look(self) -> None:
        """Once for all that ended meanwhile. Who waits in a question of their own is told by the next one."""
        while self._look_again:
            self._look_again = False
            holding = frozenset(each.run for each in self._holding())
            room = self._limits.capacity - len(holding)
            if room <= 0 or not self.runtimes:
                return
            asked = ClaimRequest(self._by, tuple(self.runtimes), room, self._limits.patience)
            try:
                claimed = await self._plane.claim(asked, holding, 0.0)
            except Exception as fault:  # noqa: BLE001 - the question that waits asks again, and says what is wrong
                _log.debug("nothing was claimed: %s", fault)
                continue
            self._take(claimed)
            if claimed.orders:
                # Work is waiting: what ends in the next moment is followed by one claim for all of it.
                await asyncio.sleep(self._limits.gather)

    def _take(self, claimed: Claimed) -> None:
        for order in claimed.orders:
            self._start(order)
        for run in claimed.news:
            self._news(run)

    async def _claim(self, runtimes: tuple[RuntimeId, ...]) -> Claimed:
        holding = frozenset(each.run for each in self._holding())
        room = self._limits.capacity - len(holding)
        asked = ClaimRequest(self._by, runtimes, max(room, 0), self._limits.patience)
        if room > 0:
            return await self._plane.claim(asked, holding, self._limits.poll)
        return await self._only_news(asked, holding)

    async def _only_news(self, asked: ClaimRequest, holding: frozenset[RunId]) -> Claimed:
        """Full: no orders are asked for, so the question may be left off as soon as there is room."""
        self._room.clear()
        poll = asyncio.ensure_future(self._plane.claim(asked, holding, self._limits.poll))
        room = asyncio.ensure_future(self._room.wait())
        try:
            await asyncio.wait((poll, room), return_when=asyncio.FIRST_COMPLETED)
            return poll.result() if poll.done() else Claimed()
        finally:
            room.cancel()
            poll.cancel()
            await asyncio.wait((poll, room))

    def _held(self) -> tuple[Held, ...]:
        return (*self._holding(), *self._backlog.held)
