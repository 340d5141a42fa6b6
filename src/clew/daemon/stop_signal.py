"""The stop signal of a run: it is cancelled, its lease is lost, or the daemon shuts down."""

import asyncio
from collections.abc import Callable, Coroutine
from enum import StrEnum
from typing import Any, TypeVar

from clew.ports.fault import Fault

T = TypeVar("T")
Undo = Callable[[T], Coroutine[Any, Any, None]]


class StopCause(StrEnum):
    CANCEL = "cancel"
    """The server wants the run to end."""
    SHUTDOWN = "shutdown"
    """The daemon stops."""
    LOST = "lost"
    """Another attempt holds the run: this one reports nothing more."""


class RunStopped(Exception):
    """A step was abandoned because the stop signal is set."""


class TooLong(Fault):
    code = "daemon:too-long"


class BrokeOff(Fault):
    code = "daemon:broke-off"


class StopSignal:
    """The first cause counts, except that LOST replaces any other."""

    def __init__(self) -> None:
        self.cause: StopCause | None = None
        self.words = ""
        self._listeners: set[Callable[[], None]] = set()

    def set(self, cause: StopCause, words: str = "") -> None:
        if self.cause is not None and (cause is not StopCause.LOST or self.cause is StopCause.LOST):
            return
        self.cause, self.words = cause, words
        for listener in list(self._listeners):
            listener()

    def listen(self, listener: Callable[[], None]) -> None:
        self._listeners.add(listener)

    def unlisten(self, listener: Callable[[], None]) -> None:
        self._listeners.discard(listener)

    def check(self) -> None:
        if self.cause is not None:
            raise RunStopped

    async def within(
        self, what: str, seconds: float, grace: float, work: Coroutine[Any, Any, T], undo: Undo[T] | None = None
    ) -> T:
        """The result of a step. Raises TooLong after so many seconds, and RunStopped when the signal is set.

        An abandoned step is cancelled and has `grace` seconds to clean up; if it produced a result all the same, that
        is undone. A step that does not even end then is left behind, and nothing waits for it.
        """
        if self.cause is not None:
            work.close()
            raise RunStopped
        task = asyncio.ensure_future(work)
        stopped: asyncio.Future[None] = asyncio.get_running_loop().create_future()

        def stop() -> None:
            if not stopped.done():
                stopped.set_result(None)

        self.listen(stop)
        try:
            await asyncio.wait((task, stopped), timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
        except asyncio.CancelledError:
            await _abandon(task, grace, undo)
            raise
        finally:
            self.unlisten(stop)
            stopped.cancel()
        if task.done():
            if task.cancelled():
                # The step cancelled itself: this task was not cancelled, so CancelledError must not leave here.
                raise BrokeOff(f"The {what} was cancelled from within.", "It is tried again.")
            return task.result()
        await _abandon(task, grace, undo)
        self.check()
        raise TooLong(f"The {what} took more than {seconds:g} s.", "It is tried again.")


async def _abandon(task: "asyncio.Task[T]", grace: float, undo: Undo[T] | None) -> None:
    task.cancel()
    await asyncio.wait((task,), timeout=grace)
    if not task.done():
        task.add_done_callback(lambda late: _undo_late(late, undo))
    elif (made := _result_of(task)) is not None and undo is not None:
        await undo(made)


_undoing: set[asyncio.Task[None]] = set()
"""asyncio itself keeps only weak references to tasks."""


def _undo_late(task: "asyncio.Task[T]", undo: Undo[T] | None) -> None:
    made = _result_of(task)
    if made is not None and undo is not None:
        undone = asyncio.ensure_future(undo(made))
        _undoing.add(undone)
        undone.add_done_callback(_undoing.discard)


def _result_of(task: "asyncio.Task[T]") -> T | None:
    return None if task.cancelled() or task.exception() is not None else task.result()
