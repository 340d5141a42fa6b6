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


class SessionLock:
    """Held until `release`."""

    def __init__(self, path: Path, file: int) -> None:
        self._path = path
        self._file: int | None = file

    def release(self) -> None:
        file, self._file = self._file, None
        if file is not None:
            # Before the lock is released: a process that waits for it finds that the file is gone, and makes a new one.
            with contextlib.suppress(OSError):
                self._path.unlink()
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
    path = locks / _name(id_)
    try:
        locks.mkdir(parents=True, exist_ok=True, mode=0o700)
        while True:
            file = os.open(path, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
            try:
                _lock(file)
                if _same(file, path):
                    lock, file = SessionLock(path, file), -1
                    return lock
            finally:
                if file >= 0:
                    os.close(file)
    except BlockingIOError as fault:
        raise SessionBusy(f"Session {id_} is open already.", "Close it there, or wait until it is closed.") from fault
    except OSError as fault:
        raise _cannot(locks, fault) from fault


def is_locked(locks: Path, id_: str) -> bool:
    try:
        file = os.open(locks / _name(id_), os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        return False
    except OSError as fault:
        raise _cannot(locks, fault) from fault
    try:
        # LOCK_SH, so that two processes that only look do not block each other.
        fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError as fault:
        raise _cannot(locks, fault) from fault
    finally:
        os.close(file)
    return False


def _lock(file: int) -> None:
    """LOCK_EX. Raises if a session lock is held; waits for processes that only look."""
    deadline = time.monotonic() + _PATIENCE
    while True:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() > deadline:
                raise
        else:
            return
        # LOCK_SH succeeds only if the holder only looks.
        fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
        fcntl.flock(file, fcntl.LOCK_UN)
        # A random pause: two processes that try this way block each other.
        time.sleep(random.uniform(0.0, _PAUSE))


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
