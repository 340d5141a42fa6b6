"""Live events over server-sent events. A client that reconnects misses nothing, and a slow one blocks nobody.

A hint says when to read. All clients of a thread or a run share one feed of it; a client that is behind reads the store
itself, up to where its feed goes on.
"""

import asyncio
from collections.abc import Mapping, Sequence
from typing import Annotated

from fastapi import Header, Query
from fastapi.responses import StreamingResponse
from pydantic import StringConstraints

from clew.control.actor import Actor
from clew.control.faults import BadRequest
from clew.control.logs import log_head, positions_of
from clew.control.runs import show_run
from clew.control.services import Services
from clew.control.threads import find_threads
from clew.protocol.live import LogPosition, LogScope, RunLog, ThreadLog
from clew.protocol.stream_position import LONGEST, StreamPosition, read_position
from clew.server.changes import Changes
from clew.server.event_stream import EventStream
from clew.server.feed import Feed
from clew.server.router import MAX_LENGTH, By, Filter, Routes, Seq
from clew.server.watch import READERS, Watcher

_Scopes = Mapping[LogScope, LogPosition | None]
_Name = Annotated[str, StringConstraints(min_length=1, max_length=MAX_LENGTH)]


class Live:
    """All connected clients, and the feeds that they share."""

    def __init__(self, services: Services) -> None:
        self._services = services
        self._feeds: dict[tuple[Actor, LogScope], Feed] = {}
        self._changes = Changes()
        self._watchers: set[Watcher] = set()
        self._reads = asyncio.Semaphore(READERS)
        self._listens = False
        self._open = True

    def close(self) -> None:
        """Ends every stream; clients reconnect to the next server."""
        self._open = False
        self._services.hints.unlisten(self._hear)
        self._changes.close()
        for watcher in self._watchers:
            watcher.close()

    async def thread(self, actor: Actor, thread: str, last: StreamPosition | None) -> Watcher:
        """The lines and views of one thread. An unknown one is refused before the stream starts."""
        scopes = await self._threads(actor, [thread], last)
        return await self._watch(actor, None, scopes, views=True)

    async def run(self, actor: Actor, run: str, after: int, last: StreamPosition | None) -> Watcher:
        """The lines of one run after a given one, and its views."""
        scope = RunLog((await show_run(self._services, actor, run)).id)
        (known,) = (await log_head(self._services, actor, scope)).runs
        line = after if last is None else last.lines.get(known.number, after)
        position = LogPosition({known.lane: {known.number: line}})
        return await self._watch(actor, None, {scope: position}, views=True)

    async def page(self, actor: Actor, follow: Sequence[str], last: StreamPosition | None) -> Watcher:
        """What has changed anywhere, and the lines of the threads that the page shows."""
        scopes = await self._threads(actor, follow, last)
        return await self._watch(actor, self._changes, scopes, views=False)

    async def _threads(self, actor: Actor, refs: Sequence[str], last: StreamPosition | None) -> _Scopes:
        """These threads, each with the client's position in it; None for one that is new to the client."""
        found = await find_threads(self._services, actor, refs) if refs else ()
        if last is None or not found:
            return {ThreadLog(thread): None for thread in found}
        known = await positions_of(self._services, actor, last.lines)
        listed = {**{thread: LogPosition() for thread in last.threads}, **known}
        return {ThreadLog(thread): listed.get(thread) for thread in found}

    async def _watch(self, actor: Actor, changes: Changes | None, scopes: _Scopes, views: bool) -> Watcher:
        watcher = Watcher(self._services, actor, self._reads, changes, self._watchers.discard)
        self._watchers.add(watcher)
        # Before the first read: a change during the read triggers another.
        self._listen()
        try:
            async with asyncio.TaskGroup() as group:
                for scope, position in scopes.items():
                    group.create_task(watcher.follow(self._feed(actor, scope), views, position))
        except BaseException as fault:
            watcher.leave()
            if isinstance(fault, BaseExceptionGroup):
                raise fault.exceptions[0] from None
            raise
        if not self._open:
            watcher.close()
        return watcher

    def _feed(self, actor: Actor, scope: LogScope) -> Feed:
        key = (actor, scope)
        if key not in self._feeds:
            self._feeds[key] = Feed(self._services, actor, scope, lambda feed: self._forget(key, feed))
        return self._feeds[key]

    def _forget(self, key: tuple[Actor, LogScope], feed: Feed) -> None:
        if self._feeds.get(key) is feed:
            del self._feeds[key]

    def _listen(self) -> None:
        if not self._listens and self._open:
            self._listens = True
            self._services.hints.listen(self._hear)

    def _hear(self, topics: frozenset[str]) -> None:
        self._changes.hear(topics)
        for feed in list(self._feeds.values()):
            feed.hear(topics)


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
        follow: Annotated[list[_Name], Query()] = [],  # noqa: B006 - FastAPI copies it
        position: Annotated[str | None, Query(max_length=LONGEST)] = None,
        last_event_id: Annotated[str | None, Header(max_length=LONGEST)] = None,
    ) -> StreamingResponse:
        """Server-sent events. For a page, with any number of threads to `follow`: `changed` names what has changed
        anywhere, and `log` carries the lines of the followed threads. For one `thread`, or one `run` (with `after`,
        only log lines after that one): `log`, and `thread`, `run` and `approval` with a view, first as it is now and
        then after every change. `beat` comes first, and then every 10 seconds. `Last-Event-ID` resumes a stream that
        was cut; `position` is the same for a client that cannot send the header, which goes first."""
        if sum((thread is not None, run is not None, bool(follow))) > 1:
            words = "Of `thread`, `run` and `follow` a stream takes one."
            raise BadRequest(words, "Use `follow` for a page, and a stream for each of the others.")
        given = last_event_id or position
        last = None if given is None else read_position(given)
        if run is not None:
            watcher = await clients.run(by, run, after, last)
        elif thread is not None:
            watcher = await clients.thread(by, thread, last)
        else:
            watcher = await clients.page(by, follow, last)
        return EventStream(watcher)
