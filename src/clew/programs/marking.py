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
    return [pid for pid in _processes() if pid != os.getpid() and not wanted.isdisjoint(_environment(pid))]


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


def _environment(pid: int) -> list[bytes]:
    try:
        # A process that has ended and was not yet waited for shows nothing, and needs nothing.
        return (_PROC / str(pid) / "environ").read_bytes().split(b"\0")
    except OSError:
        return []


def _started(pid: int) -> int:
    """In the system's own ticks; 0 where it does not say."""
    try:
        # The name in brackets may hold anything, so what follows the last bracket is read.
        fields = (_PROC / str(pid) / "stat").read_text(errors="replace").rpartition(")")[2].split()
        return int(fields[19])
    except (OSError, ValueError, IndexError):
        return 0


def _kill(pid: int) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.kill(pid, signal.SIGKILL)
