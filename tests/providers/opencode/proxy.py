"""A proxy of a test's own between Clew and OpenCode's server: it spoils the calls that it is told to."""

import asyncio
import contextlib
import re
from asyncio import StreamReader, StreamWriter
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from enum import StrEnum

from clew.providers.opencode.http import HOST, Http
from clew.providers.opencode.launch import USER
from clew.providers.opencode.server import Server

HTML = b"<!doctype html><html><body>404 page not found</body></html>"


class Spoil(StrEnum):
    CUT_BEFORE = "the connection is cut, and the server gets nothing"
    CUT_AFTER = "the server gets it all, and its answer is lost"
    ERROR = "500 with JSON, and the server gets nothing"
    HTML = "404 with HTML, and the server gets nothing"
    MUTE = "the server gets it all, and its answer comes never"
    DEAF = "the server gets nothing, and no answer comes"


_ANSWERS = {
    Spoil.ERROR: b'HTTP/1.1 500 X\r\nContent-Length: 23\r\n\r\n{"name":"UnknownError"}',
    Spoil.HTML: b"HTTP/1.1 404 X\r\nContent-Type: text/html\r\nContent-Length: %d\r\n\r\n%b" % (len(HTML), HTML),
}


@dataclass
class Proxy:
    """`spoiled` counts. `times` is how often it is done; after that all goes through."""

    to: int
    calls: str = ""
    how: Spoil = Spoil.CUT_BEFORE
    times: int = 0
    spoiled: int = 0
    going: set["asyncio.Task[None]"] = field(default_factory=set)

    def spoil(self, calls: str, how: Spoil, times: int = 1) -> None:
        """`calls` is a pattern of "METHOD /path"."""
        self.calls, self.how, self.times = calls, how, times

    def serve(self, reader: StreamReader, writer: StreamWriter) -> None:
        task = asyncio.create_task(self._serve(reader, writer))
        self.going.add(task)
        task.add_done_callback(self.going.discard)

    async def _serve(self, reader: StreamReader, writer: StreamWriter) -> None:
        try:
            await self._handle(reader, writer)
        except (OSError, asyncio.IncompleteReadError):
            pass  # One of them left.
        finally:
            await _closed(writer)

    async def _handle(self, reader: StreamReader, writer: StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        length = re.search(rb"(?i)content-length: (\d+)", head)
        whole = head + await reader.readexactly(int(length[1]) if length else 0)
        if self.times > 0 and re.fullmatch(self.calls, b" ".join(head.split(b" ")[:2]).decode()):
            self.times -= 1
            self.spoiled += 1
            await self._spoil(whole, reader, writer)
        else:
            await self._forward(whole, writer)

    async def _spoil(self, whole: bytes, reader: StreamReader, writer: StreamWriter) -> None:
        if self.how in (Spoil.CUT_AFTER, Spoil.MUTE):
            await self._forward(whole, None)
        if self.how in (Spoil.MUTE, Spoil.DEAF):
            await reader.read()
        writer.write(_ANSWERS.get(self.how, b""))
        await writer.drain()

    async def _forward(self, whole: bytes, writer: StreamWriter | None) -> None:
        """Without a writer, until the server answers."""
        theirs, ours = await asyncio.open_connection(HOST, self.to)
        try:
            ours.write(whole)
            while (part := await theirs.read(2**16)) and writer is not None:
                writer.write(part)
                await writer.drain()
        finally:
            await _closed(ours)


async def _closed(writer: StreamWriter) -> None:
    writer.close()
    with contextlib.suppress(OSError):
        await writer.wait_closed()


@contextlib.asynccontextmanager
async def between(server: Server) -> AsyncIterator[Proxy]:
    """From now on Clew's calls go this way; the events, which it gets already, do not."""
    direct = server._http  # noqa: SLF001 - there is no other place to stand between them
    proxy = Proxy(direct.port)
    listening = await asyncio.start_server(proxy.serve, HOST, 0)
    port = listening.sockets[0].getsockname()[1]
    server._http = Http(port, USER, server._launch.password)  # noqa: SLF001
    try:
        yield proxy
    finally:
        server._http = direct  # noqa: SLF001
        listening.close()
        # The server keeps some connections open after it has answered.
        for task in tuple(proxy.going):
            task.cancel()
        await asyncio.gather(*proxy.going, return_exceptions=True)
