"""The server process of a data directory: whether it runs, and starting and stopping it from another process."""

import fcntl
import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from clew.ports.fault import Fault
from clew.server.data_dir import DataDirectory, file_fault


class CannotStart(Fault):
    code = "cli:cannot-start"


class CannotStop(Fault):
    code = "cli:cannot-stop"


class LockedByOther(Fault):
    code = "cli:locked-by-other"


@dataclass(frozen=True, slots=True)
class Process:
    """The process that holds the lock of a data directory."""

    pid: int
    host: str
    since: float


def running(data: DataDirectory) -> Process | None:
    """The lock tells whether it runs: the kernel releases it when the process ends, however it ended."""
    for _ in range(_LOOKS):
        held = _held(data)
        if held is None:
            return None
        if process := _read(held):
            return process
        # The server has just taken the lock and has not written its process id yet.
        time.sleep(_PAUSE)
    raise LockedByOther(
        f"{data.holder} is locked by a program that is not a Clew server.", f"Find it with `lsof {data.holder}`."
    )


def _held(data: DataDirectory) -> bytes | None:
    """What the holder of the lock has written; None if nobody holds it."""
    try:
        with data.holder.open("rb") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
            except BlockingIOError:
                return file.read()
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as fault:
        raise file_fault(fault, data.holder) from fault
    return None


def address_of(data: DataDirectory) -> str | None:
    """None while it is not ready."""
    try:
        return data.address.read_text(encoding="utf-8").strip() or None
    except (OSError, UnicodeDecodeError):
        return None


def start(data: DataDirectory, options: Sequence[str], database: str | None) -> Process:
    """Runs `clew up` with these options in a session of its own, and returns when it is ready. It outlives the
    terminal."""
    log = output_of(data)
    # Not as an argument, which every user of the machine can see: an address may have a password.
    environment = os.environ | ({} if database is None else {"CLEW_DATABASE": database})
    try:
        log.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        # Mode 0600: it has a login link.
        with os.fdopen(os.open(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as output:
            child = subprocess.Popen(
                [sys.executable, "-m", "clew", "up", "--data", str(data.root), *options],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                env=environment,
            )
    except OSError as fault:
        raise file_fault(fault, log) from fault
    while child.poll() is None:
        process = running(data)
        # A server that was killed has left its address behind; this one removes it before it holds the lock.
        if process is not None and process.pid == child.pid and address_of(data) is not None:
            # It is not waited for: it ends long after this process.
            child.returncode = 0
            return process
        time.sleep(_PAUSE)
    raise CannotStart(_said(log) or f"The server ended at once with status {child.returncode}.", f"See {log}.")


def stop(data: DataDirectory, process: Process, *, now: bool) -> None:
    """Returns when it has ended. `now` does not let live turns finish; they continue at the next start."""
    if process.host != socket.gethostname():
        words = f"The server is process {process.pid} on {process.host}; this is {socket.gethostname()}."
        raise CannotStop(words, "Stop it there.")
    # A server that starts at this moment has the lock a little before its own number is in the file.
    time.sleep(_PAUSE)
    if running(data) != process:
        raise CannotStop("The server has just ended or started again.", "Look with `clew status`, then try again.")
    try:
        os.kill(process.pid, signal.SIGTERM)
        if now:
            # A second signal interrupts turns instead of waiting for them.
            time.sleep(_PAUSE)
            os.kill(process.pid, signal.SIGTERM)
    except ProcessLookupError:
        pass
    except PermissionError as fault:
        words = f"Process {process.pid} belongs to another user."
        raise CannotStop(words, "Run this as the user who started Clew.") from fault
    while running(data) == process:
        time.sleep(_PAUSE)


def output_of(data: DataDirectory) -> Path:
    return data.logs / "up.log"


_PAUSE = 0.1
_LOOKS = 20


def _read(text: bytes) -> Process | None:
    try:
        said = json.loads(text)
        return Process(int(said["pid"]), str(said["host"]), float(said["since"]))
    except (ValueError, KeyError, TypeError):
        return None


def _said(log: Path) -> str:
    """The error with which it ended, without its prefix and code."""
    lines = log.read_text(encoding="utf-8", errors="replace").strip().splitlines()
    return lines[-1].removeprefix("clew: ") if lines else ""
