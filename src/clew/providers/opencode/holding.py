"""Who has a session: the server would put a second prompt into the turn that is going, so each session is held by one.

The lock lies beside OpenCode's own database, so that all who share the one share the other, and goes with its holder.
"""

import contextlib
import fcntl
import os
from pathlib import Path

from clew.providers.opencode.faults import SessionBusy


class Hold:
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


def take(store: Path, id_: str) -> Hold:
    directory = _directory(store)
    directory.mkdir(parents=True, exist_ok=True, mode=0o700)
    path = directory / id_
    while True:
        file = os.open(path, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if _same(file, path):
                return Hold(path, file)
        except BlockingIOError as fault:
            os.close(file)
            words = f"Session {id_} is open already."
            raise SessionBusy(words, "Close it there, or wait until it is closed.") from fault
        except OSError:
            os.close(file)
            raise
        os.close(file)


def is_held(store: Path, id_: str) -> bool:
    try:
        file = os.open(_directory(store) / id_, os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        return False
    try:
        # Shared, so that two who only look do not stand in each other's way.
        fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(file)
    return False


def _directory(store: Path) -> Path:
    return store.with_name(f"{store.name}.clew-locks")


def _same(file: int, path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(file), path.stat())
    except FileNotFoundError:
        return False
