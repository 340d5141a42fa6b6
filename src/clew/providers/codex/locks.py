"""Writer locks: Codex holds one for each thread that it has loaded, and Clew takes the same before it puts a file."""

import contextlib
import fcntl
import os
import time
from collections.abc import Iterable, Iterator
from pathlib import Path

from clew.programs import faults as programs
from clew.programs import locks
from clew.programs.locks import SessionLock, lock_session, must_be_lockable
from clew.providers.codex.faults import SessionBusy

_DIRECTORY = "thread-writer-locks"
_CLAIMS = "clew-locks"
"""Clew's own, where every provider of this home has them: not every program that opens a thread takes Codex's."""
_ALL = ".coordination.lock"
_PATIENCE = 5.0
_PAUSE = 0.02


def claim(root: Path, thread: str) -> SessionLock:
    """Hold a thread against every other opening by Clew, by whichever program."""
    try:
        return lock_session(root / _CLAIMS, thread)
    except programs.SessionBusy as fault:
        words = f"Session {thread} is open in another program of Clew."
        raise SessionBusy(words, "Close it there, or wait.") from fault


def must_be_claimable(root: Path) -> None:
    must_be_lockable(root / _CLAIMS)


def is_loaded(root: Path, thread: str) -> bool:
    """Whether some process has the thread loaded, ours among them. One that was killed holds no lock."""
    return locks.is_locked(root / _CLAIMS, thread) or is_locked(root, thread)


def is_locked(root: Path, thread: str) -> bool:
    """By Codex itself."""
    try:
        file = os.open(root / _DIRECTORY / f"{thread}.lock", os.O_RDWR)
    except OSError:
        return False
    try:
        # Shared, so that two who only look do not stand in each other's way.
        fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except OSError:
        return True
    finally:
        os.close(file)
    return False


@contextlib.contextmanager
def held(root: Path, threads: Iterable[str]) -> Iterator[None]:
    """Hold these threads, so that no program loads one meanwhile."""
    directory = root / _DIRECTORY
    directory.mkdir(parents=True, exist_ok=True)
    with contextlib.ExitStack() as stack:
        for thread in sorted(set(threads)):
            stack.callback(claim(root, thread).release)
            with _coordinated(directory):
                file = os.open(directory / f"{thread}.lock", os.O_RDWR | os.O_CREAT, 0o644)
            stack.callback(os.close, file)
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError as fault:
                raise SessionBusy(f"Session {thread} is open in another program.", "Close it there first.") from fault
            stack.callback(_forget, directory, thread)
        yield


def _forget(directory: Path, thread: str) -> None:
    # One that is left behind is in nobody's way: it is not held.
    with contextlib.suppress(OSError, SessionBusy), _coordinated(directory):
        (directory / f"{thread}.lock").unlink()


@contextlib.contextmanager
def _coordinated(directory: Path) -> Iterator[None]:
    """Files of this directory come and go under one lock. It is held for moments only, so who holds it longer hangs."""
    path = directory / _ALL
    file = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
    try:
        end = time.monotonic() + _PATIENCE
        while not _locked(file):
            if time.monotonic() >= end:
                words = f"Another program has held {path} for {_PATIENCE:g} s, and no session can be loaded meanwhile."
                raise SessionBusy(words, "End the program that holds it (a Codex that hangs?), or wait.")
            time.sleep(_PAUSE)
        yield
    finally:
        os.close(file)


def _locked(file: int) -> bool:
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
