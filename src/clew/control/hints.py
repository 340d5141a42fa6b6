"""Hints of changes: one thread reads those of the database and passes them to the listeners in the event loop."""

import asyncio
import contextlib
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from clew.store.engine.database import Database
from clew.store.engine.hints import ANYTHING, Subscription, Topics

Listener = Callable[[Topics], None]

_A_WHILE = 3600.0
_CLOSING = frozenset({"closing"})


class Watch:
    """Collects the hints about some topics until the next wait()."""

    def __init__(self, topics: Topics | None) -> None:
        self._wanted = topics
        self._heard: set[str] = set()
        self._bell = asyncio.Event()

    def hear(self, topics: Topics) -> None:
        mine = topics if self._wanted is None else topics & (self._wanted | ANYTHING)
        if mine:
            self._heard |= mine
            self._bell.set()

    def add(self, topics: Topics) -> None:
        """Wait for these topics too."""
        if self._wanted is not None:
            self._wanted |= topics

    async def wait(self, seconds: float) -> Topics:
        """The hinted topics, as soon as there are any; none when the time is over. Poll then: a hint may be lost."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(max(0.0, seconds)):
                await self._bell.wait()
        self._bell.clear()
        heard, self._heard = frozenset(self._heard), set()
        return heard


class Hints:
    """The hints of one database, for one event loop. The thread starts with the first listener."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._listeners: list[Listener] = []
        self._thread: threading.Thread | None = None
        self._reader: Subscription | None = None

    def listen(self, listener: Listener) -> None:
        """Call it in the event loop with the topics of every hint."""
        self._listeners.append(listener)
        if self._thread is None:
            self._reader = self._database.subscribe()
            called = (self._reader, asyncio.get_running_loop())
            self._thread = threading.Thread(target=self._serve, args=called, name="clew-hints", daemon=True)
            self._thread.start()

    def unlisten(self, listener: Listener) -> None:
        self._listeners = [each for each in self._listeners if each != listener]

    @contextmanager
    def watch(self, topics: Topics | None = None) -> Iterator[Watch]:
        """Wait for these topics, or for any."""
        watch = Watch(topics)
        self.listen(watch.hear)
        try:
            yield watch
        finally:
            self.unlisten(watch.hear)

    async def close(self) -> None:
        if self._thread is None or self._reader is None:
            return
        self._database.unsubscribe(self._reader)
        self._reader.put(_CLOSING)
        await asyncio.to_thread(self._thread.join)

    def _serve(self, reader: Subscription, loop: asyncio.AbstractEventLoop) -> None:
        while not (topics := reader.wait(_A_WHILE)) >= _CLOSING:
            if topics:
                try:
                    loop.call_soon_threadsafe(self._tell, topics)
                except RuntimeError:
                    # The loop is closed: no listener is left.
                    return

    def _tell(self, topics: Topics) -> None:
        for listener in list(self._listeners):
            listener(topics)
