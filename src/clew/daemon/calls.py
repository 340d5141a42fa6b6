"""What reaches a run from outside while it is served: it is stopped, it is lost, or the daemon goes."""

import asyncio
from collections.abc import Callable, Coroutine
from enum import StrEnum
from typing import Any, TypeVar

from clew.ports.fault import Fault

T = TypeVar("T")
Undo = Callable[[T], Coroutine[Any, Any, None]]


class Call(StrEnum):
    STOP = "stop"
    """The server says that it is to end."""
    CLOSE = "close"
    """The daemon is to end."""
    LOST = "lost"
    """Another holds it: nothing more is said of it."""


class CalledOff(Exception):
    """A wait that ended because of a call."""


class TooLong(Fault):
    code = "daemon:too-long"


class BrokeOff(Fault):
    code = "daemon:broke-off"


class Calls:
    """The first call counts; that the run is lost outweighs all others."""

    def __init__(self) -> None:
        self.call: Call | None = None
        self.words = ""
        self._listeners: set[Callable[[], None]] = set()

    def make(self, call: Call, words: str = "") -> None:
        if self.call is not None and (call is not Call.LOST or self.call is Call.LOST):
            return
        self.call, self.words = call, words
        for listener in list(self._listeners):
            listener()

    def listen(self, listener: Callable[[], None]) -> None:
        self._listeners.add(listener)

    def leave(self, listener: Callable[[], None]) -> None:
        self._listeners.discard(listener)

    def check(self) -> None:
        if self.call is not None:
            raise CalledOff

    async def within(
        self, what: str, seconds: float, grace: float, work: Coroutine[Any, Any, T], undo: Undo[T] | None = None
    ) -> T:
        """The result of a step, or the deadline's fault, or that it was called off. What came of it all the same is
        undone; what does not even end when it is called off is left behind and keeps nobody."""
        if self.call is not None:
            work.close()
            raise CalledOff
        task = asyncio.ensure_future(work)
        called: asyncio.Future[None] = asyncio.get_running_loop().create_future()

        def hear() -> None:
            if not called.done():
                called.set_result(None)

        self.listen(hear)
        try:
            await asyncio.wait((task, called), timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
        except asyncio.CancelledError:
            await _call_off(task, grace, undo)
            raise
        finally:
            self.leave(hear)
            called.cancel()
        if task.done():
            if task.cancelled():
                # Its own doing: we are not the ones who are called off.
                raise BrokeOff(f"The {what} broke off.", "It is tried again.")
            return task.result()
        await _call_off(task, grace, undo)
        self.check()
        raise TooLong(f"The {what} took more than {seconds:g} s.", "It is tried again.")


async def _call_off(task: "asyncio.Task[T]", grace: float, undo: Undo[T] | None) -> None:
    task.cancel()
    await asyncio.wait((task,), timeout=grace)
    if not task.done():
        # Nobody waits for it any more; whatever comes of it, whenever, is undone.
        task.add_done_callback(lambda late: _left_behind(late, undo))
    elif (made := _made(task)) is not None and undo is not None:
        await undo(made)


_undoing: set[asyncio.Task[None]] = set()


def _left_behind(task: "asyncio.Task[T]", undo: Undo[T] | None) -> None:
    made = _made(task)
    if made is not None and undo is not None:
        undone = asyncio.ensure_future(undo(made))
        _undoing.add(undone)
        undone.add_done_callback(_undoing.discard)


def _made(task: "asyncio.Task[T]") -> T | None:
    return None if task.cancelled() or task.exception() is not None else task.result()
