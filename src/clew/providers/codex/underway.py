"""Work that a provider has begun: called off when the provider is closed, and none is begun after that."""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, TypeVar

from clew.programs.faults import Refused

T = TypeVar("T")


class Underway:
    def __init__(self) -> None:
        self._tasks: set[asyncio.Task[Any]] = set()
        self._closed = False

    async def do(self, work: Coroutine[Any, Any, T], undo: Callable[[T], Awaitable[None]] | None = None) -> T:
        """To its end, or refused. What was done in the very moment in which it was called off is undone."""
        if self._closed:
            work.close()
            raise _closed()
        task = asyncio.create_task(work)
        self._tasks.add(task)
        try:
            return await task
        except asyncio.CancelledError:
            if undo is not None and task.done() and not task.cancelled() and task.exception() is None:
                await asyncio.shield(undo(task.result()))
            if _called_off() or not self._closed:
                raise
            raise _closed() from None
        finally:
            self._tasks.discard(task)

    async def close(self) -> None:
        self._closed = True
        for task in tuple(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)


def _called_off() -> bool:
    """Whether the one who waits is cancelled, and not only what it waits for."""
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0


def _closed() -> Refused:
    return Refused("This provider is closed.", "Make another.")
