"""Who holds a SQLite file: one server at a time, and whoever comes second is told who it is."""

import fcntl
import json
import os
import socket
import time
from pathlib import Path
from typing import IO

from clew.store.faults import HeldByAnother


class Holder:
    """An exclusive lock beside the file. The system lets go of it when its process ends, however it ends."""

    def __init__(self, database: Path) -> None:
        # By the file itself, whatever path led to it.
        real = database.resolve()
        self._file: IO[str] = _taken(database, real.with_name(real.name + ".holder"))

    def release(self) -> None:
        self._file.close()


def _taken(database: Path, path: Path) -> IO[str]:
    file = os.fdopen(os.open(path, os.O_RDWR | os.O_CREAT, 0o600), "r+", encoding="utf-8")
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        with file:
            who = _read(file)
        raise HeldByAnother(
            f"{database} is held by {who}.",
            "Use that server, stop it first, or give this one a database of its own.",
        ) from None
    file.truncate()
    json.dump({"pid": os.getpid(), "host": socket.gethostname(), "since": time.time()}, file)
    file.flush()
    return file


def _read(file: IO[str]) -> str:
    """The holder in words; it may be writing its name at this very moment."""
    try:
        said = json.load(file)
        since = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(said["since"]))
        return f"process {said['pid']} on {said['host']}, since {since}"
    except (ValueError, KeyError, TypeError):
        return "another server"
