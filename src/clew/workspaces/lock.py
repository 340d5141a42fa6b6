"""Locks on files, and the lane that uses a directory. The system releases a lock however its process ends."""

import asyncio
import contextlib
import fcntl
import os
import time
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path

from clew.kernel import LaneId
from clew.ports.workspaces import PlaceWanted
from clew.workspaces.faults import StillBusy
from clew.workspaces.layout import Layout
from clew.workspaces.marker import Unreadable, Use

PATIENCE = 1200.0
"""Seconds to wait for another process that makes the same directory: its setup may take long."""


class Lock:
    """A lock (flock) on an open file. A program that inherits the file descriptor holds the lock, too."""

    def __init__(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        self.path = path
        self.file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)

    def acquire(self, shared: bool = False) -> bool:
        """Without waiting. Returns whether it has the lock."""
        try:
            fcntl.flock(self.file, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True

    def release(self) -> None:
        # Closing is not enough: a program that still has the descriptor would keep the lock.
        fcntl.flock(self.file, fcntl.LOCK_UN)
        os.close(self.file)

    def read(self) -> bytes:
        return os.pread(self.file, 64 * 1024, 0)

    def write(self, text: bytes) -> None:
        os.pwrite(self.file, text, 0)
        os.ftruncate(self.file, len(text))


@contextlib.asynccontextmanager
async def locked(path: Path, patience: float = PATIENCE) -> AsyncIterator[Lock]:
    """Wait for the lock, and hold it for the body."""
    lock = Lock(path)
    try:
        deadline, pause = time.monotonic() + patience, 0.002
        while not lock.acquire():
            if time.monotonic() > deadline:
                raise StillBusy(f"Another process holds {path} for more than {patience:g} s.", "It is tried again.")
            await asyncio.sleep(pause)
            pause = min(pause * 2, 0.1)
        yield lock
    finally:
        lock.release()


@dataclass(slots=True)
class _Held:
    lock: Lock
    times: int = 1


class DirectoryUses:
    """The directories that lanes of this process use, one lane at a time. Callers hold the `making` lock.

    All processes of a lane share the lock. The file names the lane, so that others can say who has the directory.
    """

    def __init__(self, layout: Layout) -> None:
        self._layout = layout
        self._held: dict[tuple[LaneId, Path], _Held] = {}

    def acquire(self, wanted: PlaceWanted, directory: Path) -> str | None:
        """Use the directory for the lane. Returns None, or in words who has it."""
        path = self._layout.use(directory)
        held = self._held.get((wanted.lane, path))
        if held is not None:
            held.times += 1
            os.utime(held.lock.file)
            return None
        lock = Lock(path)
        try:
            if lock.acquire():
                lock.write(_use(wanted, directory).written)
            elif (use := _read(lock)) is None or use.lane != wanted.lane:
                return _in_words(use)
            # From exclusive to shared: the lane's other processes may use it, too.
            lock.acquire(shared=True)
            os.utime(lock.file)
            self._held[wanted.lane, path] = _Held(lock)
            return None
        finally:
            if (wanted.lane, path) not in self._held:
                lock.release()

    def release(self, wanted: PlaceWanted, directory: Path) -> None:
        key = wanted.lane, self._layout.use(directory)
        held = self._held.get(key)
        if held is None:
            return
        held.times -= 1
        if held.times == 0:
            os.utime(held.lock.file)
            held.lock.release()
            del self._held[key]

    def user(self, directory: Path) -> str | None:
        """Who uses the directory, in words, or None."""
        path = self._layout.use(directory)
        if not path.exists():
            return None
        lock = Lock(path)
        try:
            return None if lock.acquire() else _in_words(_read(lock))
        finally:
            lock.release()

    def last(self, directory: Path) -> float | None:
        try:
            return self._layout.use(directory).stat().st_mtime
        except OSError:
            return None

    def close(self) -> None:
        for held in self._held.values():
            held.lock.release()
        self._held.clear()


def _in_words(use: Use | None) -> str:
    if use is None:
        return "another process works there"
    since = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(use.since))
    return f"{use.who} works there since {since}"


def _use(wanted: PlaceWanted, directory: Path) -> Use:
    workspace = wanted.workspace
    return Use(wanted.lane, wanted.holder, os.fspath(directory), time.time(), workspace.id, workspace.project)


def _read(lock: Lock) -> Use | None:
    try:
        return Use.parse(lock.read(), lock.path)
    except Unreadable:
        return None
