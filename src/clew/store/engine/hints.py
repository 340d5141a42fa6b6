"""Hints that something changed, sent soon and at a limited rate. They are never the truth: readers also poll now and
then, so a lost hint costs time and nothing else."""

import math
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from sqlalchemy import Connection

from clew.kernel import RunId, RuntimeId, ThreadId

PACE = 0.05
"""Seconds between two hints of one kind from one server. What changes meanwhile is sent together."""

LINGER = 0.002
"""Seconds before a hint goes to other servers: the daemon it is for is usually connected to this one, and should not
share the processor with the sending."""

Topics = frozenset[str]

ANYTHING: Topics = frozenset({"*"})
"""The hint to send when it is unknown what changed."""

_KEPT = "clew-hints"
_QUEUE = "queue:"
_NEWS = "news:"


def hint_queue(connection: Connection, runtime: RuntimeId | None) -> None:
    """A run is queued for that runtime."""
    _hint(connection, f"{_QUEUE}{runtime or ''}")


def hint_thread(connection: Connection, thread: ThreadId) -> None:
    _hint(connection, f"thread:{thread}")


def hint_run(connection: Connection, run: RunId) -> None:
    _hint(connection, f"run:{run}")


def hint_news(connection: Connection, run: RunId) -> None:
    """The daemon of a live run has something to read: a stop, an answer to an approval, or a message to steer with."""
    _hint(connection, f"{_NEWS}{run}")


def hint_anything(connection: Connection) -> None:
    """An earlier hint may have been lost together with the answer to its transaction."""
    for topic in ANYTHING:
        _hint(connection, topic)


def _hint(connection: Connection, topic: str) -> None:
    # Collected beside the connection until its transaction is committed: no hint of what did not happen.
    connection.info.setdefault(_KEPT, set()).add(topic)


def pop_hints(connection: Connection) -> Topics:
    """The hints of the transaction that ended; the next one starts without any."""
    return frozenset(connection.info.pop(_KEPT, ()))


@dataclass(slots=True)
class Subscription:
    """One reader's hints since it last waited."""

    _bell: threading.Condition
    _topics: set[str] = field(default_factory=set)

    def wait(self, seconds: float) -> Topics:
        """The hints, as soon as there is one; none when the time is over: then poll all the same."""
        with self._bell:
            self._bell.wait_for(lambda: bool(self._topics), seconds)
            topics, self._topics = frozenset(self._topics), set()
            return topics

    def put(self, topics: Topics) -> None:
        with self._bell:
            self._topics |= topics
            self._bell.notify_all()


class Board:
    """Distributes hints to all readers of this process."""

    def __init__(self) -> None:
        self._readers: list[Subscription] = []
        self._gate = threading.Lock()

    def subscribe(self) -> Subscription:
        reader = Subscription(threading.Condition())
        with self._gate:
            self._readers.append(reader)
        return reader

    def unsubscribe(self, reader: Subscription) -> None:
        with self._gate:
            self._readers = [each for each in self._readers if each is not reader]

    def put(self, topics: Topics) -> None:
        with self._gate:
            readers = list(self._readers)
        for reader in readers:
            reader.put(topics)


class Pacer:
    """Sends hints on: the first of each kind at once, and those that come within `pace` of it together.

    Kinds do not wait for each other: a hint of work must not wait because a page was just told of something else.
    With `linger`, "at once" is that many seconds later.
    """

    def __init__(self, send: Callable[[Topics], None], pace: float = PACE, linger: float = 0.0) -> None:
        self._send = send
        self._pace, self._linger = pace, linger
        self._waiting: dict[str, set[str]] = {}
        self._came_at: dict[str, float] = {}
        self._told_at: dict[str, float] = {}
        self._bell = threading.Condition()
        self._open = True
        self._thread = threading.Thread(target=self._serve, name="clew-hints", daemon=True)
        self._thread.start()

    def put(self, topics: Topics) -> None:
        with self._bell:
            known = len(self._waiting)
            for topic in topics:
                kind = _kind(topic)
                if kind not in self._waiting:
                    self._waiting[kind], self._came_at[kind] = set(), time.monotonic()
                self._waiting[kind].add(topic)
            # For a kind that already waits the thread has computed when to wake up.
            if len(self._waiting) != known:
                self._bell.notify()

    def close(self) -> None:
        with self._bell:
            self._open = False
            self._bell.notify()
        self._thread.join()

    def _serve(self) -> None:
        while topics := self._next():
            self._send(topics)

    def _next(self) -> Topics:
        """The hints that are due, as soon as there are any; none when the pacer is closed and all were sent."""
        with self._bell:
            while not (due := self._due()) and (self._open or self._waiting):
                self._bell.wait(self._until_due())
            return due

    def _due(self) -> Topics:
        now = time.monotonic()
        kinds = [kind for kind in self._waiting if now >= self._due_at(kind)]
        self._told_at.update((kind, now) for kind in kinds)
        return frozenset(topic for kind in kinds for topic in self._waiting.pop(kind))

    def _until_due(self) -> float | None:
        """Seconds until the next kind is due; None when none waits."""
        if not self._waiting:
            return None
        return max(0.0, min(map(self._due_at, self._waiting)) - time.monotonic())

    def _due_at(self, kind: str) -> float:
        return max(self._came_at[kind] + self._linger, self._told_at.get(kind, -math.inf) + self._pace)


def work(topics: Topics) -> Topics:
    """The topics that are for daemons: a run is queued, or a live one has news. They are distributed in this process at
    once, unpaced: a waiting daemon is one reader, and asks once however many hints it gets meanwhile."""
    return frozenset(topic for topic in topics if topic.startswith((_QUEUE, _NEWS)))


def _kind(topic: str) -> str:
    return _QUEUE if topic.startswith((_QUEUE, _NEWS)) else ""
