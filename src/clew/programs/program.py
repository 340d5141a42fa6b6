"""A program as a process in a group of its own: lines in, lines out, and an end that leaves nothing running."""

import asyncio
import contextlib
import errno
import os
import signal
import time
from collections.abc import AsyncIterator, Mapping, Sequence
from pathlib import Path

from clew.programs.faults import BadArguments, CannotStart, NoProgram, NotUnderstood, ProgramEnded, TooSlow
from clew.programs.ledger import Ledger
from clew.programs.process_tag import Swept, end_tagged, lowest_child, new_tag, tagged_processes
from clew.programs.secrets import Redactor

LONGEST_LINE = 256 * 1024 * 1024
"""Bytes. An agent sends whole files and images in one line."""

SENDING = 30.0
"""Seconds for a program to take a line. One that does not read would keep us for ever."""

_CLOSING = 1.0
_LAST_WORDS = 64 * 1024
_LAST_LINES = 200


class Program:
    """Made by `start`. `last_words` is the end of what it wrote to its error stream, without the secrets it got."""

    def __init__(self, process: asyncio.subprocess.Process, mark: "_Marked", redactor: Redactor) -> None:
        self._process = process
        self._mark = mark
        self._redactor = redactor
        self._errors, self._more = b"", False
        self._reading = asyncio.create_task(self._read_errors())
        self._gone = False

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def returncode(self) -> int | None:
        return self._process.returncode

    @property
    def last_words(self) -> str:
        # Where it was cut, a line may begin with half a secret.
        kept = self._errors.partition(b"\n")[2] if self._more else self._errors
        lines = kept.decode(errors="replace").splitlines()[-_LAST_LINES:]
        return self._redactor.text("\n".join(line.rstrip() for line in lines).strip())

    def processes(self) -> frozenset[int]:
        """The processes that carry its mark: itself, and all that it has started and that still run."""
        return frozenset(tagged_processes(self._mark.mark))

    def end_processes(self, but: frozenset[int]) -> None:
        """End what carries its mark, but for those."""
        for pid in self.processes() - but:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)

    async def send(self, line: bytes, seconds: float = SENDING) -> None:
        stdin = self._process.stdin
        if stdin is None or stdin.is_closing():
            raise ProgramEnded(self._ended_words(), "It is started again for the next turn.")
        try:
            stdin.write(line + b"\n")
            async with asyncio.timeout(seconds):
                await stdin.drain()
        except TimeoutError as fault:
            raise TooSlow(f"The program did not read its input for {seconds:g} s.", "It is started again.") from fault
        except (BrokenPipeError, ConnectionResetError) as fault:
            raise ProgramEnded(self._ended_words(), "It is started again for the next turn.") from fault

    async def close_input(self) -> None:
        """Close its input: many programs end by that alone. What it has not read by then it may still read."""
        stdin = self._process.stdin
        if stdin is not None and not stdin.is_closing():
            stdin.close()
            # Not wait_for, which in Python 3.11 forgets that it was called off when both happen at once.
            with contextlib.suppress(BrokenPipeError, ConnectionResetError, TimeoutError):
                async with asyncio.timeout(_CLOSING):
                    await stdin.wait_closed()

    async def lines(self) -> AsyncIterator[bytes]:
        """What it writes, line by line, until it closes its output."""
        stdout = self._process.stdout
        assert stdout is not None, "every program is started with its output to us"
        try:
            while line := await stdout.readline():
                yield line.rstrip(b"\r\n")
        except ValueError as fault:
            raise NotUnderstood(f"A line was longer than {LONGEST_LINE} bytes.", "Update the program.") from fault

    async def wait(self, seconds: float) -> int | None:
        """Its exit status, or None when it still runs by then.

        Looked at, not waited for: the library waits for its pipes, too, and what it left running may hold those.
        """
        deadline, pause = time.monotonic() + seconds, 0.001
        while self._process.returncode is None and time.monotonic() < deadline:
            await asyncio.sleep(pause)
            pause = min(pause * 2, 0.05)
        return self._process.returncode

    async def final_words(self, seconds: float) -> str:
        """Its last words once it has closed its output: what it wrote to its error stream may still be on the way."""
        await asyncio.wait([self._reading], timeout=seconds)
        await self.wait(seconds)
        return self.last_words

    async def end(self, seconds: float, gently: bool = True) -> None:
        """End it and all that it started: asked first, then made to. Safe to repeat.

        Who is cancelled meanwhile ends it without asking.
        """
        if self._gone:
            return
        try:
            if gently and self._process.returncode is None:
                self._signal(signal.SIGTERM)
                await self.wait(seconds)
            self._signal(signal.SIGKILL)
            self._gone = (await asyncio.to_thread(self._sweep)).clean
            await self.wait(seconds)
            # A grandchild may hold the pipe open; it has just been ended, so this does not wait for long.
            await asyncio.wait([self._reading], timeout=seconds)
        except asyncio.CancelledError:
            self._signal(signal.SIGKILL)
            self._gone = self._sweep().clean
            raise
        finally:
            self._reading.cancel()
            # What could not be ended stays in the ledger for whoever comes next.
            if self._gone:
                self._mark.leave()

    def _sweep(self) -> Swept:
        return end_tagged([self._mark.mark], lowest=lowest_child(self.pid, self._mark.began), over=self.pid)

    def _signal(self, number: signal.Signals) -> None:
        # The group lives on while any of its processes does, so its number cannot have passed to somebody else's.
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, number)

    async def _read_errors(self) -> None:
        stderr = self._process.stderr
        assert stderr is not None, "every program is started with its errors to us"
        while part := await stderr.read(_LAST_WORDS):
            words = self._errors + part
            self._more = self._more or len(words) > _LAST_WORDS
            self._errors = words[-_LAST_WORDS:]

    def _ended_words(self) -> str:
        return f"The program has ended (status {self._process.returncode}): {self.last_words or 'it said nothing'}"


