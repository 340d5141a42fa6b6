"""OpenCode's server: one process per home, started when it is needed, with all that it started ended at the end."""

import asyncio
import contextlib
import re
import shutil
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from clew.programs.faults import CannotStart, ProgramEnded, ProgramFault, TooSlow
from clew.programs.program import Program
from clew.programs.tasks import cancelled_from_outside, closed_provider
from clew.providers.opencode.faults import CutOff, NotListening
from clew.providers.opencode.launch import USER, OpenCodeLaunch, for_server
from clew.providers.opencode.messages import Json
from clew.providers.opencode.plugin import Gate

if TYPE_CHECKING:
    from clew.providers.opencode.http import Answer, Http

T = TypeVar("T")

_LISTENING = re.compile(rb"listening on http://127\.0\.0\.1:(\d+)")
_HEARTBEATS_MISSED = 60.0
"""Seconds. A server sends a heartbeat every 10 s; one that sends none for this long counts as dead."""
_NOTICED = 1.0
"""Seconds within which the end of a process is noticed."""
_ONE_TRY = 5.0
"""Seconds. A call that arrives while the server starts may never be answered, so it is repeated."""


class Listener:
    """`on_event` gets every event of the server, and `on_end` its last words, once."""

    def __init__(self, on_event: Callable[[Json], None], on_end: Callable[[str], None]) -> None:
        self.on_event, self.on_end = on_event, on_end


class Server:
    """Made by `_start`. `directory` is its own, for the files of its plugin."""

    def __init__(self, launch: OpenCodeLaunch, program: Program, http: "Http", directory: Path) -> None:
        self.directory = directory
        self.gate = Gate(directory)
        self._launch, self._program, self._http = launch, program, http
        self._listeners: set[Listener] = set()
        self._over: str | None = None
        self._tasks: list[asyncio.Task[None]] = []
        self._clearing: asyncio.Task[None] | None = None

    @property
    def alive(self) -> bool:
        return self._over is None and self._program.returncode is None

    async def call(self, method: str, path: str, body: Json | None = None, seconds: float | None = None) -> "Answer":
        try:
            return await self._http.call(method, path, body, seconds or self._launch.deadlines.answer)
        except NotListening:
            if self._tasks:
                # It listened before, so it has ended, even if that was not noticed yet.
                self._mark_over(await self._program.final_words(_NOTICED) or "It does not listen any more.")
            raise

    async def has_ended(self) -> bool:
        """Whether it has ended, as far as that is noticed within a second."""
        if self.alive:
            await self._program.wait(_NOTICED)
        return not self.alive

    async def is_gone(self) -> bool:
        """Whether its process has ended, so that it writes nothing more."""
        return await self._program.wait(_NOTICED) is not None

    def listen(self, listener: Listener) -> None:
        if self._over is not None:
            raise NotListening(f"OpenCode's server has ended: {self._over}", "It is started again.")
        self._listeners.add(listener)

    def unlisten(self, listener: Listener) -> None:
        self._listeners.discard(listener)

    async def end(self, gently: bool = True) -> None:
        if self._over is None:
            # Its end may not have been noticed before another server is needed.
            words = "It was ended." if self.alive else await self._last_words()
            self._mark_over(words, by_us=True)
        for task in self._tasks:
            task.cancel()
        try:
            await self._program.end(self._launch.deadlines.close, gently)
            await asyncio.gather(*self._tasks, *filter(None, [self._clearing]), return_exceptions=True)
        finally:
            shutil.rmtree(self.directory, ignore_errors=True)

    # ---------------------------------------------------------------- output and events

    async def follow(self) -> None:
        """Read its output and events from now on. Returns when the first event has arrived."""
        begun = asyncio.get_running_loop().create_future()
        self._tasks = [asyncio.create_task(self._read_output()), asyncio.create_task(self._read_events(begun))]
        try:
            async with asyncio.timeout(self._launch.deadlines.answer):
                await asyncio.shield(begun)
        except TimeoutError as fault:
            raise TooSlow("OpenCode's events did not begin.", "Look at its own log.") from fault

    async def _read_output(self) -> None:
        async for _ in self._program.lines():
            pass
        self._mark_over(await self._last_words())

    async def _last_words(self) -> str:
        return await self._program.final_words(_NOTICED) or f"It ended with status {self._program.returncode}."

    async def _read_events(self, begun: asyncio.Future[None]) -> None:
        words = "Its events ended."
        try:
            async for event in self._http.events("/global/event", self._launch.deadlines.answer, _HEARTBEATS_MISSED):
                if not begun.done():
                    begun.set_result(None)
                payload = event.get("payload")
                # Each event is repeated as a "sync", for other machines of the same user.
                if isinstance(payload, dict) and payload.get("type") != "sync":
                    for listener in tuple(self._listeners):
                        listener.on_event(payload)
        except TimeoutError:
            words = "It has stopped without ending."
        except ProgramFault as fault:
            words = fault.words
        if not begun.done():
            begun.set_exception(ProgramEnded(words, "It is started again."))
        # If it was killed, its last words say more than the broken connection.
        await self._program.wait(_NOTICED)
        self._mark_over(words)

    def _mark_over(self, words: str, by_us: bool = False) -> None:
        if self._over is None:
            self._over = words
            if not by_us:
                # A killed server leaves its tools running.
                ending = self._program.end(self._launch.deadlines.close, gently=False)
                self._clearing = asyncio.create_task(ending)
            for listener in tuple(self._listeners):
                listener.on_end(words)


