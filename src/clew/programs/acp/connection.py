"""A connection to an agent: its process, calls in both directions, and the abilities that it declares."""

import contextlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, Self

from clew import __version__
from clew.programs.faults import CannotStart, NoProgram, NotLoggedIn, NotUnderstood, ProgramEnded, ProgramFault, Refused
from clew.programs.program import Launch, Program
from clew.programs.rpc import CallRefused, Message, Peer
from clew.programs.secrets import Redactor
from clew.programs.state import Scratch
from clew.programs.tasks import TaskSet

PROTOCOL = 1
LOGIN_NEEDED = -32000
"""The error code by which an agent asks for a login."""
_NO_METHOD = -32601
_EARLY = 10
"""How many early mode updates are kept for the listener. The last one counts."""
_OURSELVES = {
    "protocolVersion": PROTOCOL,
    "clientCapabilities": {"fs": {"readTextFile": False, "writeTextFile": False}, "terminal": False},
    "clientInfo": {"name": "clew", "title": "Clew", "version": __version__},
}
_GARBLED = (AttributeError, IndexError, KeyError, TypeError, ValueError)


@dataclass(frozen=True, slots=True)
class AcpLaunch(Launch):
    """`hint` says how to install it. `scratch_in` is a variable that gets a temporary directory."""

    hint: str
    scratch: Scratch
    scratch_in: str | None

    @contextlib.contextmanager
    def temporary(self) -> Iterator[Mapping[str, str]]:
        """The extra variable. Its directory is removed at the end."""
        if self.scratch_in is None or self.scratch_in in self.environment:
            yield {}
            return
        with self.scratch.temporary() as directory:
            yield {self.scratch_in: str(directory)}


@dataclass(frozen=True, slots=True)
class Abilities:
    """What the agent declares that it can do."""

    version: str = ""
    load: bool = False
    resume: bool = False
    fork: bool = False
    list: bool = False
    delete: bool = False

    @classmethod
    def of(cls, answer: Mapping[str, Any]) -> Self:
        can = answer.get("agentCapabilities") or {}
        sessions = can.get("sessionCapabilities") or {}
        info = answer.get("agentInfo") or {}
        return cls(
            version=str(info.get("version") or f"protocol {answer.get('protocolVersion')}"),
            load=can.get("loadSession") is True,
            resume=sessions.get("resume") is not None,
            fork=sessions.get("fork") is not None,
            list=sessions.get("list") is not None,
            delete=sessions.get("delete") is not None,
        )


class Listener(Protocol):
    """Gets the agent's messages. Nothing here may block."""

    def notified(self, method: str, said: Message) -> None: ...

    def requested(self, number: int | str, method: str, said: Message) -> None: ...

    def ended(self, words: str) -> None: ...


class Recorder(Protocol):
    """Gets the updates of a session before there is a listener."""

    def record(self, said: Message) -> None: ...


