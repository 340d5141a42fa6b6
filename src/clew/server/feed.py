"""The feed of one thread or run: each change is read once and encoded once, for all clients that are up to date."""

import asyncio
import logging
from collections.abc import Callable
from dataclasses import dataclass, field

from clew.control.actor import Actor
from clew.control.logs import log_head, read_log
from clew.control.services import Services
from clew.ports.fault import Fault
from clew.protocol.live import LogPosition, LogRun, LogScope, RunLog, ThreadLog
from clew.protocol.stream_position import write_position
from clew.server.event_stream import event, id_line
from clew.server.ring import Ring
from clew.server.snapshot import Snapshot, Snapshots

log = logging.getLogger("clew.server")

ANYTHING = "*"
"""The topic that means: hints were lost, read everything."""

PACE = 0.05
"""Seconds from the begin of one read to the next."""
POLL = 10.0
"""After this many seconds without a hint the store is read anyway: a hint may be lost."""
PAGE = 64
"""Lines of one read."""

Bell = Callable[[], None]


@dataclass(frozen=True, slots=True)
class Entry:
    """One event for all clients: `frame` is complete for a client with this feed alone, and its `id` takes the first
    `after_id` bytes. `position` and `text` are the feed's after it."""

    frame: bytes
    after_id: int
    position: LogPosition
    text: str
    view: bool = False

    @property
    def body(self) -> bytes:
        return self.frame[self.after_id :]


@dataclass(frozen=True, slots=True)
class Head:
    """The end of the feed at one moment: the number of the next entry, the position before it, the views as they are
    there, and the numbers of the runs that had not ended."""

    end: int
    position: LogPosition
    text: str
    views: tuple[bytes, ...] = ()
    live: frozenset[int] = frozenset()


@dataclass(slots=True)
class _Readers:
    """The bells of those who follow the feed, and how many of them want views."""

    bells: set[Bell] = field(default_factory=set)
    viewers: int = 0
    joining: list["asyncio.Future[None]"] = field(default_factory=list)
    """Wait for a read that begins after they came."""


