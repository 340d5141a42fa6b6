"""Live events over server-sent events. A client that reconnects misses nothing.

A hint says when to read; the events are read from the database, so a slow client blocks nobody.
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
from clew.server.problems import TooMany
from clew.server.router import By, Filter, Routes, Seq
from clew.server.watch import (
    KEEP_ALIVE,
    RETRY,
    Everything,
    OneRun,
    OneThread,
    Scope,
    StreamPosition,
    Watch,
    read_position,
)

log = logging.getLogger("clew.server")

MAX_CLIENTS = 64
PACE = 0.05
"""Seconds between two reads for one client."""
KEEP_ALIVE_SECONDS = 15.0
"""After this long without a hint, a keep-alive is sent and the database is read anyway."""


class Live:
    """All connected clients."""

    def __init__(self, services: Services) -> None:
        self._services = services
        self._bells: set[asyncio.Event] = set()
        self._open = True

    def close(self) -> None:
        """Ends every stream; clients reconnect to the next server."""
        self._open = False
        for bell in self._bells:
            bell.set()

    async def stream(
        self, actor: Actor, thread: str | None, run: str | None, after: int, last: str | None
    ) -> AsyncIterator[bytes]:
        """An unknown thread or run is refused before the stream starts."""
        if len(self._bells) >= MAX_CLIENTS:
            raise TooMany(f"{MAX_CLIENTS} clients are connected already.", "Close one of them.")
        position = None if last is None else read_position(last)
        scope: Scope
        if run is not None:
            scope = OneRun((await show_run(self._services, actor, run)).id)
            position = position or StreamPosition(lines={scope.id: after})
        elif thread is not None:
            scope = OneThread((await find_thread(self._services, actor, thread)).id)
        else:
            scope = Everything()
        return self._events(Watch(self._services, actor, scope, position))

    async def _events(self, watch: Watch) -> AsyncIterator[bytes]:
        bell = asyncio.Event()

        def on_hint(topics: frozenset[str]) -> None:
            if watch.concerns(topics):
                bell.set()

        self._bells.add(bell)
        # Listen before the first read: a change during the read triggers another.
        self._services.hints.listen(on_hint)
        try:
            yield RETRY
            while self._open:
                bell.clear()
                async for piece in watch.changes():
                    yield piece
                await asyncio.sleep(PACE)
                if not await _rang(bell):
                    yield KEEP_ALIVE
        except Fault as fault:
            # The client reconnects, and gets the fault as an HTTP status.
            log.info("a stream ended: %s [%s]", fault, fault.code)
        finally:
            self._services.hints.unlisten(on_hint)
            self._bells.discard(bell)


async def _rang(bell: asyncio.Event) -> bool:
    try:
        async with asyncio.timeout(KEEP_ALIVE_SECONDS):
            return await bell.wait()
    except TimeoutError:
        return False


def live(routes: Routes, clients: Live) -> None:
    routes = routes.below("", "live")

    @routes.get(
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
        """Server-sent events: `thread`, `run` and `approval` carry a view, first as it is now and then after every
        change; `log` carries a line of a run's log. Pass `thread`, or `run` (with `after`, only log lines after that
        one), or neither for everything, without logs. `Last-Event-ID` resumes a stream that was cut."""
        stream = await clients.stream(by, thread, run, after, last_event_id)
        return StreamingResponse(stream, media_type="text/event-stream")
