"""The setup of a project: the commands that run in a worktree once it is made, until all have succeeded."""

import asyncio
import contextlib
import time
from collections import deque
from pathlib import Path
from types import TracebackType
from typing import Self

from clew.ports.workspaces import Progress, Setup
from clew.programs.program import Program, start
from clew.programs.secrets import Redactor
from clew.programs.state import Ledger
from clew.workspaces.faults import CannotMake
from clew.workspaces.layout import Layout

_ENDING = 5.0


HEAD = 1024 * 1024
TAIL = 64 * 1024
_LAST_LINES = 8
_LAST_WORDS = 1000


class Output:
    def __init__(self, path: Path) -> None:
        self.path = path
        self._room = HEAD
        self._tail: deque[bytes] = deque()
        self._tail_size = 0
        self._left_out = 0
        self._last: deque[str] = deque(maxlen=_LAST_LINES)

    def __enter__(self) -> Self:
        self.path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        self._file = self.path.open("wb")
        return self

    def __exit__(self, kind: type[BaseException] | None, fault: BaseException | None, at: TracebackType | None) -> None:
        with self._file:
            if self._left_out:
                self._file.write(f"[{self._left_out} bytes are left out]\n".encode())
            for line in self._tail:
                self._file.write(line)

    @property
    def last_words(self) -> str:
        return "\n".join(self._last)[-_LAST_WORDS:]

    def add(self, text: str) -> None:
        if text.strip():
            self._last.append(text)
        line = text.encode(errors="replace") + b"\n"
        if len(line) <= self._room:
            self._room -= len(line)
            self._file.write(line)
            self._file.flush()
            return
        self._room = 0
        self._tail.append(line[-TAIL:])
        self._left_out += len(line) - len(self._tail[-1])
        self._tail_size += len(self._tail[-1])
        while self._tail_size > TAIL:
            gone = len(self._tail.popleft())
            self._tail_size -= gone
            self._left_out += gone


async def run_setup(
    setup: Setup, directory: Path, output: Path, layout: Layout, progress: Progress | None = None
) -> Path | None:
    """Run each command in a shell, one after the other, until one fails. Returns the file of their output."""
    if not setup.commands:
        return None
    # A setup that a killed process left running would work against this one, so it is ended first.
    ledger = Ledger(layout.ledger)
    await asyncio.to_thread(ledger.end_orphans)
    deadline = time.monotonic() + setup.seconds
    with Output(output) as written:
        for command in setup.commands:
            written.add(f"$ {command}")
            await _run(command, setup, directory, written, deadline, ledger, progress)
    return output


async def _run(
    command: str,
    setup: Setup,
    directory: Path,
    written: Output,
    deadline: float,
    ledger: Ledger,
    progress: Progress | None,
) -> None:
    # Both streams as one, in the order of writing.
    shell = ("/bin/sh", "-c", f"exec 2>&1\n{command}")
    program = await start(shell, directory, setup.environment, ledger)
    try:
        await program.close_input()
        async with asyncio.timeout(max(0.0, deadline - time.monotonic())):
            status = await _follow(program, Redactor(setup.environment), written, progress)
    except TimeoutError as fault:
        words = f"its setup {command!r} did not end within {setup.seconds:g} s. {_last(written)}"
        raise CannotMake(words, f"The whole output is in {written.path}.") from fault
    finally:
        await program.end(_ENDING)
    if status != 0:
        words = f"its setup {command!r} ended with status {status}. {_last(written)}"
        raise CannotMake(words, f"The whole output is in {written.path}.")


async def _follow(program: Program, redactor: Redactor, written: Output, progress: Progress | None) -> int:
    """Until it has ended. A background process that it left may hold its output open; that is not waited for."""
    reading = asyncio.create_task(_read(program, redactor, written, progress))
    try:
        while (status := await program.wait(60.0)) is None:
            pass
        await asyncio.wait([reading], timeout=0.5)
        if reading.done():
            reading.result()
        return status
    finally:
        reading.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await reading


async def _read(program: Program, redactor: Redactor, written: Output, progress: Progress | None) -> None:
    async for line in program.lines():
        text = redactor.text(line.decode(errors="replace"))
        written.add(text)
        if progress is not None:
            progress(text)


def _last(written: Output) -> str:
    """The last lines as one sentence, with separators: joined plainly they would run into one another."""
    lines = " / ".join(" ".join(line.split()) for line in written.last_words.splitlines())
    return f'Its last output: "{lines}".'
