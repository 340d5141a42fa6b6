"""Marks: every process that a program of ours starts inherits a token in its environment, and is found again by it.

A process group does not hold a tool's shell that made a group of its own, and a dead parent tells nothing of its
children. The token does, and no process of anybody else has it.
"""

import contextlib
import os
import secrets
import signal
import time
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Self

VARIABLE = "CLEW_MARK"
_PROC = Path("/proc")
_BECOMING = 1.0
"""Seconds to wait for a process that is becoming another program. It takes a thousandth, unless the machine is busy."""

# Places in /proc/<pid>/stat, counted from the state, and flags in one of them.
_FLAGS, _STARTED, _ENV_END = 6, 19, 48
_EXITING, _OF_THE_KERNEL = 0x4, 0x200000


@dataclass(frozen=True, slots=True)
class Mark:
    token: str

    @property
    def environment(self) -> dict[str, str]:
        return {VARIABLE: self.token}


def new_mark() -> Mark:
    return Mark(secrets.token_hex(16))


@dataclass(frozen=True, slots=True)
class Owner:
    """A process by its number and when it started: the number alone passes to others."""

    pid: int
    started: int

    @classmethod
    def ourselves(cls) -> Self:
        return cls(os.getpid(), _started(os.getpid()))

    @classmethod
    def read(cls, text: str) -> Self:
        pid, started = text.split()
        return cls(int(pid), int(started))

    @property
    def written(self) -> str:
        return f"{self.pid} {self.started}"

    @property
    def lives(self) -> bool:
        """Where the system does not show when a process started, its number must do."""
        try:
            os.kill(self.pid, 0)
        except ProcessLookupError:
            return False
        except PermissionError:
            pass
        return _started(self.pid) == self.started


def marked(*marks: Mark) -> list[int]:
    """The processes that carry a mark, ours not among them. Empty where the system does not show environments."""
    wanted = {f"{VARIABLE}={mark.token}".encode() for mark in marks}
    found: list[int] = []
    unknown = [pid for pid in _processes() if pid != os.getpid()]
    deadline = time.monotonic() + _BECOMING
    while unknown:
        shown = {pid: _environment(pid) for pid in unknown}
        found += [pid for pid, lines in shown.items() if lines and not wanted.isdisjoint(lines)]
        # One that is just becoming another program shows nothing, for a moment.
        unknown = [pid for pid, lines in shown.items() if lines == [] and _is_becoming(pid)]
        if time.monotonic() > deadline:
            break
        if unknown:
            time.sleep(0.001)
    return found


def end_marked(marks: Iterable[Mark], patience: float = 5.0) -> int:
    """End every process that carries one of the marks, and those they start meanwhile; how many there were."""
    ended: set[int] = set()
    deadline = time.monotonic() + patience
    wanted = tuple(marks)
    while found := marked(*wanted) if wanted else []:
        ended.update(found)
        for pid in found:
            _kill(pid)
        if time.monotonic() >= deadline:
            break
        time.sleep(0.02)
    return len(ended)


def _processes() -> list[int]:
    try:
        return [int(entry.name) for entry in _PROC.iterdir() if entry.name.isdigit()]
    except OSError:
        return []


def _environment(pid: int) -> list[bytes] | None:
    """None where it may not be read, or the process is gone."""
    try:
        # A process that has ended and was not yet waited for shows nothing, and needs nothing.
        shown = (_PROC / str(pid) / "environ").read_bytes()
    except OSError:
        return None
    return shown.split(b"\0") if shown else []


def _is_becoming(pid: int) -> bool:
    """Whether a process of ours is in the midst of an exec: its old environment is gone, its new one not yet there."""
    try:
        ours = (_PROC / str(pid)).stat().st_uid == os.geteuid()
    except OSError:
        return False
    fields = _stat(pid)
    if not ours or len(fields) <= _ENV_END:
        return False
    alive = fields[0] not in "ZXx" and not int(fields[_FLAGS]) & (_EXITING | _OF_THE_KERNEL)
    return alive and fields[_ENV_END] == "0"


def _started(pid: int) -> int:
    """In the system's own ticks; 0 where it does not say."""
    fields = _stat(pid)
    return int(fields[_STARTED]) if len(fields) > _STARTED else 0


def _stat(pid: int) -> list[str]:
    """What follows the name, which may hold anything, brackets among it."""
    try:
        return (_PROC / str(pid) / "stat").read_text(errors="replace").rpartition(")")[2].split()
    except OSError:
        return []


def _kill(pid: int) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.kill(pid, signal.SIGKILL)