class Connection:
    """Made by `connect`. Without a listener, requests of the agent are refused and its notifications dropped.

    Exceptions are updates of its mode, which are kept for the listener, and played-back history for a recorder.
    """

    def __init__(self, program: Program, launch: AcpLaunch, cleanup: contextlib.ExitStack) -> None:
        self.abilities = Abilities()
        self._cleanup = cleanup
        self.redactor = Redactor(launch.environment)
        self._program, self._deadlines = program, launch.deadlines
        self._listener: Listener | None = None
        self._early: tuple[tuple[str, Message], ...] = ()
        self._recorder: Recorder | None = None
        self._last_words: str | None = None
        self._peer = Peer(program, self._notified, self._requested, self._ended, {"jsonrpc": "2.0"})
        self._sending = TaskSet()

    def record(self, recorder: Recorder) -> None:
        self._recorder = recorder

    def listen(self, listener: Listener) -> None:
        self._listener = listener
        early, self._early = self._early, ()
        for method, said in early:
            self._notified(method, said)
        if self._last_words is not None:
            listener.ended(self._last_words)

    @property
    def lives(self) -> bool:
        return self._last_words is None

    async def call(self, method: str, arguments: Message, seconds: float | None = None) -> Mapping[str, Any]:
        """The answer, which must be an object. Raises `CallRefused` if the agent answers with an error."""
        answer = await self._peer.call(method, arguments, self._deadlines.answer if seconds is None else seconds)
        if answer is None:
            return {}
        if not isinstance(answer, Mapping):
            raise NotUnderstood(f"The answer to {method} is no object.", "Update the agent.")
        return answer

    async def must(self, method: str, arguments: Message, seconds: float | None = None) -> Mapping[str, Any]:
        """As `call`, but an error is raised as `Refused` with the agent's words."""
        try:
            return await self.call(method, arguments, seconds)
        except CallRefused as refusal:
            raise refused(method, refusal, self.redactor) from refusal

    async def notify(self, method: str, arguments: Message) -> None:
        await self._peer.notify(method, arguments)

    def reply(self, number: int | str, result: Message) -> None:
        self._send(self._peer.reply(number, result))

    def refuse(self, number: int | str, method: str) -> None:
        self._send(self._peer.refuse(number, _NO_METHOD, f"Clew does not offer {method}."))

    def processes(self) -> frozenset[int]:
        return self._program.processes()

    def end_processes(self, but: frozenset[int]) -> None:
        self._program.end_processes(but)

    async def end(self, flush: float = 0.0) -> None:
        """End the agent and all it started. With `flush`, it first gets that long to write its store."""
        try:
            if self.lives and flush:
                await self._program.close_input()
                await self._program.wait(min(flush, self._deadlines.close))
        finally:
            try:
                await self._program.end(self._deadlines.close)
            finally:
                self._cleanup.close()
            await self._peer.close()

    def _send(self, sending: Any) -> None:
        async def send() -> None:
            try:
                await sending
            except ProgramFault:
                # It has ended, and the listener is told.
                return

        self._sending.start(send())

    def _notified(self, method: str, said: Message) -> None:
        if self._listener is None:
            self._early = (*self._early, (method, said))[-_EARLY:] if _is_mode_update(said) else self._early
            if self._recorder is not None and method == "session/update":
                with contextlib.suppress(*_GARBLED):
                    self._recorder.record(said)
        else:
            # A garbled message is skipped; the next one may be good.
            with contextlib.suppress(*_GARBLED):
                self._listener.notified(method, said)

    def _requested(self, number: int | str, method: str, said: Message) -> None:
        if self._listener is None:
            self.refuse(number, method)
            return
        try:
            self._listener.requested(number, method, said)
        except _GARBLED:
            self.refuse(number, method)

    def _ended(self, words: str) -> None:
        self._last_words = self.redactor.text(words)
        if self._listener is not None:
            self._listener.ended(self._last_words)


async def connect(launch: AcpLaunch, directory: Path) -> Connection:
    """Start the agent and initialize the protocol. If that fails, nothing of it is left."""
    with contextlib.ExitStack() as stack:
        extra = stack.enter_context(launch.temporary())
        try:
            program = await launch.start(directory, extra=extra)
        except NoProgram as fault:
            raise NoProgram(fault.words, f"{fault.remedy} {launch.hint}") from fault
        connection = Connection(program, launch, stack.pop_all())
    try:
        answer = await connection.must("initialize", _OURSELVES, launch.deadlines.start)
        if answer.get("protocolVersion") != PROTOCOL:
            raise NotUnderstood(
                f"The agent speaks version {answer.get('protocolVersion')} of the protocol, Clew version {PROTOCOL}.",
                "Update the agent or Clew.",
            )
    except ProgramEnded as fault:
        await connection.end()
        words = f"{launch.command[0]} ended at once: {connection.redactor.text(fault.words)}"
        raise CannotStart(words, "Start it yourself in a terminal to see why.") from fault
    except BaseException:
        await connection.end()
        raise
    connection.abilities = Abilities.of(answer)
    return connection


def _is_mode_update(said: Message) -> bool:
    try:
        return said["update"]["sessionUpdate"] in ("current_mode_update", "config_option_update")
    except _GARBLED:
        return False


def refused(method: str, refusal: CallRefused, redactor: Redactor) -> Refused:
    details = refusal.data.get("details") if isinstance(refusal.data, Mapping) else None
    words = redactor.text(f"{refusal.words} ({details})" if details else refusal.words)
    if refusal.code == LOGIN_NEEDED:
        return NotLoggedIn(f"The agent is not logged in: {words.rstrip('.')}.", "Log in with its own program.")
    return Refused(f"The agent refused {method}: {words} [{refusal.code}].", "Look at the agent's own log.")
