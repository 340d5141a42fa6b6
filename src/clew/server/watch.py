"""One client of the live stream: what it has, what is due to it, and when it must read the store itself."""

import asyncio
import logging
import time
from collections.abc import AsyncGenerator, Callable, Iterator, Sequence
from dataclasses import dataclass

from clew import __version__
from clew.control.actor import Actor
from clew.control.logs import read_log
from clew.control.services import Services
from clew.ports.fault import Fault
from clew.protocol.live import BeatView, LogPosition
from clew.protocol.stream_position import write_position
from clew.server.changes import ALL, Changes
from clew.server.event_stream import PADDING, RETRY, event, id_line
from clew.server.feed import Entry, Feed, Head

log = logging.getLogger("clew.server")

BEAT = 10.0
"""Seconds between two beats. Proxies cut connections that are silent for 30."""
CHUNK = 64 * 1024
"""Bytes that are sent at once, unless one event is larger. A client that does not read holds at most two chunks."""
FEWEST, MOST = 8, 200
"""Lines that a client reads from the store at once. How many depends on their size."""
READERS = 4
"""Clients that read the store at once: reads of feeds, which are for all others, need not wait behind hundreds."""


@dataclass(slots=True)
class Source:
    """A feed that the client follows, and how far it has it: until it has caught up, up to `target`."""

    feed: Feed
    views: bool
    position: LogPosition
    text: str
    number: int
    target: Head | None
    page: int = MOST // 4

    def moved(self, position: LogPosition, text: str) -> None:
        self.position, self.text = position, text


class Watcher:
    """`chunks` is its stream. With `changes` it is a page's. Closed by `close`, from whatever side."""

    def __init__(
        self,
        services: Services,
        actor: Actor,
        reads: asyncio.Semaphore,
        changes: Changes | None,
        left: Callable[["Watcher"], None],
    ) -> None:
        self._services, self._actor = services, actor
        self._left = left
        self._reads = reads
        self._changes = changes
        self._change = 0
        self._sources: list[Source] = []
        self._bell = asyncio.Event()
        self._beat_due = False
        self._timer: asyncio.TimerHandle | None = None
        self._open = True

    async def follow(self, feed: Feed, views: bool, position: LogPosition | None) -> None:
        """Without a position: from the first line of each run that has not ended."""
        head = await feed.join(self.ring, views)
        start = head.position.without(head.live) if position is None else position
        text = str(start) or feed.scope.id
        self._sources.append(Source(feed, views, start, text, head.end, head))

    def ring(self) -> None:
        self._bell.set()

    def close(self) -> None:
        self._open = False
        self._bell.set()

    def leave(self) -> None:
        """Let go of all feeds."""
        self._open = False
        self._left(self)
        if self._timer is not None:
            self._timer.cancel()
        if self._changes is not None:
            self._changes.bells.discard(self.ring)
        while self._sources:
            source = self._sources.pop()
            source.feed.leave(self.ring, source.views)

    async def chunks(self) -> AsyncGenerator[bytes]:
        yield RETRY + PADDING + self._beat()
        if self._changes is not None:
            self._changes.bells.add(self.ring)
            self._change = self._changes.end
            yield ALL
        try:
            while self._open and not any(source.feed.failed for source in self._sources):
                self._bell.clear()
                async for chunk in self._round():
                    yield chunk
                await self._bell.wait()
        except Fault as fault:
            # The client reconnects, and gets the fault as an HTTP status.
            log.info("a stream ended: %s [%s]", fault, fault.code)

    async def _round(self) -> AsyncGenerator[bytes]:
        """What is due now, about a chunk of each feed; the bell rings if that is not all."""
        parts = [*self._due()]
        for source in self._sources:
            parts += await self._take(source)
            if sum(map(len, parts)) > CHUNK:
                yield b"".join(parts)
                parts = []
        if parts:
            yield b"".join(parts)

    # ---------------------------------------------------------------- beats and changes

    def _due(self) -> Iterator[bytes]:
        if self._beat_due:
            yield self._beat()
        if self._changes is not None and self._change < self._changes.end:
            yield from self._changes.since(self._change)
            self._change = self._changes.end

    def _beat(self) -> bytes:
        self._beat_due = False
        self._timer = asyncio.get_running_loop().call_later(BEAT, self._beat_is_due)
        return id_line(self._id()) + event("beat", BeatView(time.time(), __version__))

    def _beat_is_due(self) -> None:
        self._beat_due = True
        self._bell.set()

    def _id(self) -> str:
        return write_position(source.text for source in self._sources)

    # ---------------------------------------------------------------- lines and views

    async def _take(self, source: Source) -> Sequence[bytes]:
        """The next events of a feed, at most about a chunk; none if the client has all of them."""
        if source.target is not None:
            return await self._catch_up(source, source.target)
        entries = source.feed.since(source.number)
        if entries is None:
            # It was too slow for the feed: as if it had just connected, at its position.
            source.target = await source.feed.fresh()
            return await self._catch_up(source, source.target)
        return self._sent(source, entries)

    def _sent(self, source: Source, entries: Sequence[Entry]) -> list[bytes]:
        parts, size = list[bytes](), 0
        for entry in entries:
            if size > CHUNK:
                self._bell.set()
                break
            source.number += 1
            if entry.view and not source.views:
                continue
            source.moved(entry.position, entry.text)
            frame = entry.frame if len(self._sources) == 1 else id_line(self._id()) + entry.body
            parts.append(frame)
            size += len(frame)
        return parts

    async def _catch_up(self, source: Source, target: Head) -> list[bytes]:
        """The next lines from the store, up to where the feed goes on; after the last of them the views."""
        parts = list[bytes]()
        if source.position != target.position:
            async with self._reads:
                page = await read_log(
                    self._services, self._actor, source.feed.scope, source.position, target.position, source.page
                )
            for line in page.lines:
                position = source.position.past(line)
                source.moved(position, str(position))
                parts.append(id_line(self._id()) + event("log", line.view))
            size = sum(map(len, parts))
            if page.more:
                self._bell.set()
                source.page = max(FEWEST, min(MOST, len(parts) * CHUNK // size))
                return parts
        source.moved(target.position, target.text)
        source.number, source.target = target.end, None
        self._bell.set()
        if source.views:
            parts += (id_line(self._id()) + view for view in target.views)
        return parts
