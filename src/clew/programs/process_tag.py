"""Process tags: a program's processes inherit a token in their environment, and are found again by it in /proc.

A process group is not enough: a tool's shell may make a group of its own, and a dead parent does not lead to its
children. The token does, and no other process has it.
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
"""Process and thread ids per second: no machine gives out more, because each takes the same lock of the kernel."""

_SCANS = 10
"""How many scans may follow one that found no process, because a process ended in between."""

_DENIED = b"denied"
"""Stands for the environment of another user's process, which cannot be read."""

_EXEC = 1.0
"""Seconds to wait for a process within exec(2). It takes a millisecond, unless the machine is busy."""

# Fields of /proc/<pid>/stat, counted from the state, and flags in one of them.
_FLAGS, _STARTED, _ENV_START, _ENV_END = 6, 19, 47, 48
_EXITING, _OF_THE_KERNEL = 0x4, 0x200000
_ENDED = frozenset("ZXx")
"""States of a process that has ended and was not waited for."""


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
    """A process by its pid and start time: a pid alone is given to another process later."""

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
        """Where the system shows no start time, the pid must do. A zombie does not count as living."""
        try:
            os.kill(self.pid, 0)
        except ProcessLookupError:
            return False
        except PermissionError:
            pass
        fields = _stat(self.pid)
        return not (fields and fields[0] in _ENDED) and _started_in(fields) == self.started


def lowest_child(pid: int, began: float) -> int:
    """The lowest pid that a child of this process can have, if it began at that time of `time.monotonic`.

    Pids are given in ascending order: no child is below its parent, unless they may have wrapped around since. After a
    short turn this saves reading every process of the machine.
    """
    if time.monotonic() - began > _pid_max() / _NUMBERS:
        return 0
    return pid if _number("loadavg") >= pid else 0


@cache
def _pid_max() -> int:
    return _number("sys/kernel/pid_max")


def _number(name: str) -> int:
    """The last number in that file of /proc; 0 where there is none."""
    last = (_read(name) or b"").split()[-1:]
    return int(last[0]) if last and last[0].isdigit() else 0


def tagged_processes(*tags: ProcessTag) -> list[int]:
    """The processes with one of the tags, without this one. Empty where the system does not show environments."""
    return _scan(tags, 0).found


@dataclass(frozen=True, slots=True)
class _Scan:
    """The tagged processes, and those that ended during the scan: a child they started last may not be listed yet."""

    found: list[int]
    ended: set[int]


def _scan(tags: Sequence[ProcessTag], lowest: int) -> _Scan:
    wanted = [f"\0{VARIABLE}={tag.token}\0".encode() for tag in tags]
    scan = _Scan([], set())
    unknown = [pid for pid in _processes() if pid >= lowest and pid != os.getpid()]
    deadline = time.monotonic() + _EXEC
    while unknown:
        shown = {pid: _read(f"{pid}/environ") for pid in unknown}
        scan.found.extend(pid for pid, lines in shown.items() if lines and _has_tag(lines, wanted))
        silent = {pid: _stat(pid) for pid, lines in shown.items() if lines == b""}
        scan.ended.update(pid for pid, lines in shown.items() if lines is None)
        scan.ended.update(pid for pid, fields in silent.items() if not fields or fields[0] in _ENDED)
        # A process within exec(2) shows no environment for a moment.
        unknown = [pid for pid, fields in silent.items() if _is_in_exec(pid, fields)]
        if time.monotonic() > deadline:
            break
        if unknown:
            time.sleep(0.001)
    return scan


def _has_tag(environment: bytes, wanted: Sequence[bytes]) -> bool:
    return any(tag in b"\0%b" % environment for tag in wanted)


@dataclass(frozen=True, slots=True)
class Swept:
    """How many processes were ended, and whether none is left."""

    ended: int
    clean: bool


def end_tagged(tags: Iterable[ProcessTag], patience: float = 5.0, lowest: int = 0, over: int = 0) -> Swept:
    """Kill every process with one of the tags, and those they start meanwhile. `over` is one known to have ended."""
    ended: set[int] = set()
    deadline = time.monotonic() + patience
    wanted, seen, empty = tuple(tags), {over}, 0
    found: list[int] = []
    while wanted and empty < _SCANS:
        scan = _scan(wanted, lowest)
        found = scan.found
        if not found and scan.ended <= seen:
            break
        seen |= scan.ended
        empty = 0 if found else empty + 1
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


def _read(name: str) -> bytes | None:
    """Read a file of /proc; None when it is gone, `_DENIED` where it may not be read.

    With os.read: after a turn, every process of the machine may be read.
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


def _is_in_exec(pid: int, fields: Sequence[str]) -> bool:
    """Whether a process of this user shows no environment because it is within exec(2)."""
    if len(fields) <= _ENV_END or int(fields[_FLAGS]) & (_EXITING | _OF_THE_KERNEL):
        return False
    # A zombie has no environment. A process with a range for its environment got it after the scan read it.
    if fields[0] in _ENDED or (fields[_ENV_END] != "0" and fields[_ENV_END] == fields[_ENV_START]):
        return False
    try:
        return Path(_PROC, str(pid)).stat().st_uid == os.geteuid()
    except OSError:
        return False


def _started(pid: int) -> int:
    """In clock ticks; 0 where the system does not say."""
    return _started_in(_stat(pid))


def _started_in(fields: list[str]) -> int:
    return int(fields[_STARTED]) if len(fields) > _STARTED else 0


def _stat(pid: int) -> list[str]:
    """The fields after the command name, which may itself contain brackets."""
    shown = _read(f"{pid}/stat")
    return [] if shown is None or shown == _DENIED else shown.decode(errors="replace").rpartition(")")[2].split()


def _kill(pid: int) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.kill(pid, signal.SIGKILL)
