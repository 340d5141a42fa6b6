"""Session locks: at most one process has a session open.

Most agents lock nothing, and when two processes continue one session, one branch is lost. The lock is flock(2) on a
file in a directory that belongs to the agent's home; the system releases it when its process ends, however it ends.
"""

import contextlib
import fcntl
import hashlib
import os
import random
import re
import time
import uuid
from collections.abc import Mapping
from pathlib import Path

from clew.programs.faults import CannotLock, SessionBusy

_SAFE = re.compile(r"[0-9A-Za-z_][0-9A-Za-z_.-]{0,99}")
_PATIENCE, _PAUSE = 10.0, 0.002
"""Seconds. `is_locked` takes the lock too, for an instant, or longer on a busy machine."""


class FileLock:
    """A lock on an open file. Held until `release`, or until the process ends."""

    def __init__(self, file: int) -> None:
        self._file: int | None = file

    def release(self) -> None:
        file, self._file = self._file, None
        if file is not None:
            os.close(file)


class SessionLock(FileLock):
    """A lock on a file of its own, which is removed with it."""

    def __init__(self, path: Path, file: int) -> None:
        super().__init__(file)
        self._path = path

    def release(self) -> None:
        if self._file is not None:
            # Before the lock is released: a process that waits for it finds that the file is gone, and makes a new one.
            with contextlib.suppress(OSError):
                self._path.unlink()
        super().release()


def try_flock(file: int, how: int) -> bool:
    """False when another process holds a lock that excludes this one. `how` is LOCK_EX or LOCK_SH."""
    try:
        fcntl.flock(file, how | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def open_locked(path: Path, how: int, flags: int = os.O_RDONLY) -> int | None:
    """Open the file and lock it; None when another process holds it."""
    while True:
        file = os.open(path, flags | os.O_CLOEXEC, 0o600)
        try:
            if not try_flock(file, how):
                return None
            # The file may have been replaced or removed meanwhile; a lock on the old one protects nothing.
            if _same(file, path):
                locked, file = file, -1
                return locked
        finally:
            if file >= 0:
                os.close(file)


def locks_of_home(provider: str, home: str, environment: Mapping[str, str]) -> Path:
    """The lock directory for a home of which only the name is known.

    The variables of such a home may name files or directories, so nothing is written there. The same name gives every
    process of a user the same directory, below the HOME that the program gets.
    """
    named = hashlib.sha256(f"{provider}\0{home}".encode(errors="surrogatepass")).hexdigest()[:32]
    state = environment.get("XDG_STATE_HOME") or Path(environment.get("HOME", "/")) / ".local" / "state"
    return Path(state) / "clew" / "locks" / named


def must_be_lockable(locks: Path) -> None:
    """Raise now if a session that is about to be made could not be locked."""
    lock_session(locks, f"new-{uuid.uuid4()}").release()


def lock_session(locks: Path, id_: str) -> SessionLock:
    """Lock a session. Raises `SessionBusy` if another process has it, `CannotLock` if locks cannot be used at all."""
    path, deadline = locks / _name(id_), time.monotonic() + _PATIENCE
    try:
        locks.mkdir(parents=True, exist_ok=True, mode=0o700)
        while (file := open_locked(path, fcntl.LOCK_EX, os.O_CREAT | os.O_RDWR)) is None:
            if time.monotonic() > deadline or is_locked(locks, id_):
                raise SessionBusy(f"Session {id_} is open already.", "Close it there, or wait until it is closed.")
            # Another process only looks (LOCK_SH). A random pause: two that try to lock in step block each other.
            time.sleep(random.uniform(0.0, _PAUSE))
    except OSError as fault:
        raise _cannot(locks, fault) from fault
    return SessionLock(path, file)


def is_locked(locks: Path, id_: str) -> bool:
    try:
        # LOCK_SH, so that two processes that only look do not block each other.
        file = open_locked(locks / _name(id_), fcntl.LOCK_SH)
    except FileNotFoundError:
        return False
    except OSError as fault:
        raise _cannot(locks, fault) from fault
    if file is None:
        return True
    os.close(file)
    return False


def _same(file: int, path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(file), path.stat())
    except FileNotFoundError:
        return False


def _name(id_: str) -> str:
    """The id if it is safe as a file name; otherwise `=` and a digest, which no safe id begins with."""
    if _SAFE.fullmatch(id_):
        return id_
    return f"={hashlib.sha256(id_.encode(errors='surrogatepass')).hexdigest()}"


def _cannot(locks: Path, fault: OSError) -> CannotLock:
    words = f"Sessions cannot be locked: {locks} cannot be used ({fault.strerror})."
    return CannotLock(words, "Make that directory writable for Clew.")
