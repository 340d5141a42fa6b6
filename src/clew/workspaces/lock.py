"""Locks on files: the system lets go of them when their holder ends, however it ends."""

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
"""Seconds to wait for somebody who makes the same thing; a setup may take long."""


class Lock:
    """An open file and the lock on it. Its number may be handed to a program, which then holds the lock, too."""

    def __init__(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        self.path = path
        self.file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)

    def take(self, shared: bool = False) -> bool:
        """At once or not at all."""
        try:
            fcntl.flock(self.file, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True

    def release(self) -> None:
        # Said outright: a program that lives on with a copy of the file would else keep it locked.
        fcntl.flock(self.file, fcntl.LOCK_UN)
        os.close(self.file)

    def read(self) -> bytes:
        return os.pread(self.file, 64 * 1024, 0)

    def write(self, text: bytes) -> None:
        os.pwrite(self.file, text, 0)
        os.ftruncate(self.file, len(text))


@contextlib.asynccontextmanager
async def locked(path: Path, patience: float = PATIENCE) -> AsyncIterator[Lock]:
    """Wait for the lock and hold it for a while."""
    lock = Lock(path)
    try:
        deadline, pause = time.monotonic() + patience, 0.002
        while not lock.take():
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


class Uses:
    """What this process keeps. Whoever takes or looks holds the lock of making, so that no two do so at once.

    The lane's processes share the lock; the name of the lane in the file tells others to stay out.
    """

    def __init__(self, layout: Layout) -> None:
        self._layout = layout
        self._held: dict[tuple[LaneId, Path], _Held] = {}

    def take(self, wanted: PlaceWanted, directory: Path) -> str | None:
        """Keep the directory for the lane, or say who has it."""
        path = self._layout.use(directory)
        held = self._held.get((wanted.lane, path))
        if held is not None:
            held.times += 1
            os.utime(held.lock.file)
            return None
        lock = Lock(path)
        try:
            if lock.take():
                lock.write(_use(wanted, directory).written)
            elif (use := _read(lock)) is None or use.lane != wanted.lane:
                return told(use)
            # From alone to shared: the lane's other processes may come in.
            lock.take(shared=True)
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
        """Who works there, or None."""
        path = self._layout.use(directory)
        if not path.exists():
            return None
        lock = Lock(path)
        try:
            return None if lock.take() else told(_read(lock))
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


def told(use: Use | None) -> str:
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
