"""The claimer: long polls for the work of the offered runtimes, and for news of the runs that are served here."""

import asyncio
import logging
from collections.abc import Callable, Sequence

from clew.daemon.limits import Limits
from clew.daemon.uplink import Backlog, until_answered
from clew.kernel import RunId, RuntimeId
from clew.protocol.control import Claimed, ControlPlane, Held, OrphansRequest
from clew.protocol.orders import ClaimRequest, Order

_log = logging.getLogger("clew.daemon")


class Claimer:
    """One long poll for all runtimes that were offered together; no poll waits for another's answer."""

    def __init__(
        self,
        by: str,
        plane: ControlPlane,
        backlog: Backlog,
        limits: Limits,
        holding: Callable[[], Sequence[Held]],
        start: Callable[[Order], None],
        on_news: Callable[[RunId], None],
    ) -> None:
        self._by, self._plane, self._backlog, self._limits = by, plane, backlog, limits
        self._holding, self._start, self._on_news = holding, start, on_news
        self._polls: set[asyncio.Task[None]] = set()
        self._room = asyncio.Event()
        self._claiming_now: asyncio.Task[None] | None = None
        self._claim_again = self._stopped = False
        self.runtimes: list[RuntimeId] = []

    def offer(self, runtimes: Sequence[RuntimeId]) -> None:
        """Have the server end the runs that an earlier daemon of this name left there, then ask for work."""
        poll = asyncio.create_task(self._poll(tuple(runtimes)), name=f"claims for {', '.join(runtimes)}")
        self._polls.add(poll)
        poll.add_done_callback(self._polls.discard)

    def room_freed(self) -> None:
        """This daemon serves one run less."""
        self._room.set()

    def claim_now(self) -> None:
        """A run has ended, so its agent and its runtime have a free place. The server gives no hint of the runs that
        waited for it."""
        self._claim_again = True
        if not self._stopped and (self._claiming_now is None or self._claiming_now.done()):
            self._claiming_now = asyncio.create_task(self._claim_now(), name="claims for free places")

    async def stop(self) -> None:
        """Claim no more. Runs in an answer that is on its way are ended at the next start."""
        self._stopped = True
        polls = [*self._polls, *([] if self._claiming_now is None else [self._claiming_now])]
        for poll in polls:
            poll.cancel()
        if polls:
            await asyncio.wait(polls)

    async def _poll(self, runtimes: tuple[RuntimeId, ...]) -> None:
        # The reports from before a crash come first, above all which sessions there are; the server ends the rest.
        await self._backlog.delivered(self._limits.backlog)
        ended = await until_answered(
            "ending runs from before",
            lambda: self._plane.end_orphans(OrphansRequest(self._by, runtimes, self._held())),
            self._limits,
        )
        for left in ended:
            _log.info("run %s was left by an earlier daemon: %s", left.run, left.why)
        self.runtimes += runtimes
        while not self._stopped:
            self._dispatch(await until_answered("claiming", lambda: self._claim(runtimes), self._limits))

    async def _claim_now(self) -> None:
        """One claim for all places that became free meanwhile."""
        while self._claim_again:
            self._claim_again = False
            asked = self._request(tuple(self.runtimes))
            if asked.most == 0 or not self.runtimes:
                return
            try:
                claimed = await self._plane.claim(asked)
            except Exception as fault:  # noqa: BLE001 - the long poll asks again, and logs what is wrong
                _log.debug("nothing was claimed: %s", fault)
                continue
            self._dispatch(claimed)
            if claimed.orders:
                # Work is waiting: runs that end in the next moment are followed by one claim for all of them.
                await asyncio.sleep(self._limits.gather)

    def _dispatch(self, claimed: Claimed) -> None:
        for order in claimed.orders:
            self._start(order)
        for run in claimed.news:
            self._on_news(run)

    def _request(self, runtimes: tuple[RuntimeId, ...], wait: float = 0.0) -> ClaimRequest:
        holding = frozenset(each.run for each in self._holding())
        room = max(self._limits.capacity - len(holding), 0)
        return ClaimRequest(self._by, runtimes, room, self._limits.patience, holding, wait)

    async def _claim(self, runtimes: tuple[RuntimeId, ...]) -> Claimed:
        asked = self._request(runtimes, self._limits.poll)
        if asked.most > 0:
            return await self._plane.claim(asked)
        return await self._wait_for_room(asked)

    async def _wait_for_room(self, asked: ClaimRequest) -> Claimed:
        """The daemon is full. No orders are asked for, only news, so the call may be cancelled once there is room."""
        self._room.clear()
        poll = asyncio.ensure_future(self._plane.claim(asked))
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
