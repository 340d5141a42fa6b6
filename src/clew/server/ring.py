"""The newest items of a feed, for all its readers. A reader keeps nothing but the number of its next item."""

import time
from collections import deque
from collections.abc import Callable
from itertools import islice
from typing import Generic, TypeVar

Item = TypeVar("Item")

LONGEST = 1024
LARGEST = 1024 * 1024
"""Bytes."""
OLDEST = 5.0
"""Seconds. Readers that keep up have an item after some milliseconds."""


class Ring(Generic[Item]):
    """An item leaves it when it is old, or when there are too many. Its memory does not depend on its readers."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._items: deque[tuple[float, int, Item]] = deque()
        self._bytes = 0
        self.end = 0
        """The number that the next item gets."""

    def append(self, item: Item, size: int) -> None:
        self._items.append((self._clock(), size, item))
        self._bytes += size
        self.end += 1
        self.expire()

    def expire(self) -> None:
        too_old = self._clock() - OLDEST
        while self._items and (self._items[0][0] < too_old or len(self._items) > LONGEST or self._bytes > LARGEST):
            self._bytes -= self._items.popleft()[1]

    def since(self, number: int) -> list[Item] | None:
        """The items from that number on; None if the first of them is gone."""
        missing = self.end - number
        if missing > len(self._items):
            return None
        # From the end, where most readers are.
        return [item for _, _, item in islice(reversed(self._items), missing)][::-1]
