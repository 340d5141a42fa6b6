"""Who works where: one lane at a time in a directory, and whoever comes second is told who has it."""

import os
import time
from dataclasses import dataclass
from pathlib import Path

from clew.kernel import LaneId
from clew.ports.workspaces import PlaceWanted
from clew.workspaces.layout import Layout
from clew.workspaces.locks import Lock
from clew.workspaces.marker import Unreadable, Use


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
