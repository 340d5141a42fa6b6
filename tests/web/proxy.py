"""A proxy on loopback as people put one before Clew: below a path, buffering, impatient, silent or down.

    with Proxy(prefix="/clew", block=4096) as proxy, house(tmp_path, "--public", proxy.address) as started:
        proxy.upstream = started.address

Everything runs on one thread of its own; a test calls `Proxy` from any other. A connection carries one request.
"""

import asyncio
import socket
import threading
from asyncio import StreamReader, StreamWriter
from collections.abc import Coroutine
from contextlib import suppress
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Self
from urllib.parse import urlsplit

HOST = "127.0.0.1"
PATIENCE = 30.0
_END = b"\r\n\r\n"
_LIMIT = 2**20


@dataclass(frozen=True)
class _Head:
    """The first line of a request or an answer, and its headers as they came."""

    first: str
    headers: tuple[tuple[str, str], ...]

    @property
    def length(self) -> int:
        return next((int(value) for name, value in self.headers if name.lower() == "content-length"), 0)

    @property
    def refuses_buffer(self) -> bool:
        return ("x-accel-buffering", "no") in {(name.lower(), value) for name, value in self.headers}

    def bytes(self, **changed: str) -> bytes:
        """The names of what changes are written with _ for -."""
        new = {name.replace("_", "-"): value for name, value in changed.items()}
        kept = [f"{name}: {value}" for name, value in self.headers if name.lower() not in new]
        lines = [self.first, *kept, *(f"{name}: {value}" for name, value in new.items())]
        return "\r\n".join(lines).encode("latin-1") + _END


