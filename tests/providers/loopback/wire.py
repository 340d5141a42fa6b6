"""As much of HTTP/1.1 as agents use towards a model."""

import gzip
import json
from asyncio import IncompleteReadError, LimitOverrunError, StreamReader, StreamWriter
from collections.abc import Mapping
from dataclasses import dataclass
from http import HTTPStatus

from tests.providers.loopback.heard import Json
from tests.providers.loopback.script import Sent


@dataclass(frozen=True)
class Incoming:
    method: str
    path: str
    headers: Mapping[str, str]
    body: bytes

    @property
    def json(self) -> Json:
        plain = gzip.decompress(self.body) if self.headers.get("content-encoding") == "gzip" else self.body
        parsed: Json = json.loads(plain)
        return parsed


async def receive(reader: StreamReader, writer: StreamWriter) -> Incoming | None:
    """The next request of a connection; None when the other side has left."""
    try:
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
    except (IncompleteReadError, LimitOverrunError, ConnectionError):
        return None
    first, *lines = head.rstrip().split("\r\n")
    method, target, _ = first.split(" ")
    headers = {name.strip().lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
    if headers.get("expect", "").lower() == "100-continue":
        writer.write(b"HTTP/1.1 100 Continue\r\n\r\n")
    try:
        body = await _body(reader, headers)
    except (IncompleteReadError, ConnectionError):
        return None
    return Incoming(method, target.partition("?")[0], headers, body)


async def _body(reader: StreamReader, headers: Mapping[str, str]) -> bytes:
    if headers.get("transfer-encoding", "").lower() != "chunked":
        return await reader.readexactly(int(headers.get("content-length", 0)))
    parts: list[bytes] = []
    while size := int((await reader.readuntil(b"\r\n")).partition(b";")[0], 16):
        parts.append(await reader.readexactly(size))
        await reader.readexactly(2)
    await reader.readuntil(b"\r\n")
    return b"".join(parts)


async def reply(
    writer: StreamWriter, status: int, body: Json, headers: Mapping[str, str] | None = None, *, head_only: bool = False
) -> None:
    content = json.dumps(body).encode()
    shown = {"content-type": "application/json", "content-length": str(len(content)), **(headers or {})}
    writer.write(_head(status, shown) + (b"" if head_only else content))
    await writer.drain()


async def begin_stream(writer: StreamWriter) -> None:
    shown = {"content-type": "text/event-stream", "cache-control": "no-cache", "transfer-encoding": "chunked"}
    writer.write(_head(200, shown))
    await writer.drain()


async def stream(writer: StreamWriter, sent: Sent) -> None:
    data = sent.data if isinstance(sent.data, str) else json.dumps(sent.data)
    event = (f"event: {sent.name}\n" if sent.name else "") + f"data: {data}\n\n"
    content = event.encode()
    writer.write(f"{len(content):x}\r\n".encode() + content + b"\r\n")
    await writer.drain()


async def end_stream(writer: StreamWriter) -> None:
    writer.write(b"0\r\n\r\n")
    await writer.drain()


def _head(status: int, headers: Mapping[str, str]) -> bytes:
    try:
        phrase = HTTPStatus(status).phrase
    except ValueError:
        phrase = "Failed"
    lines = [f"HTTP/1.1 {status} {phrase}", *(f"{name}: {value}" for name, value in headers.items())]
    return ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1")
