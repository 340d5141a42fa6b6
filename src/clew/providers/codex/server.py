"""The app-server: one process of Codex, its calls and what it tells by itself.

Each open session has one of its own: the thread is then loaded in no other, so what is sent on opening takes effect.
"""

import asyncio
import contextlib
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from clew import __version__
from clew.ports.provider import Deadlines
from clew.programs.faults import NotUnderstood, ProgramEnded
from clew.programs.ledger import Ledger
from clew.programs.process_tag import end_tagged, new_tag
from clew.programs.program import Program, start
from clew.programs.rpc import Peer
from clew.programs.secrets import Redactor

_COLOURS = re.compile(r"\x1b\[[0-9;]*m")
_NO_SUCH_METHOD = -32601
# With the first, a thread that has a goal is driven on without a prompt, as soon as it is opened; with the second, a
# model that cannot be reached is tried for ever.
_OFF = ("goals", "unbounded_connection_retries")
_TRIES = 3
_PAUSE = 0.3
Json = Mapping[str, Any]


class Listener(Protocol):
    """Who is told. None of it may block."""

    def told(self, method: str, arguments: Json) -> None: ...

    def asked(self, number: int | str, method: str, arguments: Json) -> bool:
        """Whether it will be answered."""
        ...

    def ended(self, words: str) -> None: ...


@dataclass(frozen=True)
class Launch:
    """How the program is started."""

    command: tuple[str, ...]
    environment: Mapping[str, str] = field(repr=False)
    deadlines: Deadlines
    ledger: Ledger | None


class Tools:
    """The mark that commands of the agent carry. It is set as one of their variables, for a home may be set to hand
    nothing of the program's own environment on to them."""

    def __init__(self, ledger: Ledger | None) -> None:
        self._mark, self._ledger = new_tag(), ledger
        if ledger is not None:
            ledger.add(self._mark)

    @property
    def setting(self) -> str:
        ((name, value),) = self._mark.environment.items()
        return f'shell_environment_policy.set.{name}="{value}"'

    async def end(self) -> None:
        await asyncio.to_thread(end_tagged, [self._mark])
        if self._ledger is not None:
            self._ledger.remove(self._mark)


class AppServer:
    """Made by `started`."""

    def __init__(self, launch: Launch, program: Program, tools: Tools) -> None:
        self.redactor = Redactor(launch.environment)
        self.deadlines = launch.deadlines
        self.about: Json = {}
        self._program, self._tools = program, tools
        self._listener: Listener | None = None
        self._lives = True
        self._work: set[asyncio.Task[None]] = set()
        self._peer = Peer(program, self._told, self._asked, self._ended)

    @property
    def lives(self) -> bool:
        return self._lives

    @property
    def words(self) -> str:
        """The end of what it wrote to its error stream."""
        return self.redactor.text(_COLOURS.sub("", self._program.last_words))[-2000:]

    def listen(self, listener: Listener | None) -> None:
        self._listener = listener

    async def call(self, method: str, arguments: Json, seconds: float | None = None) -> Json:
        if not self._lives:
            raise self._has_ended()
        try:
            answer = await self._peer.call(method, arguments, self.deadlines.answer if seconds is None else seconds)
        except ProgramEnded as fault:
            raise self._has_ended() from fault
        if not isinstance(answer, dict):
            raise NotUnderstood(f"{method} was answered with no object.", "Update Codex or Clew.")
        return answer

    async def reply(self, number: int | str, result: Json) -> bool:
        """False when nobody is left to take it."""
        if not self._lives:
            return False
        try:
            await self._peer.reply(number, result)
        except ProgramEnded:
            return False
        return True

    async def close(self) -> None:
        """Its input is closed, which it ends by; what does not end, and what it left, is made to."""
        self._lives = False
        try:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(1.0):
                    await self._program.close_input()
            await self._program.wait(min(2.0, self.deadlines.close))
        finally:
            await self._end(gently=True)
            await self._peer.close()

    def _has_ended(self) -> ProgramEnded:
        return ProgramEnded(f"Codex has ended: {self.words or 'it said nothing'}.", "Open the session again.")

    async def introduce(self) -> None:
        client = {"name": "clew", "title": "Clew", "version": __version__}
        hello = {"clientInfo": client, "capabilities": {"experimentalApi": True}}
        self.about = await self.call("initialize", hello, self.deadlines.start)
        await self._peer.notify("initialized")

    # ---------------------------------------------------------------- what comes in

    def _told(self, method: str, arguments: Json) -> None:
        if self._listener is not None:
            self._listener.told(method, arguments)

    def _asked(self, number: int | str, method: str, arguments: Json) -> None:
        if self._listener is None or not self._listener.asked(number, method, arguments):
            self._do(self._refuse(number, method))

    async def _refuse(self, number: int | str, method: str) -> None:
        with contextlib.suppress(ProgramEnded):
            await self._peer.refuse(number, _NO_SUCH_METHOD, f"Clew does not answer {method}.")

    def _ended(self, words: str) -> None:
        was_closed, self._lives = not self._lives, False
        if self._listener is not None:
            self._listener.ended(self.words or words)
        if not was_closed:
            # It ended by itself, perhaps killed: what it had started must not go on without it.
            self._do(self._end(gently=False))

    async def _end(self, gently: bool) -> None:
        await self._program.end(self.deadlines.close, gently)
        await self._tools.end()

    def _do(self, work: Any) -> None:
        task = asyncio.create_task(work)
        self._work.add(task)
        task.add_done_callback(self._work.discard)


async def started(launch: Launch, directory: Path) -> AppServer:
    """Started and greeted. Two first starts in a new home can trip over one another, so an early end is tried again."""
    for last in (False,) * (_TRIES - 1) + (True,):
        server = await _launched(launch, directory)
        try:
            await server.introduce()
        except ProgramEnded:
            await server.close()
            if last:
                raise
            await asyncio.sleep(_PAUSE)
        except BaseException:
            await asyncio.shield(server.close())
            raise
        else:
            return server
    raise AssertionError("the last try returns or raises")


async def _launched(launch: Launch, directory: Path) -> AppServer:
    tools = Tools(launch.ledger)
    settings = (*(f"features.{name}=false" for name in _OFF), tools.setting)
    command = (*launch.command, *(word for setting in settings for word in ("-c", setting)), "app-server")
    try:
        program = await start(command, directory, launch.environment, launch.ledger)
    except BaseException:
        await tools.end()
        raise
    return AppServer(launch, program, tools)