class Proxy:
    """`prefix` is the path below which it serves the site, taken away before the request goes on unless `strip` is off.
    `block`: an answer is passed on in blocks of so many bytes, the last one when it has ended. `obeys`:
    an answer that asks for no buffering gets none, as from nginx. `idle`: a connection on which nothing was said for so
    many seconds is cut."""

    def __init__(
        self,
        prefix: str = "",
        *,
        strip: bool = True,
        block: int = 0,
        obeys: bool = False,
        idle: float | None = None,
        upstream: str = "",
    ) -> None:
        self.prefix, self.upstream = prefix, upstream
        self.strays: list[str] = []
        """Paths outside of the prefix that were asked for."""
        self.cuts = 0
        """How many connections were idle for too long."""
        self._strip, self._block, self._obeys, self._idle = strip, block, obeys, idle
        self._socket = _bound(0)
        self._port: int = self._socket.getsockname()[1]
        self._server: asyncio.Server | None = None
        self._connections: dict[asyncio.Task[None], StreamWriter] = {}
        self._faults: list[Exception] = []
        self._loop = asyncio.new_event_loop()
        self._talks = asyncio.Event()
        self._thread = threading.Thread(target=self._loop.run_forever, name=f"proxy-{self._port}")
        self._thread.start()
        self.start()
        self.speak()

    @property
    def address(self) -> str:
        return f"http://{HOST}:{self._port}{self.prefix}"

    # ---------------------------------------------------------------- what the test tells it

    def start(self) -> None:
        self._call(self._start())

    def stop(self) -> None:
        """Refuse connections and drop those there are. The port stays this proxy's own."""
        self._call(self._stop())

    def hush(self) -> None:
        """Keep all connections and take new ones, and pass nothing on: as a network does that is gone."""
        self._call(self._set(False))

    def speak(self) -> None:
        """Pass on again, also what came meanwhile."""
        self._call(self._set(True))

    def close(self) -> None:
        self._call(self._stop())
        self._socket.close()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(PATIENCE)
        assert not self._thread.is_alive(), "the proxy does not end"
        self._loop.close()
        if self._faults:
            raise ExceptionGroup("the proxy did not understand what it was asked", self._faults)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, fault: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    # ---------------------------------------------------------------- on its own thread

    def _call(self, work: Coroutine[Any, Any, None]) -> None:
        asyncio.run_coroutine_threadsafe(work, self._loop).result(PATIENCE)

    async def _set(self, talks: bool) -> None:
        (self._talks.set if talks else self._talks.clear)()

    async def _start(self) -> None:
        if self._server is None:
            self._server = await asyncio.start_server(self._serve, sock=self._socket, limit=_LIMIT)

    async def _stop(self) -> None:
        if self._server is None:
            return
        server, self._server = self._server, None
        server.close()
        # Bound but not listening, a socket refuses connections and keeps the port from others.
        self._socket = _bound(self._port)
        # Also those that are being accepted, which are no connections yet.
        while going := asyncio.all_tasks() - {asyncio.current_task()}:
            for writer in self._connections.values():
                writer.transport.abort()
            for task in going:
                task.cancel()
            await asyncio.gather(*going, return_exceptions=True)
        await server.wait_closed()
        # What was aborted is closed in the next turn of the loop.
        await asyncio.sleep(0)

    async def _serve(self, reader: StreamReader, writer: StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._connections[task] = writer
        try:
            await self._handle(reader, writer)
        except (OSError, asyncio.IncompleteReadError):
            writer.transport.abort()  # One of the two left.
        except Exception as fault:  # noqa: BLE001 - nobody awaits this task, so `close` raises it in the test
            self._faults.append(fault)
        finally:
            writer.close()
            try:
                with suppress(OSError):
                    await writer.wait_closed()
            finally:
                del self._connections[task]

    async def _handle(self, reader: StreamReader, writer: StreamWriter) -> None:
        head = await _head(reader)
        method, path, version = head.first.split(" ")
        if not path.startswith(f"{self.prefix}/"):
            self.strays.append(path)
            writer.write(b"HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\nconnection: close\r\n\r\n")
            await writer.drain()
            return
        body = await reader.readexactly(head.length)
        await self._talks.wait()
        to = urlsplit(self.upstream)
        try:
            up_reader, up_writer = await asyncio.open_connection(to.hostname, to.port, limit=_LIMIT)
        except OSError:
            writer.write(b"HTTP/1.1 502 Bad Gateway\r\ncontent-length: 0\r\nconnection: close\r\n\r\n")
            await writer.drain()
            return
        try:
            asked = path.removeprefix(self.prefix) if self._strip else path
            forwarded = _Head(f"{method} {asked} {version}", head.headers)
            up_writer.write(forwarded.bytes(connection="close", x_forwarded_for=HOST, x_forwarded_proto="http") + body)
            await up_writer.drain()
            answer = asyncio.create_task(self._pass_on(up_reader, writer))
            left = asyncio.create_task(reader.read(1))
            try:
                await asyncio.wait({answer, left}, return_when=asyncio.FIRST_COMPLETED)
            finally:
                for each in (answer, left):
                    each.cancel()
                (passed, _) = await asyncio.gather(answer, left, return_exceptions=True)
            if isinstance(passed, Exception):
                raise passed
        finally:
            up_writer.transport.abort()

    async def _pass_on(self, reader: StreamReader, writer: StreamWriter) -> None:
        head = await _head(reader)
        waiting, block = b"", 0 if self._obeys and head.refuses_buffer else self._block
        writer.write(head.bytes(connection="close"))
        while True:
            try:
                async with asyncio.timeout(self._idle):
                    data = await reader.read(65_536)
            except TimeoutError:
                self.cuts += 1
                raise ConnectionAbortedError("nothing was said for too long") from None
            waiting += data
            ready = len(waiting) // block * block if block and data else len(waiting)
            await self._talks.wait()
            writer.write(waiting[:ready])
            await writer.drain()
            waiting = waiting[ready:]
            if not data:
                return


async def _head(reader: StreamReader) -> _Head:
    first, *lines = (await reader.readuntil(_END)).decode("latin-1").rstrip("\r\n").split("\r\n")
    pairs = (line.partition(":") for line in lines)
    return _Head(first, tuple((name.strip(), value.strip()) for name, _, value in pairs))


def _bound(port: int) -> socket.socket:
    made = socket.socket()
    made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    made.bind((HOST, port))
    return made
