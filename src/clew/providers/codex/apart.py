"""Work on the home's files, apart from the loop."""

import asyncio
import os
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from clew.providers.codex.faults import HomeFailed

T = TypeVar("T")

_REMEDY = "Check that the directory is there, is yours and has room."


async def apart(work: Callable[[], T], undo: Callable[[T], None] | None = None) -> T:
    """In a thread. What the system refuses becomes a fault.

    A cancellation does not end a thread: what it did by then is undone.
    """
    working = asyncio.ensure_future(asyncio.to_thread(work))
    try:
        return await asyncio.shield(working)
    except asyncio.CancelledError:
        working.add_done_callback(lambda done: _undone(done, undo))
        raise
    except OSError as fault:
        what = f": {fault.filename}" if fault.filename else ""
        raise HomeFailed(f"The files of Codex cannot be read or written ({fault.strerror}{what}).", _REMEDY) from fault


def _undone(working: "asyncio.Future[T]", undo: Callable[[T], None] | None) -> None:
    if not working.cancelled() and working.exception() is None and undo is not None:
        undo(working.result())


def make_ready(root: Path) -> None:
    """The program makes no home, and says little where it cannot write to one."""
    try:
        root.mkdir(parents=True, exist_ok=True, mode=0o700)
    except FileExistsError as fault:
        raise HomeFailed(f"The home {root} of Codex is no directory.", "Move it away, or name another.") from fault
    if not os.access(root, os.W_OK | os.X_OK):
        raise HomeFailed(f"The home {root} of Codex cannot be written to.", _REMEDY)
