"""A program as a process in its own group: its environment, its lines, and an end that leaves nothing running."""

import asyncio
import contextlib
import errno
import os
import shutil
import signal
import time
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from clew.ports.provider import Deadlines
from clew.programs.checks import check_variables
from clew.programs.faults import BadArguments, CannotStart, NoProgram, NotUnderstood, ProgramEnded, TooSlow
from clew.programs.process_tag import Swept, end_tagged, lowest_child, tagged_processes
from clew.programs.secrets import Redactor
from clew.programs.state import Ledger, LedgerEntry

# Programs, language, terminal, certificates and proxies. Everything else must be given to the agent explicitly.
PASSED_ON = (
    "PATH",
    "LANG",
    "LC_ALL",
    "LC_CTYPE",
    "TZ",
    "TERM",
    "TMPDIR",
    "USER",
    "LOGNAME",
    "SHELL",
    "SSL_CERT_FILE",
    "SSL_CERT_DIR",
    "NODE_EXTRA_CA_CERTS",
    "REQUESTS_CA_BUNDLE",
    "HTTP_PROXY",
    "HTTPS_PROXY",
    "NO_PROXY",
    "http_proxy",
    "https_proxy",
    "no_proxy",
    "SSH_AUTH_SOCK",
)


def environment_for(*parts: Mapping[str, str], of: Mapping[str, str] | None = None) -> dict[str, str]:
    """PASSED_ON and HOME of our environment (or `of`), then the parts in order: a later one overrides."""
    ours = os.environ if of is None else of
    result = {name: ours[name] for name in (*PASSED_ON, "HOME") if name in ours}
    for part in parts:
        result.update(part)
    return result


LONGEST_LINE = 256 * 1024 * 1024
"""Bytes. An agent sends whole files and images in one line."""

SENDING = 30.0
"""Seconds for a program to read a line. Without a limit, one that does not read would block us for ever."""

_CLOSING = 1.0
_LAST_WORDS = 64 * 1024
_LAST_LINES = 200


@dataclass(frozen=True, slots=True)
class Output:
    """What a program wrote until it ended. `words` is the end of its error stream."""

    status: int | None
    lines: list[bytes]
    words: str


class Program:
    """Made by `start`. `last_words` is the end of its error stream, without the secrets it was given."""

    def __init__(self, process: asyncio.subprocess.Process, entry: LedgerEntry, redactor: Redactor) -> None:
        self._process = process
        self._entry = entry
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
        # The first line may be cut within a secret.
        kept = self._errors.partition(b"\n")[2] if self._more else self._errors
        lines = kept.decode(errors="replace").splitlines()[-_LAST_LINES:]
        return self._redactor.text("\n".join(line.rstrip() for line in lines).strip())

    def processes(self) -> frozenset[int]:
        """The running processes with its tag: itself, and all that it has started."""
        return frozenset(tagged_processes(self._entry.tag))

    def end_processes(self, but: frozenset[int]) -> None:
        """End its processes, except those."""
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
        """Many programs end when their input is closed. What was written before can still be read."""
        stdin = self._process.stdin
        if stdin is not None and not stdin.is_closing():
            stdin.close()
            # Not wait_for: in Python 3.11 it loses a cancellation that comes at the same time as the result.
            with contextlib.suppress(BrokenPipeError, ConnectionResetError, TimeoutError):
                async with asyncio.timeout(_CLOSING):
                    await stdin.wait_closed()

    async def lines(self) -> AsyncIterator[bytes]:
        """Its output, line by line, until it closes it."""
        stdout = self._process.stdout
        assert stdout is not None, "every program is started with its output to us"
        try:
            while line := await stdout.readline():
                yield line.rstrip(b"\r\n")
        except ValueError as fault:
            raise NotUnderstood(f"A line was longer than {LONGEST_LINE} bytes.", "Update the program.") from fault

    async def wait(self, seconds: float) -> int | None:
        """Its exit status, or None if it still runs after that time.

        Polled: asyncio's own wait also waits for the pipes, which a process that it left running may hold open.
        """
        deadline, pause = time.monotonic() + seconds, 0.001
        while self._process.returncode is None and time.monotonic() < deadline:
            await asyncio.sleep(pause)
            pause = min(pause * 2, 0.05)
        return self._process.returncode

    async def output(self, seconds: float, close: float) -> Output:
        """Its whole output, once it has ended without any input. Raises `TooSlow` if that takes longer; it is ended."""
        try:
            await self.close_input()
            async with asyncio.timeout(seconds):
                lines = [line async for line in self.lines()]
                words = await self.final_words(seconds)
        except TimeoutError as fault:
            raise TooSlow(f"The program did not end within {seconds:g} s.", "Start it in a terminal.") from fault
        finally:
            await self.end(close)
        return Output(self.returncode, lines, words)

    async def final_words(self, seconds: float) -> str:
        """Its last words, once it has closed its output: its error stream may not be read to the end yet."""
        await asyncio.wait([self._reading], timeout=seconds)
        await self.wait(seconds)
        return self.last_words

    async def end(self, seconds: float, gently: bool = True) -> None:
        """End it and all that it started: SIGTERM first if `gently`, then SIGKILL. Safe to repeat.

        If the caller is cancelled meanwhile, it is killed at once.
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
            # A grandchild may have held the pipe open; it has just been ended.
            await asyncio.wait([self._reading], timeout=seconds)
        except asyncio.CancelledError:
            self._signal(signal.SIGKILL)
            self._gone = self._sweep().clean
            raise
        finally:
            self._reading.cancel()
            # A process that could not be ended stays in the ledger for the next start.
            if self._gone:
                self._entry.remove()

    def _sweep(self) -> Swept:
        return end_tagged([self._entry.tag], lowest=lowest_child(self.pid, self._entry.began), over=self.pid)

    def _signal(self, number: signal.Signals) -> None:
        # The group exists while any of its processes does, so its id cannot belong to another group.
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


@dataclass(frozen=True, slots=True)
class Launch:
    """How an agent's program is started."""

    command: tuple[str, ...]
    environment: Mapping[str, str] = field(repr=False)
    deadlines: Deadlines
    ledger: Ledger | None

    async def start(self, directory: Path, *arguments: str, extra: Mapping[str, str] | None = None) -> Program:
        return await start((*self.command, *arguments), directory, {**self.environment, **(extra or {})}, self.ledger)

    async def run(self, *arguments: str, seconds: float, directory: Path = Path("/")) -> Output:
        """Start it and read its output to the end. Raises `TooSlow` if that takes longer."""
        program = await self.start(directory, *arguments)
        return await program.output(seconds, self.deadlines.close)