async def _start(launch: OpenCodeLaunch) -> Server:
    """Returns when the server answers. If it fails, nothing of it is left."""
    # Here and not at the top: it imports httpx2, which takes 0.3 s.
    from clew.providers.opencode.http import Http  # noqa: PLC0415

    directory = launch.scratch.make()
    try:
        extra = for_server(launch, directory)
        arguments = ("serve", "--port", "0", "--hostname", "127.0.0.1")
        program = await launch.start(directory, *arguments, extra=extra)
    except BaseException:
        shutil.rmtree(directory, ignore_errors=True)
        raise
    server: Server | None = None
    try:
        async with asyncio.timeout(launch.deadlines.start):
            http = Http(await _port(program), USER, launch.password)
            server = Server(launch, program, http, directory)
            await _until_healthy(server)
            await server.follow()
    except BaseException as fault:
        if server is not None:
            await server.end(gently=False)
        else:
            await program.end(launch.deadlines.close, gently=False)
            shutil.rmtree(directory, ignore_errors=True)
        if isinstance(fault, TimeoutError):
            words = f"OpenCode's server did not answer within {launch.deadlines.start:g} s."
            raise CannotStart(words, "Look at its own log, or give it more time.") from fault
        raise
    return server


async def _port(program: Program) -> int:
    async for line in program.lines():
        if found := _LISTENING.search(line):
            return int(found[1])
    words = await program.final_words(_NOTICED)
    raise CannotStart(
        f"OpenCode's server ended at once: {words or 'it said nothing'}", "Start `opencode serve` by hand."
    )


async def _until_healthy(server: Server) -> None:
    while True:
        with contextlib.suppress(TooSlow, NotListening):
            answer = await server.call("GET", "/global/health", seconds=_ONE_TRY)
            if answer.status == 200 and isinstance(answer.data, dict) and answer.data.get("healthy") is True:
                return
        if not server.alive:
            raise CannotStart("OpenCode's server ended while it started.", "Start `opencode serve` by hand.")
        await asyncio.sleep(0.05)


class SharedServer:
    """The one server of a home: started when it is needed, restarted when it has died, and kept until `close`."""

    def __init__(self, launch: Callable[[], OpenCodeLaunch]) -> None:
        self._launch = launch
        self._server: Server | None = None
        self._starting: asyncio.Task[Server] | None = None
        self._closed = False
        self._one_at_a_time = asyncio.Lock()

    @property
    def current(self) -> Server | None:
        return self._server if self._server is not None and self._server.alive else None

    @property
    def latest(self) -> Server | None:
        """The server that was started last, alive or not."""
        return self._server

    async def running(self) -> Server:
        if (server := self.current) is not None:
            return server
        async with self._one_at_a_time:
            if (server := self.current) is not None:
                return server
            self._must_be_open()
            self._starting = asyncio.create_task(self._start())
            try:
                return await self._starting
            except asyncio.CancelledError:
                if not cancelled_from_outside():
                    self._must_be_open()
                raise
            finally:
                self._starting = None

    async def run(self, work: Callable[[Server], Awaitable[T]]) -> T:
        """Run `work` with the server. If that turns out to have died, run it once more with a new one."""
        server = await self.running()
        try:
            return await work(server)
        except ProgramEnded as fault:
            if isinstance(fault, CutOff) or not await server.has_ended():
                raise
        return await work(await self.running())

    async def close(self) -> None:
        """End the server. Calls that wait for one are refused, now and later."""
        self._closed = True
        if self._starting is not None:
            self._starting.cancel()
        async with self._one_at_a_time:
            await self._end()

    async def end_idle(self) -> None:
        """End the server now; the next call starts another."""
        async with self._one_at_a_time:
            await self._end()

    def _must_be_open(self) -> None:
        if self._closed:
            raise closed_provider()

    async def _start(self) -> Server:
        await self._end()
        self._server = await _start(self._launch())
        return self._server

    async def _end(self) -> None:
        if self._server is not None:
            await self._server.end()
            self._server = None
