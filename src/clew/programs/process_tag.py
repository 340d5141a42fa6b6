"""Marks: every process that a program of ours starts inherits a token in its environment, and is found again by it.

A process group does not hold a tool's shell that made a group of its own, and a dead parent tells nothing of its
children. The token does, and no process of anybody else has it.
"""

import contextlib
import os
import secrets
import signal
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Self

VARIABLE = "CLEW_MARK"
_PROC = "/proc"
_PART = 1 << 16
_NUMBERS = 1_000_000
"""Of processes and threads: no machine gives out more in a second, for each takes the same lock of the kernel."""

_LOOKS = 10
"""How often it is looked again where nobody was found, because somebody ended meanwhile."""

_DENIED = b"denied"
"""What another user's process shows; no environment looks like this."""

_BECOMING = 1.0
"""Seconds to wait for a process that is becoming another program. It takes a thousandth, unless the machine is busy."""

# Places in /proc/<pid>/stat, counted from the state, and flags in one of them.
_FLAGS, _STARTED, _ENV_START, _ENV_END = 6, 19, 47, 48
_EXITING, _OF_THE_KERNEL = 0x4, 0x200000
_ENDED = frozenset("ZXx")
"""States of a process that has ended and is still shown."""


@dataclass(frozen=True, slots=True)
class ProcessTag:
    token: str

    @property
    def environment(self) -> dict[str, str]:
        return {VARIABLE: self.token}


def new_tag() -> ProcessTag:
    return ProcessTag(secrets.token_hex(16))


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
        """Where the system does not show when a process started, its number must do. One that has ended, and was only
        not waited for, does nothing more."""
        try:
            os.kill(self.pid, 0)
        except ProcessLookupError:
            return False
        except PermissionError:
            pass
        fields = _stat(self.pid)
        return not (fields and fields[0] in _ENDED) and _started_in(fields) == self.started


def lowest_child(pid: int, began: float) -> int:
    """The lowest number of a process that this one can have started, when it began at that time of `time.monotonic`.

    Numbers are given in turn: nothing it started is below its own, unless they may have come round since. After a short
    turn this spares a look at all that goes on on the machine.
    """
    if time.monotonic() - began > _numbers() / _NUMBERS:
        return 0
    return pid if _number("loadavg") >= pid else 0


@cache
def _numbers() -> int:
    """How many there are before they come round."""
    return _number("sys/kernel/pid_max")


def _number(name: str) -> int:
    """The last that stands there; 0 where none does."""
    last = (_show(name) or b"").split()[-1:]
    return int(last[0]) if last and last[0].isdigit() else 0


def tagged_processes(*marks: ProcessTag) -> list[int]:
    """The processes that carry a mark, ours not among them. Empty where the system does not show environments."""
    return _look(marks, 0).found


@dataclass(frozen=True, slots=True)
class _Look:
    """Who carries a mark, and who had ended when it was looked at: what such a one started last is in no list yet."""

    found: list[int]
    ended: set[int]


def _look(marks: Sequence[ProcessTag], lowest: int) -> _Look:
    wanted = [f"\0{VARIABLE}={mark.token}\0".encode() for mark in marks]
    look = _Look([], set())
    unknown = [pid for pid in _processes() if pid >= lowest and pid != os.getpid()]
    deadline = time.monotonic() + _BECOMING
    while unknown:
        shown = {pid: _show(f"{pid}/environ") for pid in unknown}
        look.found.extend(pid for pid, lines in shown.items() if lines and _carries(lines, wanted))
        silent = {pid: _stat(pid) for pid, lines in shown.items() if lines == b""}
        look.ended.update(pid for pid, lines in shown.items() if lines is None)
        look.ended.update(pid for pid, fields in silent.items() if not fields or fields[0] in _ENDED)
        # One that is just becoming another program shows nothing, for a moment.
        unknown = [pid for pid, fields in silent.items() if _is_becoming(pid, fields)]
        if time.monotonic() > deadline:
            break
        if unknown:
            time.sleep(0.001)
    return look


def _carries(environment: bytes, wanted: Sequence[bytes]) -> bool:
    return any(mark in b"\0%b" % environment for mark in wanted)


@dataclass(frozen=True, slots=True)
class Swept:
    """How many processes were ended, and whether none is left."""

    ended: int
    clean: bool


def end_tagged(marks: Iterable[ProcessTag], patience: float = 5.0, lowest: int = 0, over: int = 0) -> Swept:
    """End every process that carries one of the marks, and those they start meanwhile. `over` is one that has ended."""
    ended: set[int] = set()
    deadline = time.monotonic() + patience
    wanted, seen, looks = tuple(marks), {over}, 0
    found: list[int] = []
    while wanted and looks < _LOOKS:
        look = _look(wanted, lowest)
        found = look.found
        if not found and look.ended <= seen:
            break
        seen |= look.ended
        looks = 0 if found else looks + 1
        ended.update(found)
        for pid in found:
            _kill(pid)
        if time.monotonic() >= deadline:
            break
        if found:
            time.sleep(0.02)
    return Swept(len(ended), clean=not found)


def _processes() -> list[int]:
    try:
        return [int(name) for name in os.listdir(_PROC) if name.isdigit()]  # noqa: PTH208 - a third of the time
    except OSError:
        return []


def _show(name: str) -> bytes | None:
    """What the system shows; None when it is not there any more, and a word of ours where it may not be read.

    Every process of the machine may be read after a turn, so this goes to the system directly.
    """
    try:
        file = os.open(f"{_PROC}/{name}", os.O_RDONLY | os.O_CLOEXEC)
    except OSError as fault:
        return _DENIED if isinstance(fault, PermissionError) else None
    shown = b""
    try:
        while part := os.read(file, _PART):
            shown += part
    except OSError as fault:
        return _DENIED if isinstance(fault, PermissionError) else None
    finally:
        os.close(file)
    return shown


def _is_becoming(pid: int, fields: Sequence[str]) -> bool:
    """Whether a process of ours that showed no environment was in the midst of an exec: the old one gone, the new one
    not yet there."""
    if len(fields) <= _ENV_END or int(fields[_FLAGS]) & (_EXITING | _OF_THE_KERNEL):
        return False
    # One that has ended and was not yet waited for shows nothing, and needs nothing. One that has an environment by now
    # got it since it was looked at.
    if fields[0] in _ENDED or (fields[_ENV_END] != "0" and fields[_ENV_END] == fields[_ENV_START]):
        return False
    try:
        return Path(_PROC, str(pid)).stat().st_uid == os.geteuid()
    except OSError:
        return False


def _started(pid: int) -> int:
    """In the system's own ticks; 0 where it does not say."""
    return _started_in(_stat(pid))


def _started_in(fields: list[str]) -> int:
    return int(fields[_STARTED]) if len(fields) > _STARTED else 0


def _stat(pid: int) -> list[str]:
    """What follows the name, which may hold anything, brackets among it."""
    shown = _show(f"{pid}/stat")
    return [] if shown is None or shown == _DENIED else shown.decode(errors="replace").rpartition(")")[2].split()


def _kill(pid: int) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.kill(pid, signal.SIGKILL)