class _Marked:
    def __init__(self, ledger: Ledger | None) -> None:
        self.mark = new_tag()
        self.began = time.monotonic()
        self._ledger = ledger
        if ledger is not None:
            # Before the program is there: a crash in between leaves an entry for nothing, which harms nobody.
            ledger.add(self.mark)

    def leave(self) -> None:
        if self._ledger is not None:
            self._ledger.remove(self.mark)


async def start(
    command: Sequence[str], directory: Path, environment: Mapping[str, str], ledger: Ledger | None = None
) -> Program:
    """Start a program in a directory and a process group of its own. Its environment is what is passed, and no more.

    Called off meanwhile, it comes back when what was started has ended.
    """
    must_be_variables(environment)
    mark = _Marked(ledger)
    starting = asyncio.create_task(
        asyncio.create_subprocess_exec(
            *command,
            cwd=directory,
            env={**environment, **mark.mark.environment},
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            start_new_session=True,
            limit=LONGEST_LINE,
        )
    )
    try:
        # Shielded: the library waits for ever when it is called off before all pipes are there.
        process = await asyncio.shield(starting)
    except asyncio.CancelledError:
        starting.add_done_callback(lambda done: _undo(done, mark))
        await asyncio.wait([starting])
        raise
    except OSError as fault:
        mark.leave()
        raise _not_started(command[0], directory, fault) from fault
    except ValueError as fault:
        mark.leave()
        words = f"{command[0]} cannot be given its arguments: {fault}."
        raise BadArguments(words, "Take zero bytes, and halves of letters, out of them.") from fault
    return Program(process, mark, Redactor(environment))


def _not_started(program: str, directory: Path, fault: OSError) -> CannotStart:
    if fault.errno == errno.E2BIG:
        words = f"{program} cannot be given its arguments: they are longer than the system takes."
        return BadArguments(words, "Make them shorter.")
    words = f"{program} cannot be started in {directory}: {fault.strerror}"
    if str(fault.filename) == str(directory):
        return CannotStart(f"{words} ({directory}).", "Check that the directory exists and may be entered.")
    if fault.filename is not None:
        return NoProgram(f"{words} ({program}).", "Check that the program is installed.")
    return CannotStart(f"{words}.", "Try again when the machine has room.")


def must_be_variables(environment: Mapping[str, str]) -> None:
    """Some of these the system takes, and the program gets another variable, or none."""
    for name, value in environment.items():
        try:
            proper = bool(name) and "=" not in name and b"\0" not in f"{name}{value}".encode(errors="surrogateescape")
        except UnicodeEncodeError:
            proper = False
        if not proper:
            raise BadArguments(f"{name[:80]!r} cannot be a variable of a program.", "Take it out, or mend it.")


def _undo(starting: "asyncio.Task[asyncio.subprocess.Process]", mark: _Marked) -> None:
    """End at once what nobody waits for any more."""
    if not starting.cancelled() and starting.exception() is None:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(starting.result().pid, signal.SIGKILL)
        end_tagged([mark.mark])
    mark.leave()
