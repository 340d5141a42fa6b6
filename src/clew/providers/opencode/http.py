"""As much of HTTP as one server on loopback needs: a call on a connection of its own, and a stream of events."""

import asyncio
import base64
import contextlib
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from typing import Any

from clew.programs.faults import NotUnderstood, ProgramEnded, Refused, TooSlow
from clew.programs.json_lines import dumps, loads

HOST = "127.0.0.1"
_LIMIT = 2**20
_AGAIN = "It is tried again; look at OpenCode's own log."

Json = Mapping[str, Any]


class NotListening(ProgramEnded):
    """Nobody took the connection, so nothing of the call was heard."""

    code = "opencode:not-listening"


@dataclass(frozen=True, slots=True)
class Answer:
    """`data` is None where the answer held nothing, or no JSON."""

    status: int
    data: Any


class Http:
    def __init__(self, port: int, user: str, password: str) -> None:
        self._port = port
        self._pass = base64.b64encode(f"{user}:{password}".encode()).decode()

    async def call(self, method: str, path: str, body: Json | None, seconds: float) -> Answer:
        """Ask, and wait for the whole answer no longer than that."""
        try:
            async with asyncio.timeout(seconds), self._sent(method, path, body) as (reader, status, headers):
                content = b"".join([piece async for piece in _pieces(reader, headers)])
        except TimeoutError as fault:
            raise TooSlow(f"OpenCode did not answer {method} {_bare(path)} within {seconds:g} s.", _AGAIN) from fault
        try:
            return Answer(status, loads(content))
        except ValueError:
            return Answer(status, None)

    async def events(self, path: str, connect: float, silence: float) -> AsyncIterator[Json]:
        """Every event until the stream ends, or nothing came for so long."""
        async with contextlib.AsyncExitStack() as stack:
            async with asyncio.timeout(connect):
                reader, status, headers = await stack.enter_async_context(self._sent("GET", path, None))
            if status != 200:
                raise NotUnderstood(f"OpenCode answered {status} instead of its events.", "Update OpenCode or Clew.")
            pieces, rest = _pieces(reader, headers), b""
            while True:
                try:
                    async with asyncio.timeout(silence):
                        piece = await anext(pieces)
                except StopAsyncIteration:
                    return
                *lines, rest = (rest + piece).split(b"\n")
                for line in lines:
                    if line.startswith(b"data:"):
                        yield _event(loads(line[5:]))

    @contextlib.asynccontextmanager
    async def _sent(
        self, method: str, path: str, body: Json | None
    ) -> AsyncIterator[tuple[asyncio.StreamReader, int, Mapping[str, str]]]:
        try:
            reader, writer = await asyncio.open_connection(HOST, self._port, limit=_LIMIT)
        except ConnectionError as fault:
            raise NotListening("OpenCode's server is not there.", "It is started again.") from fault
        except OSError as fault:
            words = f"There is no way to OpenCode's server: {fault.strerror}."
            raise Refused(words, "Close something else, and try again.") from fault
        try:
            content = b"" if body is None else dumps(body)
            writer.write(self._head(method, path, len(content)) + content)
            await writer.drain()
            yield reader, *await _answered(reader)
        except (ConnectionError, asyncio.IncompleteReadError) as fault:
            words = f"OpenCode's server went away during {method} {_bare(path)}."
            raise ProgramEnded(words, "It is started again.") from fault
        except (ValueError, IndexError, asyncio.LimitOverrunError) as fault:
            raise NotUnderstood(f"OpenCode's answer is no HTTP ({fault}).", "Update OpenCode or Clew.") from fault
        finally:
            writer.close()

    def _head(self, method: str, path: str, length: int) -> bytes:
        lines = (
            f"{method} {path} HTTP/1.1",
            f"Host: {HOST}:{self._port}",
            f"Authorization: Basic {self._pass}",
            "Content-Type: application/json",
            f"Content-Length: {length}",
            "Connection: close",
        )
        return ("\r\n".join(lines) + "\r\n\r\n").encode("ascii")


async def _answered(reader: asyncio.StreamReader) -> tuple[int, Mapping[str, str]]:
    first, *lines = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").rstrip().split("\r\n")
    named = (line.partition(":") for line in lines)
    return int(first.split(" ")[1]), {name.strip().lower(): value.strip() for name, _, value in named}


async def _pieces(reader: asyncio.StreamReader, headers: Mapping[str, str]) -> AsyncIterator[bytes]:
    if headers.get("transfer-encoding", "").lower() == "chunked":
        while size := int((await reader.readuntil(b"\r\n")).partition(b";")[0], 16):
            yield await reader.readexactly(size)
            await reader.readexactly(2)
    elif "content-length" in headers:
        yield await reader.readexactly(int(headers["content-length"]))
    else:
        while piece := await reader.read(_LIMIT):
            yield piece


def _event(value: Any) -> Json:
    if not isinstance(value, dict):
        raise ValueError("an event is no object")
    return value


def _bare(path: str) -> str:
    return path.partition("?")[0]