class Feed:
    """Runs from its first client to its last. `ended` is called once, when no client is left or a read failed."""

    def __init__(self, services: Services, actor: Actor, scope: LogScope, ended: Callable[["Feed"], None]) -> None:
        self._services, self._actor, self.scope = services, actor, scope
        self._ended = ended
        self._snapshots = Snapshots(scope)
        self._seen: Snapshot = {}
        self._views: dict[tuple[str, str], bytes] = {}
        self._position: LogPosition | None = None
        self._text = ""
        self._runs: tuple[LogRun, ...] = ()
        self._ring: Ring[Entry] = Ring()
        self._readers = _Readers()
        self._hinted = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self._fault: Exception | None = None

    # ---------------------------------------------------------------- for clients

    @property
    def failed(self) -> bool:
        """Nothing more will come."""
        return self._fault is not None

    async def join(self, bell: Bell, views: bool) -> Head:
        """From now on the bell rings at every new entry, until `leave`. The head is of a read that began now."""
        self._readers.bells.add(bell)
        self._readers.viewers += views
        self._task = self._task or asyncio.create_task(self._follow(), name=f"feed of {self.scope.id}")
        try:
            return await self.fresh()
        except BaseException:
            self.leave(bell, views)
            raise

    def leave(self, bell: Bell, views: bool) -> None:
        self._readers.bells.remove(bell)
        self._readers.viewers -= views
        if not self._readers.bells and self._task is not None:
            self._task.cancel()
            self._ended(self)

    async def fresh(self) -> Head:
        """The head after a read that began now: it is behind no client, whichever server that was connected to."""
        if self._fault is not None:
            raise self._fault
        read = asyncio.get_running_loop().create_future()
        self._readers.joining.append(read)
        self._hinted.set()
        await read
        assert self._position is not None
        live = frozenset(run.number for run in self._runs if not run.ended)
        return Head(self._ring.end, self._position, self._text, tuple(self._views.values()), live)

    def since(self, number: int) -> list[Entry] | None:
        """The entries from that number on; None if some are gone: the client must read the store."""
        return self._ring.since(number)

    # ---------------------------------------------------------------- hints

    def hear(self, topics: frozenset[str]) -> None:
        if not topics.isdisjoint(self._topics()):
            self._hinted.set()

    def _topics(self) -> set[str]:
        topics = {ANYTHING, *(f"run:{run.id}" for run in self._runs)}
        match self.scope:
            case ThreadLog(thread):
                shown = (key for kind, key in self._views if kind == "run")
                return topics | {f"thread:{thread}", *(f"run:{run}" for run in shown)}
            case RunLog(run):
                return topics | {f"run:{run}"}

    # ---------------------------------------------------------------- the one reader

    async def _follow(self) -> None:
        loop = asyncio.get_running_loop()
        try:
            while True:
                # Cleared before the read: a change during it triggers another.
                self._hinted.clear()
                began, joined = loop.time(), len(self._readers.joining)
                await self._read()
                for each in self._readers.joining[:joined]:
                    if not each.done():
                        each.set_result(None)
                del self._readers.joining[:joined]
                await asyncio.sleep(began + PACE - loop.time())
                await self._hint_or_poll()
        except Exception as fault:  # noqa: BLE001 - a feed that cannot read ends all streams that depend on it
            self._fail(fault)

    def _fail(self, fault: Exception) -> None:
        """Clients reconnect, and get the fault as an HTTP status."""
        if isinstance(fault, Fault):
            log.info("the streams of %s ended: %s [%s]", self.scope.id, fault, fault.code)
        else:
            log.error("the streams of %s ended", self.scope.id, exc_info=fault)
        self._fault = fault
        self._ended(self)
        for each in self._readers.joining:
            if not each.done():
                each.set_exception(fault)
        self._ring_bells()

    async def _hint_or_poll(self) -> None:
        try:
            async with asyncio.timeout(POLL):
                await self._hinted.wait()
        except TimeoutError:
            self._ring.expire()

    async def _read(self) -> None:
        """Views are read before lines and published after them: when a view says that a run ended, all lines that it
        had then were published."""
        seen = await self._snapshots.read(self._services, self._actor) if self._readers.viewers else None
        if self._position is None:
            head = await log_head(self._services, self._actor, self.scope)
            self._runs = head.runs
            self._move(head.position)
        else:
            await self._read_lines(self._position)
        if seen is not None:
            self._publish_views(seen)

    async def _read_lines(self, position: LogPosition) -> None:
        more = True
        while more:
            page = await read_log(self._services, self._actor, self.scope, position, None, PAGE)
            self._runs, more = page.runs, page.more
            for line in page.lines:
                position = position.past(line)
                self._move(position)
                self._publish(event("log", line.view), view=False)
            if page.lines:
                self._ring_bells()

    def _publish_views(self, seen: Snapshot) -> None:
        before, self._seen = self._seen, seen
        # Replaced, never changed: clients send the views of the head that they started from.
        views = {key: frame for key, frame in self._views.items() if key in seen}
        changed = [(key, view) for key, view in seen.items() if before.get(key) != view]
        for key, view in changed:
            views[key] = self._publish(event(key[0], view), view=True)
        self._views = {key: views[key] for key in seen}
        if changed:
            self._ring_bells()

    def _move(self, position: LogPosition) -> None:
        self._position, self._text = position, str(position) or self.scope.id

    def _publish(self, body: bytes, view: bool) -> bytes:
        assert self._position is not None
        head = id_line(write_position((self._text,)))
        self._ring.append(Entry(head + body, len(head), self._position, self._text, view), len(head) + len(body))
        return body

    def _ring_bells(self) -> None:
        for bell in self._readers.bells:
            bell()
