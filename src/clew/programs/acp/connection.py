"""A connection to an agent: its process, calls in both directions, and what it said of itself when they met."""

import asyncio
import contextlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol, Self

from clew import __version__
from clew.ports.provider import Deadlines
from clew.programs.faults import CannotStart, NoProgram, NotUnderstood, ProgramEnded, ProgramFault, Refused
from clew.programs.ledger import Ledger
from clew.programs.program import Program, start
from clew.programs.rpc import CallRefused, Message, Peer
from clew.programs.scratch import Scratch
from clew.programs.secrets import Redactor

PROTOCOL = 1
_NO_METHOD = -32601
_EARLY = 10
"""So many of what is kept for the listener; the last counts."""
_OURSELVES = {
    "protocolVersion": PROTOCOL,
    "clientCapabilities": {"fs": {"readTextFile": False, "writeTextFile": False}, "terminal": False},
    "clientInfo": {"name": "clew", "title": "Clew", "version": __version__},
}
_GARBLED = (AttributeError, IndexError, KeyError, TypeError, ValueError)


@dataclass(frozen=True, slots=True)
class Launch:
    """How an agent is started. `environment` is all it gets, but for a directory of its own where `scratch_in` says."""

    command: Sequence[str]
    environment: Mapping[str, str] = field(repr=False)
    deadlines: Deadlines
    ledger: Ledger | None
    hint: str
    scratch: Scratch
    scratch_in: str | None

    @contextlib.contextmanager
    def beside(self) -> Iterator[Mapping[str, str]]:
        """The environment; what lies in the directory of its own goes in the end."""
        if self.scratch_in is None or self.scratch_in in self.environment:
            yield self.environment
            return
        with self.scratch.temporary() as directory:
            yield {**self.environment, self.scratch_in: str(directory)}


@dataclass(frozen=True, slots=True)
class Abilities:
    """What the agent declared."""

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
        told = answer.get("agentInfo") or {}
        return cls(
            version=str(told.get("version") or f"protocol {answer.get('protocolVersion')}"),
            load=can.get("loadSession") is True,
            resume=sessions.get("resume") is not None,
            fork=sessions.get("fork") is not None,
            list=sessions.get("list") is not None,
            delete=sessions.get("delete") is not None,
        )


class Listener(Protocol):
    """Who hears what the agent says. Nothing here may block."""

    def told(self, method: str, said: Message) -> None: ...

    def asked(self, number: int | str, method: str, said: Message) -> None: ...

    def ended(self, words: str) -> None: ...


class Overhearing(Protocol):
    """Who hears what is said of a session before it is opened."""

    def overhear(self, said: Message) -> None: ...