def find_program(given: Sequence[str], name: str, path: str | None, remedy: str) -> tuple[str, ...]:
    """The command line that the settings name, or the program of that name on the search path."""
    if given:
        return tuple(given)
    found = shutil.which(name, path=path)
    if found is None:
        raise NoProgram(f"There is no program {name} on the PATH of the server.", remedy)
    return (found,)


async def start(
    command: Sequence[str], directory: Path, environment: Mapping[str, str], ledger: Ledger | None = None
) -> Program:
    """Start a program in a directory, in its own process group, with exactly that environment and its tag.

    If the caller is cancelled meanwhile, this returns when what was started has ended.
    """
    check_variables(environment)
    entry = LedgerEntry(ledger)
    starting = asyncio.create_task(
        asyncio.create_subprocess_exec(
            *command,
            cwd=directory,
            env={**environment, **entry.tag.environment},
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            start_new_session=True,
            limit=LONGEST_LINE,
        )
    )
    try:
        # Shielded: asyncio waits for ever if it is cancelled before all pipes are connected.
        process = await asyncio.shield(starting)
    except asyncio.CancelledError:
        starting.add_done_callback(lambda done: _undo(done, entry))
        await asyncio.wait([starting])
        raise
    except OSError as fault:
        entry.remove()
        raise _not_started(command[0], directory, fault) from fault
    except ValueError as fault:
        entry.remove()
        words = f"{command[0]} cannot be given its arguments: {fault}."
        raise BadArguments(words, "Remove zero bytes and halves of characters from them.") from fault
    return Program(process, entry, Redactor(environment))


def _not_started(program: str, directory: Path, fault: OSError) -> CannotStart:
    if fault.errno == errno.E2BIG:
        words = f"{program} cannot be given its arguments: they are longer than the system allows."
        return BadArguments(words, "Make them shorter.")
    words = f"{program} cannot be started in {directory}: {fault.strerror}"
    if str(fault.filename) == str(directory):
        return CannotStart(f"{words} ({directory}).", "Check that the directory exists and may be entered.")
    if fault.filename is not None and not Path(program).exists():
        where = "" if os.sep in program else " on the PATH of the server"
        return NoProgram(f"There is no program {program}{where}.", "Install it again.")
    if fault.filename is not None:
        return NoProgram(f"{program} cannot be started: {fault.strerror}.", "Check that it is a program and is yours.")
    return CannotStart(f"{words}.", "Try again when the machine has free memory and processes.")


def _undo(starting: "asyncio.Task[asyncio.subprocess.Process]", entry: LedgerEntry) -> None:
    """Kill a program whose caller was cancelled."""
    if not starting.cancelled() and starting.exception() is None:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(starting.result().pid, signal.SIGKILL)
        end_tagged([entry.tag])
    entry.remove()
