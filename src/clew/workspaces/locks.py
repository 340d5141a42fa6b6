"""Locks on files: the system lets go of them when their holder ends, however it ends."""

import asyncio
import contextlib
import fcntl
import os
import time
from collections.abc import AsyncIterator
from pathlib import Path

from clew.workspaces.faults import StillBusy

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
