"""Killing: whose processes are whose, by what the system itself says of them."""

import os
import signal
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path

_TAPS = b"boundary/taps/"


def descendants(pid: int) -> list[int]:
    """All that it has started and what those have, as far as their parents live."""
    found: list[int] = []
    for child in _children(pid):
        found += [child, *descendants(child)]
    return found


def programs_in(pid: int, directory: str) -> list[int]:
    """The agents' own programs that work in that directory, without the taps before them."""
    return [each for each in descendants(pid) if _works_in(each, directory) and _TAPS not in _command_line(each)]


def servers_of(pid: int) -> list[int]:
    """The agents' servers, without the taps before them."""
    lines = ((each, _command_line(each)) for each in descendants(pid))
    return [each for each, line in lines if b"\0serve\0" in line and _TAPS not in line]


def kill(pids: Iterable[int]) -> int:
    """How many there were."""
    killed = 0
    for pid in pids:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
            killed += 1
    return killed


def kill_soon(find: Callable[[], list[int]], seconds: float) -> int:
    """Kill what is there, or what is there as soon as something is."""
    end = time.monotonic() + seconds
    while not (killed := kill(find())) and time.monotonic() < end:
        time.sleep(0.002)
    return killed


def _children(pid: int) -> list[int]:
    found: list[int] = []
    # It may end while it is looked at.
    with suppress(OSError):
        for task in list(Path(f"/proc/{pid}/task").iterdir()):
            with suppress(OSError):
                found += map(int, (task / "children").read_text(encoding="ascii").split())
    return found


def _works_in(pid: int, directory: str) -> bool:
    with suppress(OSError):
        return str(Path(f"/proc/{pid}/cwd").readlink()) == directory
    return False


def _command_line(pid: int) -> bytes:
    with suppress(OSError):
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    return b""
