"""Work on the home's files, apart from the loop."""

import asyncio
from collections.abc import Callable
from typing import TypeVar

from clew.providers.claude.faults import HomeFailed

T = TypeVar("T")


async def apart(work: Callable[[], T], undo: Callable[[T], None] | None = None) -> T:
    """In a thread. What the system refuses becomes a fault.

    A cancellation does not end a thread: what it took by then is undone.
    """
    working = asyncio.ensure_future(asyncio.to_thread(work))
    try:
        return await asyncio.shield(working)
    except asyncio.CancelledError:
        working.add_done_callback(lambda done: _undone(done, undo))
        raise
    except OSError as fault:
        what = f": {fault.filename}" if fault.filename else ""
        words = f"The files of Claude Code cannot be read or written ({fault.strerror}{what})."
        raise HomeFailed(words, "Check that the directory is there, is yours and has room.") from fault


def _undone(working: "asyncio.Future[T]", undo: Callable[[T], None] | None) -> None:
    if not working.cancelled() and working.exception() is None and undo is not None:
        undo(working.result())