class Connection:
    """Made by `connect`. Before somebody listens, what the agent asks is refused, and what it tells is dropped,
    unless it tells of its mode, or somebody overhears the history that it plays back."""

    def __init__(self, program: Program, launch: Launch, beside: contextlib.ExitStack) -> None:
        self.abilities = Abilities()
        self._beside = beside
        self.redactor = Redactor(launch.environment)
        self._program, self._deadlines = program, launch.deadlines
        self._listener: Listener | None = None
        self._early: tuple[tuple[str, Message], ...] = ()
        self._overhearing: Overhearing | None = None
        self._last_words: str | None = None
        self._peer = Peer(program, self._told, self._asked, self._ended, {"jsonrpc": "2.0"})
        self._sending: set[asyncio.Task[None]] = set()

    def overhear(self, overhearing: Overhearing) -> None:
        self._overhearing = overhearing

    def listen(self, listener: Listener) -> None:
        self._listener = listener
        early, self._early = self._early, ()
        for method, said in early:
            self._told(method, said)
        if self._last_words is not None:
            listener.ended(self._last_words)

    @property
    def lives(self) -> bool:
        return self._last_words is None

    async def call(self, method: str, arguments: Message, seconds: float | None = None) -> Mapping[str, Any]:
        """The answer, which is an object; `CallRefused` where the agent answers with an error."""
        answer = await self._peer.call(method, arguments, self._deadlines.answer if seconds is None else seconds)
        if answer is None:
            return {}
        if not isinstance(answer, Mapping):
            raise NotUnderstood(f"The answer to {method} is no object.", "Update the agent.")
        return answer

    async def must(self, method: str, arguments: Message, seconds: float | None = None) -> Mapping[str, Any]:
        """The answer; an error is a fault that tells the agent's words."""
        try:
            return await self.call(method, arguments, seconds)
        except CallRefused as refusal:
            raise refused(method, refusal, self.redactor) from refusal

    async def tell(self, method: str, arguments: Message) -> None:
        await self._peer.notify(method, arguments)

    def reply(self, number: int | str, result: Message) -> None:
        self._send(self._peer.reply(number, result))

    def refuse(self, number: int | str, method: str) -> None:
        self._send(self._peer.refuse(number, _NO_METHOD, f"Clew does not offer {method}."))

    def family(self) -> frozenset[int]:
        return self._program.processes()

    def end_family(self, but: frozenset[int]) -> None:
        self._program.end_processes(but)

    async def end(self, flush: float = 0.0) -> None:
        """End the agent and all it started; where it had a session, it gets a moment to put its store in order."""
        try:
            if self.lives and flush:
                await self._program.close_input()
                await self._program.wait(min(flush, self._deadlines.close))
        finally:
            try:
                await self._program.end(self._deadlines.close)
            finally:
                self._beside.close()
            await self._peer.close()

    def _send(self, sending: Any) -> None:
        async def send() -> None:
            try:
                await sending
            except ProgramFault:
                # It has ended, and whoever listens is told so.
                return

        task = asyncio.create_task(send())
        self._sending.add(task)
        task.add_done_callback(self._sending.discard)

    def _told(self, method: str, said: Message) -> None:
        if self._listener is None:
            self._early = (*self._early, (method, said))[-_EARLY:] if _is_of_a_mode(said) else self._early
            if self._overhearing is not None and method == "session/update":
                with contextlib.suppress(*_GARBLED):
                    self._overhearing.overhear(said)
        else:
            # A message that is garbled says nothing, and is no reason to hear the next one no more.
            with contextlib.suppress(*_GARBLED):
                self._listener.told(method, said)

    def _asked(self, number: int | str, method: str, said: Message) -> None:
        if self._listener is None:
            self.refuse(number, method)
            return
        try:
            self._listener.asked(number, method, said)
        except _GARBLED:
            self.refuse(number, method)

    def _ended(self, words: str) -> None:
        self._last_words = self.redactor.text(words)
        if self._listener is not None:
            self._listener.ended(self._last_words)


async def connect(launch: Launch, directory: Path) -> Connection:
    """Start the agent and meet it. Whatever goes wrong, nothing of it is left."""
    with contextlib.ExitStack() as stack:
        environment = stack.enter_context(launch.beside())
        try:
            program = await start(launch.command, directory, environment, launch.ledger)
        except NoProgram as fault:
            raise NoProgram(fault.words, f"{fault.remedy} {launch.hint}") from fault
        connection = Connection(program, launch, stack.pop_all())
    try:
        answer = await connection.must("initialize", _OURSELVES, launch.deadlines.start)
        if answer.get("protocolVersion") != PROTOCOL:
            raise NotUnderstood(
                f"The agent speaks version {answer.get('protocolVersion')} of the protocol, Clew version {PROTOCOL}.",
                "Use versions of both that fit.",
            )
    except ProgramEnded as fault:
        await connection.end()
        words = f"{launch.command[0]} ended at once: {connection.redactor.text(fault.words)}"
        raise CannotStart(words, "Look at what it says, and whether it runs by itself.") from fault
    except BaseException:
        await connection.end()
        raise
    connection.abilities = Abilities.of(answer)
    return connection


def _is_of_a_mode(said: Message) -> bool:
    try:
        return said["update"]["sessionUpdate"] in ("current_mode_update", "config_option_update")
    except _GARBLED:
        return False


def refused(method: str, refusal: CallRefused, redactor: Redactor) -> Refused:
    details = refusal.data.get("details") if isinstance(refusal.data, Mapping) else None
    words = redactor.text(f"{refusal.words} ({details})" if details else refusal.words)
    return Refused(f"The agent refused {method}: {words} [{refusal.code}].", "Look at the agent's own log.")
