"""Locks of threads. Codex holds a writer lock for each thread it has loaded; Clew takes the same to write a file.

In addition Clew has locks of its own in the home, shared by all its providers: not every program that opens a thread
takes Codex's lock.
"""

import contextlib
import fcntl
import os
import time
from collections.abc import Iterable, Iterator
from pathlib import Path

from clew.programs.faults import SessionBusy
from clew.programs.locks import SessionLock, is_locked, lock_session, must_be_lockable, try_flock

_DIRECTORY = "thread-writer-locks"
CLAIMS = "clew-locks"
_ALL = ".coordination.lock"
_PATIENCE = 5.0
_PAUSE = 0.02


def claim(root: Path, thread: str) -> SessionLock:
    """Keep every other provider of Clew from opening the thread, whichever program it uses."""
    try:
        return lock_session(root / CLAIMS, thread)
    except SessionBusy as fault:
        words = f"Session {thread} is open in another program of Clew."
        raise SessionBusy(words, "Close it there, or wait.") from fault


def must_be_claimable(root: Path) -> None:
    must_be_lockable(root / CLAIMS)


def is_loaded(root: Path, thread: str) -> bool:
    """Whether any process has the thread loaded, also one of Clew. A killed process holds no lock."""
    return is_locked(root / CLAIMS, thread) or has_writer_lock(root, thread)


def has_writer_lock(root: Path, thread: str) -> bool:
    """Whether Codex has the thread loaded."""
    try:
        file = os.open(root / _DIRECTORY / f"{thread}.lock", os.O_RDWR)
    except OSError:
        return False
    try:
        return not try_flock(file, fcntl.LOCK_SH)
    finally:
        os.close(file)


@contextlib.contextmanager
def lock_threads(root: Path, threads: Iterable[str]) -> Iterator[None]:
    """Lock these threads, so that no program loads one meanwhile."""
    directory = root / _DIRECTORY
    directory.mkdir(parents=True, exist_ok=True)
    with contextlib.ExitStack() as stack:
        for thread in sorted(set(threads)):
            stack.callback(claim(root, thread).release)
            with _coordinated(directory):
                file = os.open(directory / f"{thread}.lock", os.O_RDWR | os.O_CREAT, 0o644)
            stack.callback(os.close, file)
            if not try_flock(file, fcntl.LOCK_EX):
                raise SessionBusy(f"Session {thread} is open in another program.", "Close it there first.")
            stack.callback(_forget, directory, thread)
        yield


def _forget(directory: Path, thread: str) -> None:
    # A lock file that is left behind does no harm: it is not locked.
    with contextlib.suppress(OSError, SessionBusy), _coordinated(directory):
        (directory / f"{thread}.lock").unlink()


@contextlib.contextmanager
def _coordinated(directory: Path) -> Iterator[None]:
    """Codex makes and removes lock files under this one lock. It is held for moments, so a longer holder hangs."""
    path = directory / _ALL
    file = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
    try:
        end = time.monotonic() + _PATIENCE
        while not try_flock(file, fcntl.LOCK_EX):
            if time.monotonic() >= end:
                words = f"Another program has held {path} for {_PATIENCE:g} s, and no session can be loaded meanwhile."
                raise SessionBusy(words, "End the program that holds it (a Codex that hangs?), or wait.")
            time.sleep(_PAUSE)
        yield
    finally:
        os.close(file)
