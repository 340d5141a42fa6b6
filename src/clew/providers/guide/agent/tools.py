"""The guide's two tools, which run a command and write a file, and what each mode allows."""

import asyncio
import contextlib
import os
import signal
import tempfile
from pathlib import Path

from clew.providers.guide.agent.script import Step

MODES = {
    "read": "Reads, and changes nothing.",
    "ask": "Asks before it runs a command or writes a file.",
    "edit": "Writes files in its directory, and asks before anything else.",
    "full": "Does everything without asking.",
}
_LONGEST = 100_000
"""Bytes. Only the end of a longer output is kept."""


def verdict(mode: str, step: Step, directory: str) -> bool | None:
    """Whether the mode allows it; None if a person must be asked."""
    match mode:
        case "full":
            return True
        case "edit" if step.file is not None and _inside(step.file, directory):
            return True
        case "ask" | "edit":
            return None
        case _:
            return False


async def do(step: Step, directory: str) -> tuple[bool, str]:
    """Whether it succeeded, and its output."""
    if step.file is None:
        return await _run(step.text, directory)
    path = Path(directory) / step.file
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(step.text, encoding="utf-8")
    except OSError as fault:
        return False, str(fault)
    return True, f"{len(step.text)} characters are in {path}."


async def _run(command: str, directory: str) -> tuple[bool, str]:
    # Into a file: a process that the command leaves running would keep a pipe open.
    with tempfile.TemporaryFile() as output:
        shell = await asyncio.create_subprocess_exec(
            "/bin/sh",
            "-c",
            command,
            cwd=directory,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            start_new_session=True,
        )
        try:
            status = await shell.wait()
        except asyncio.CancelledError:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(shell.pid, signal.SIGKILL)
            await shell.wait()
            raise
        output.seek(0, os.SEEK_END)
        output.seek(max(0, output.tell() - _LONGEST))
        text = output.read().decode(errors="replace")
    return status == 0, text if status == 0 else f"{text}\nstatus {status}".strip()


def _inside(file: str, directory: str) -> bool:
    return (Path(directory) / file).resolve().is_relative_to(Path(directory).resolve())
