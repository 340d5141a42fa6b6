"""Live events: what changes is told as it does, and a client that comes back misses nothing.

Hints say when to look; what is told is read from the database, so a slow client delays nobody and holds nothing up.
"""

import asyncio
import logging
from collections.abc import AsyncIterator
from typing import Annotated

from fastapi import Header
from fastapi.responses import StreamingResponse

from clew.control.actor import Actor
from clew.control.runs import show_run
from clew.control.services import Services
from clew.control.threads import find_thread
from clew.ports.fault import Fault
from clew.server.asked import Filter, Seq
from clew.server.calls import Calls
from clew.server.faults import TooMany
from clew.server.identity import By
from clew.server.stream import COME_BACK, STILL_HERE, Mark, read_mark
from clew.server.watching import Everything, OneRun, OneThread, Scope, Watch

log = logging.getLogger("clew.server")

MOST = 64
PACE = 0.05
"""Seconds between two looks of one client."""
STILL = 15.0
"""Seconds after which a client that hears nothing is told that it is still heard; and the server looks by itself."""


class Live:
    """All clients that watch."""

    def __init__(self, services: Services) -> None:
        self._services = services
        self._bells: set[asyncio.Event] = set()
        self._open = True

    def close(self) -> None:
        """Every stream ends; the clients come back to whoever serves next."""
        self._open = False
        for bell in self._bells:
            bell.set()

    async def stream(
        self, actor: Actor, thread: str | None, run: str | None, after: int, last: str | None
    ) -> AsyncIterator[bytes]:
        """What is not there is refused before the stream begins."""
        if len(self._bells) >= MOST:
            raise TooMany(f"{MOST} clients watch already.", "Close one of them.")
        mark = None if last is None else read_mark(last)
        scope: Scope
        if run is not None:
            scope = OneRun((await show_run(self._services, actor, run)).id)
            mark = mark or Mark(lines={scope.id: after})
        elif thread is not None:
            scope = OneThread((await find_thread(self._services, actor, thread)).id)
        else:
            scope = Everything()
        return self._told(Watch(self._services, actor, scope, mark))

    async def _told(self, watch: Watch) -> AsyncIterator[bytes]:
        bell = asyncio.Event()

        def hear(topics: frozenset[str]) -> None:
            if watch.concerns(topics):
                bell.set()

        self._bells.add(bell)
        # Listened to before it is looked at: what changes meanwhile is looked at again.
        self._services.hints.listen(hear)
        try:
            yield COME_BACK
            while self._open:
                bell.clear()
                async for piece in watch.news():
                    yield piece
                await asyncio.sleep(PACE)
                if not await _rung(bell):
                    yield STILL_HERE
        except Fault as fault:
            # Whoever comes back is told why, with a status.
            log.info("a stream ended: %s [%s]", fault, fault.code)
        finally:
            self._services.hints.unlisten(hear)
            self._bells.discard(bell)


async def _rung(bell: asyncio.Event) -> bool:
    try:
        async with asyncio.timeout(STILL):
            return await bell.wait()
    except TimeoutError:
        return False


def live(calls: Calls, clients: Live) -> None:
    calls = calls.below("", "live")

    @calls.get(
        "/live",
        response_class=StreamingResponse,
        responses={200: {"content": {"text/event-stream": {"schema": {"type": "string"}}}}},
    )
    async def events(
        by: By,
        thread: Filter = None,
        run: Filter = None,
        after: Seq = 0,
        last_event_id: Annotated[str | None, Header(max_length=8000)] = None,
    ) -> StreamingResponse:
        """Server-sent events: `thread`, `run` and `approval` with their views, now and whenever they change, and `log`
        with the lines of a run's log. Of one thread, of one run (`after` a line of its log), or of everything, which
        is without logs. `Last-Event-ID` goes on where a stream was cut."""
        told = await clients.stream(by, thread, run, after, last_event_id)
        return StreamingResponse(told, media_type="text/event-stream")
