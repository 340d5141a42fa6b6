"""Small programs to start, and a look at what runs."""

import asyncio
import contextlib
import sys
import time
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any, TypeVar

from clew.programs.program import Program, environment_for, start
from clew.programs.state import Ledger

T = TypeVar("T")


def run(scene: Coroutine[Any, Any, T], seconds: float = 30.0) -> T:
    async def within() -> T:
        async with asyncio.timeout(seconds):
            return await scene

    return asyncio.run(within())


async def python(code: str, directory: Path, ledger: Ledger | None = None) -> Program:
    return await start((sys.executable, "-c", code), directory, environment_for(), ledger)


async def shell(command: str, directory: Path, ledger: Ledger | None = None) -> Program:
    return await start(("/bin/sh", "-c", command), directory, environment_for(), ledger)


def alive(pid: int) -> bool:
    """Whether it runs; one that has ended and was not waited for does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


async def eventually(holds: Callable[[], bool], seconds: float = 10.0) -> bool:
    deadline = time.monotonic() + seconds
    while not holds():
        if time.monotonic() > deadline:
            return False
        await asyncio.sleep(0.01)
    return True


async def pid_in(file: Path) -> int:
    assert await eventually(lambda: file.exists() and file.read_text().strip() != "")
    return int(file.read_text())


def running_with(variable: str) -> list[int]:
    """The processes that have this `NAME=value` in their environment."""
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if variable.encode() in (entry / "environ").read_bytes().split(b"\0"):
                found.append(int(entry.name))
    return found
