"""Which threads and runs have changed, for every open page: made from hints alone, without reading the store."""

import asyncio
from collections.abc import Callable

from clew.protocol.live import ChangedView
from clew.server.event_stream import event
from clew.server.feed import ANYTHING, PACE
from clew.server.ring import Ring

_THREAD, _RUN = "thread:", "run:"
_MOST = 200
"""With more ids than this, a page is told to read anew all that it shows."""

_LINGER = 0.01
"""Seconds. Lines take a read, and should not wait behind a notice to every page."""

ALL = event("changed", ChangedView(all=True))


class Changes:
    """The first hint after a silence is passed on soon, those within `PACE` of it together."""

    def __init__(self) -> None:
        self._ring: Ring[bytes] = Ring()
        self._heard: set[str] = set()
        self._told_at = float("-inf")
        self._timer: asyncio.TimerHandle | None = None
        self.bells: set[Callable[[], None]] = set()

    @property
    def end(self) -> int:
        return self._ring.end

    def since(self, number: int) -> list[bytes]:
        """The events from that number on. A client that is too late for them reads everything anew."""
        events = self._ring.since(number)
        return [ALL] if events is None else events

    def hear(self, topics: frozenset[str]) -> None:
        heard = {topic for topic in topics if topic.startswith((_THREAD, _RUN, ANYTHING))}
        if not heard or not self.bells:
            return
        self._heard |= heard
        if self._timer is None:
            loop = asyncio.get_running_loop()
            self._timer = loop.call_at(max(loop.time() + _LINGER, self._told_at + PACE), self._tell)

    def close(self) -> None:
        if self._timer is not None:
            self._timer.cancel()

    def _tell(self) -> None:
        heard, self._heard, self._timer = self._heard, set(), None
        self._told_at = asyncio.get_running_loop().time()
        frame = event("changed", _view(heard))
        self._ring.append(frame, len(frame))
        for bell in self.bells:
            bell()


def _view(heard: set[str]) -> ChangedView:
    if ANYTHING in heard or len(heard) > _MOST:
        return ChangedView(all=True)
    return ChangedView(_ids(heard, _THREAD), _ids(heard, _RUN))


def _ids(heard: set[str], prefix: str) -> tuple[str, ...]:
    return tuple(sorted(topic.removeprefix(prefix) for topic in heard if topic.startswith(prefix)))
