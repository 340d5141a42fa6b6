"""The setup of a project: what is run in a worktree once it is made, until all of it has ended well."""

import asyncio
import contextlib
import time
from pathlib import Path

from clew.ports.workspaces import Progress, Setup
from clew.programs.ledger import Ledger
from clew.programs.program import Program, start
from clew.programs.secrets import Redactor
from clew.workspaces.faults import CannotMake
from clew.workspaces.layout import Layout
from clew.workspaces.output import Output

_ENDING = 5.0


async def run_setup(
    setup: Setup, directory: Path, output: Path, layout: Layout, progress: Progress | None = None
) -> Path | None:
    """Each command by the shell, one after the other; the first that fails ends it. Where its output is."""
    if not setup.commands:
        return None
    # What a setup of a process that was killed has left going would work against this one.
    ledger = Ledger(layout.ledger)
    await asyncio.to_thread(ledger.end_orphans)
    deadline = time.monotonic() + setup.seconds
    with Output(output) as written:
        for command in setup.commands:
            written.take(f"$ {command}")
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
    # One stream, in the order it was written.
    shell = ("/bin/sh", "-c", f"exec 2>&1\n{command}")
    program = await start(shell, directory, setup.environment, ledger)
    try:
        await program.close_input()
        async with asyncio.timeout(max(0.0, deadline - time.monotonic())):
            status = await _follow(program, Redactor(setup.environment), written, progress)
    except TimeoutError as fault:
        words = f"its setup did not end within {setup.seconds:g} s: {command!r}. {_last(written)}"
        raise CannotMake(words, f"All of its output is in {written.path}.") from fault
    finally:
        await program.end(_ENDING)
    if status != 0:
        words = f"its setup {command!r} ended with status {status}. {_last(written)}"
        raise CannotMake(words, f"All of its output is in {written.path}.")


async def _follow(program: Program, redactor: Redactor, written: Output, progress: Progress | None) -> int:
    """Until it has ended; what it left running in the background may hold its output open, and is not waited for."""
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
        written.take(text)
        if progress is not None:
            progress(text)


def _last(written: Output) -> str:
    """As one sentence: on one line, its lines must not run into one another, nor into what follows."""
    lines = " / ".join(" ".join(line.split()) for line in written.last_words.splitlines())
    return f'Its last words: "{lines}".'
