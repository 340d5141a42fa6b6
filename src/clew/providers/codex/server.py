"""The app-server: one process of Codex, the calls to it, and its notifications and requests.

Each open session has its own: the thread is then loaded in no other process, so the settings sent on opening take
effect.
"""

import asyncio
import contextlib
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Protocol

from clew import __version__
from clew.programs.faults import NotUnderstood, ProgramEnded
from clew.programs.program import Launch, Program
from clew.programs.rpc import Peer
from clew.programs.secrets import Redactor
from clew.programs.state import LedgerEntry
from clew.programs.tasks import TaskSet

_COLOURS = re.compile(r"\x1b\[[0-9;]*m")
_NO_SUCH_METHOD = -32601
# With the first, Codex goes on with a thread that has a goal as soon as it is opened, without a prompt; with the
# second, it retries a model that cannot be reached for ever.
_OFF = ("goals", "unbounded_connection_retries")
_TRIES = 3
_PAUSE = 0.3
Json = Mapping[str, Any]


class Listener(Protocol):
    """None of these may block."""

    def on_notification(self, method: str, arguments: Json) -> None: ...

    def on_request(self, number: int | str, method: str, arguments: Json) -> bool:
        """Returns whether the request will be answered."""
        ...

    def on_end(self, words: str) -> None: ...


class AppServer:
    """Made by `start_server`."""

    def __init__(self, launch: Launch, program: Program, tools: LedgerEntry) -> None:
        self.redactor = Redactor(launch.environment)
        self.deadlines = launch.deadlines
        self._program, self._tools = program, tools
        self._listener: Listener | None = None
        self._lives = True
        self._work = TaskSet()
        self._peer = Peer(program, self._notified, self._requested, self._ended)

    @property
    def lives(self) -> bool:
        return self._lives

    @property
    def words(self) -> str:
        """The end of its error stream."""
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
        """False when the program has ended."""
        if not self._lives:
            return False
        try:
            await self._peer.reply(number, result)
        except ProgramEnded:
            return False
        return True

    async def close(self) -> None:
        """Close its input, by which it ends; kill it if it does not, and what it left running."""
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
        await self.call("initialize", hello, self.deadlines.start)
        await self._peer.notify("initialized")

    # ---------------------------------------------------------------- notifications and requests

    def _notified(self, method: str, arguments: Json) -> None:
        if self._listener is not None:
            self._listener.on_notification(method, arguments)

    def _requested(self, number: int | str, method: str, arguments: Json) -> None:
        if self._listener is None or not self._listener.on_request(number, method, arguments):
            self._work.start(self._refuse(number, method))

    async def _refuse(self, number: int | str, method: str) -> None:
        with contextlib.suppress(ProgramEnded):
            await self._peer.refuse(number, _NO_SUCH_METHOD, f"Clew does not answer {method}.")

    def _ended(self, words: str) -> None:
        was_closed, self._lives = not self._lives, False
        if self._listener is not None:
            self._listener.on_end(self.words or words)
        if not was_closed:
            # It ended by itself, perhaps killed: what it had started must not go on without it.
            self._work.start(self._end(gently=False))

    async def _end(self, gently: bool) -> None:
        await self._program.end(self.deadlines.close, gently)
        await self._tools.end_processes()
        self._tools.remove()


async def start_server(launch: Launch, directory: Path) -> AppServer:
    """Start and initialize. Two first starts in a new home can disturb each other, so an early end is retried."""
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
    # Commands of the agent get a tag of their own, set as one of their variables: a home may be set to pass nothing of
    # the program's environment on to them.
    tools = LedgerEntry(launch.ledger)
    ((name, value),) = tools.tag.environment.items()
    tagging = f'shell_environment_policy.set.{name}="{value}"'
    settings = (*(f"features.{name}=false" for name in _OFF), tagging)
    arguments = (word for setting in settings for word in ("-c", setting))
    try:
        program = await launch.start(directory, *arguments, "app-server")
    except BaseException:
        await tools.end_processes()
        tools.remove()
        raise
    return AppServer(launch, program, tools)
