"""Who has a session: most agents lock nothing, and of two that go on with one session a branch is lost. One holds it.

The lock is a file that all who share the home share, and goes with its holder, however that ends.
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
"""Seconds. Who only looks has the lock, too, for less than a moment, unless the machine is busy."""


class SessionLock:
    """A session that is ours until `release`."""

    def __init__(self, path: Path, file: int) -> None:
        self._path = path
        self._file: int | None = file

    def release(self) -> None:
        file, self._file = self._file, None
        if file is not None:
            # While it is still ours: who waits for it finds that its file is gone, and makes a new one.
            with contextlib.suppress(OSError):
                self._path.unlink()
            os.close(file)


def locks_of_home(provider: str, home: str, environment: Mapping[str, str]) -> Path:
    """Where the locks of a home are of which only its name is known, and not where it keeps what.

    Variables may name files as well as directories, so nothing is put there. The same name leads every process of a
    user to the same directory below the HOME that the program gets, which is ours unless its home is another.
    """
    named = hashlib.sha256(f"{provider}\0{home}".encode(errors="surrogatepass")).hexdigest()[:32]
    state = environment.get("XDG_STATE_HOME") or Path(environment.get("HOME", "/")) / ".local" / "state"
    return Path(state) / "clew" / "locks" / named


def must_be_lockable(locks: Path) -> None:
    """Before a session is made that could not be held then."""
    lock_session(locks, f"new-{uuid.uuid4()}").release()


def lock_session(locks: Path, id_: str) -> SessionLock:
    """Hold that session, or say that another does; where nobody can tell, nobody has it."""
    path = locks / _name(id_)
    try:
        locks.mkdir(parents=True, exist_ok=True, mode=0o700)
        while True:
            file = os.open(path, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
            try:
                _lock(file)
                if _same(file, path):
                    hold, file = SessionLock(path, file), -1
                    return hold
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
        # Shared, so that two who only look do not stand in each other's way.
        fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError as fault:
        raise _cannot(locks, fault) from fault
    finally:
        os.close(file)
    return False


def _lock(file: int) -> None:
    """Raises when somebody has it; those who only look are waited for."""
    deadline = time.monotonic() + _PATIENCE
    while True:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() > deadline:
                raise
        else:
            return
        # Only who looks can share it.
        fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
        fcntl.flock(file, fcntl.LOCK_UN)
        # Not all at the same beat: two who try this way stand in each other's way.
        time.sleep(random.uniform(0.0, _PAUSE))


def _same(file: int, path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(file), path.stat())
    except FileNotFoundError:
        return False


def _name(id_: str) -> str:
    """The id itself where it is fit for a file's name; otherwise a name that no fit id has."""
    if _SAFE.fullmatch(id_):
        return id_
    return f"={hashlib.sha256(id_.encode(errors='surrogatepass')).hexdigest()}"


def _cannot(locks: Path, fault: OSError) -> CannotLock:
    words = f"Nobody can tell who has a session: {locks} cannot be used ({fault.strerror})."
    return CannotLock(words, "Make that directory writable for Clew.")
