"""Asyncio tasks of a provider, and what happens to each when its caller is cancelled."""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, TypeVar

from clew.programs.faults import HomeFailed, Refused

T = TypeVar("T")
U = TypeVar("U")


async def in_thread(work: Callable[[], T], agent: str, undo: Callable[[T], None] | None = None) -> T:
    """Run work on the files of an agent's home in a thread. An OSError is raised as `HomeFailed`.

    Cancelling the caller does not stop the thread: its result is passed to `undo` when it is there.
    """
    working = asyncio.ensure_future(asyncio.to_thread(work))
    try:
        return await asyncio.shield(working)
    except asyncio.CancelledError:
        working.add_done_callback(lambda done: _undo(done, undo))
        raise
    except OSError as error:
        raise HomeFailed.because(agent, error) from error


def _undo(done: "asyncio.Future[T]", undo: Callable[[T], None] | None) -> None:
    if not done.cancelled() and done.exception() is None and undo is not None:
        undo(done.result())


async def gather_or_cancel(one: Coroutine[Any, Any, T], other: Coroutine[Any, Any, U]) -> tuple[T, U]:
    """Run two coroutines at once. When one fails, or the caller is cancelled, the other is cancelled and awaited."""
    try:
        async with asyncio.TaskGroup() as group:
            first, second = group.create_task(one), group.create_task(other)
    except BaseExceptionGroup as group_fault:
        # Callers expect the fault itself, not a group of one.
        raise group_fault.exceptions[0] from None
    return first.result(), second.result()


async def run_to_end(work: Coroutine[Any, Any, None]) -> None:
    """Finish `work` even if the caller is cancelled again. For short cleanups after a cancellation."""
    task = asyncio.ensure_future(work)
    while not task.done():
        with contextlib.suppress(asyncio.CancelledError):
            await asyncio.shield(task)


def cancelled_from_outside() -> bool:
    """Whether the current task itself was cancelled, not only the task that it awaits."""
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0


class TaskSet:
    """Keeps a reference to each started task until it is done: asyncio itself keeps none, and could drop the task."""

    def __init__(self) -> None:
        self._tasks: set[asyncio.Task[Any]] = set()

    def start(self, work: Coroutine[Any, Any, object]) -> None:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)


class ProviderTasks:
    """The work that a provider has begun. `close` cancels it, and no work is begun after that."""

    def __init__(self) -> None:
        self._tasks: set[asyncio.Task[Any]] = set()
        self._closed = asyncio.Event()

    async def run(self, work: Coroutine[Any, Any, T], undo: Callable[[T], Awaitable[None]] | None = None) -> T:
        """Run `work` to its end. If it finishes in the moment in which it is cancelled, its result goes to `undo`."""
        if self._closed.is_set():
            work.close()
            raise closed_provider()
        task = asyncio.create_task(work)
        self._tasks.add(task)
        try:
            result = await task
        except asyncio.CancelledError:
            if undo is not None and task.done() and not task.cancelled() and task.exception() is None:
                await asyncio.shield(undo(task.result()))
            if cancelled_from_outside() or not self._closed.is_set():
                raise
            raise closed_provider() from None
        finally:
            self._tasks.discard(task)
        if self._closed.is_set() and undo is not None:
            # Closed in the moment in which it was done.
            await undo(result)
            raise closed_provider()
        return result

    async def close(self) -> None:
        self._closed.set()
        for task in tuple(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)


def closed_provider() -> Refused:
    return Refused("This provider is closed.", "Make another.")
