"""Stands before `opencode serve`, says when a word of a person passes, and disturbs the connection as it is told to.

    python -I wire.py PROGRAM [ARGUMENTS...]

The server is started behind it, and the line that says where the server listens names this process instead. Rules are
files in `BOUNDARY_RULES`, each good once: `trouble/<token>` for the call that carries that word, `trouble/<session>`
for a look at that session. The content is the trouble (see tests/story/boundary/matrix.py). `hold/<token>` and
`drop/<token>` are as in pipe.py. Only the standard library is used.
"""

import asyncio
import contextlib
import os
import re
import signal
import socket
import sys
import time
from pathlib import Path

TOKEN = re.compile(rb"word-[0-9a-f]{10}")
LISTENING = re.compile(rb"(listening on http://127\.0\.0\.1:)(\d+)")
SESSION = re.compile(r"/session/(ses_[0-9A-Za-z]+)")
HOLDS = 10.0
PAST = 33.0
"""Seconds. Clew waits 30 for an answer."""
PAGE = b"<!doctype html><html><body><h1>Not found</h1></body></html>"


class Proxy:
    def __init__(self, port: int) -> None:
        self._port = port
        self._rules = Path(os.environ["BOUNDARY_RULES"])
        self._ear = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._where = ("127.0.0.1", int(os.environ["BOUNDARY_EAR"]))
        self._open: set[asyncio.StreamWriter] = set()
        self._serving: set[asyncio.Task[None]] = set()

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._serving.add(task)
        self._open.add(writer)
        try:
            await self._call(reader, writer)
        except (ConnectionError, asyncio.IncompleteReadError):
            pass
        finally:
            self._open.discard(writer)
            self._serving.discard(task)
            writer.close()

    async def _call(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        length = re.search(rb"(?i)content-length: *(\d+)", head)
        body = await reader.readexactly(int(length[1])) if length else b""
        method, path, _ = head.split(b"\r\n", 1)[0].decode().split(" ")
        trouble = await self._trouble(method, path.partition("?")[0], body)
        match trouble:
            case "drop" | "cut":
                return
            case "500" | "get-500":
                await answer(writer, b"500 Internal Server Error", b"application/json", b'{"name":"UnknownError"}')
                return
            case "404" | "get-404":
                await answer(writer, b"404 Not Found", b"text/html", PAGE)
                return
            case "delay":
                # Who has left by then is served no more.
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(PAST):
                        await reader.read()
                return
            case _:
                pass
        await self._pass_on(head + body, reader, writer, trouble)

    async def _pass_on(
        self, request: bytes, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, trouble: str
    ) -> None:
        there, back = await asyncio.open_connection("127.0.0.1", self._port, limit=1 << 20)
        try:
            back.write(request)
            await back.drain()
            if trouble in ("cut-after", "sever", "500-after", "delay-answer"):
                first = await there.read(1 << 16)
                if trouble == "sever":
                    for each in tuple(self._open):
                        each.transport.abort()
                elif trouble == "500-after":
                    await answer(writer, b"500 Internal Server Error", b"application/json", b'{"name":"UnknownError"}')
                elif trouble == "delay-answer":
                    await asyncio.sleep(PAST)
                    writer.write(first)
                return
            leaves = asyncio.create_task(reader.read())
            pumps = asyncio.create_task(pump(there, writer))
            await asyncio.wait({leaves, pumps}, return_when=asyncio.FIRST_COMPLETED)
            leaves.cancel()
            pumps.cancel()
            await asyncio.gather(leaves, pumps, return_exceptions=True)
        finally:
            back.close()

    async def _trouble(self, method: str, path: str, body: bytes) -> str:
        if method == "GET" and (session := SESSION.fullmatch(path)):
            return self._taken("trouble", session[1])
        found = ""
        for token in dict.fromkeys(TOKEN.findall(body)) if method == "POST" else ():
            # Rules are taken before anybody hears of the word, and are good once.
            found = found or self._taken("trouble", token.decode())
            held = self._taken("hold", token.decode(), "held")
            self._ear.sendto(b"out %s %f" % (token, time.monotonic()), self._where)
            if held and await self._dropped(token.decode()):
                return "drop"
        return found

    def _taken(self, kind: str, name: str, otherwise: str = "") -> str:
        """What the rule says, or `otherwise` where it says nothing; nothing where there is none."""
        rule = self._rules / kind / name
        try:
            told = rule.read_text(encoding="ascii")
            rule.unlink()
        except OSError:
            return ""
        return told or otherwise

    async def _dropped(self, token: str) -> bool:
        end = time.monotonic() + HOLDS
        while not (self._rules / "drop" / token).exists():
            if time.monotonic() > end:
                return False
            await asyncio.sleep(0.001)
        return True


async def answer(writer: asyncio.StreamWriter, status: bytes, kind: bytes, body: bytes) -> None:
    head = b"HTTP/1.1 %s\r\ncontent-type: %s\r\ncontent-length: %d\r\nconnection: close\r\n\r\n"
    writer.write(head % (status, kind, len(body)) + body)
    await writer.drain()


async def pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with contextlib.suppress(ConnectionError):
        while piece := await reader.read(1 << 16):
            writer.write(piece)
            await writer.drain()


async def main() -> int:
    server = await asyncio.create_subprocess_exec(*sys.argv[1:], stdout=asyncio.subprocess.PIPE)
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, server.terminate)
    assert server.stdout is not None
    async for line in server.stdout:
        told = line
        if found := LISTENING.search(line):
            proxy = Proxy(int(found[2]))
            listens = await asyncio.start_server(proxy.serve, "127.0.0.1", 0, limit=1 << 20)
            port = listens.sockets[0].getsockname()[1]
            told = LISTENING.sub(rb"\g<1>%d" % port, line)
        sys.stdout.buffer.write(told)
        sys.stdout.buffer.flush()
    return await server.wait()


if __name__ == "__main__":
    if "serve" not in sys.argv or "BOUNDARY_EAR" not in os.environ:
        os.execv(sys.argv[1], sys.argv[1:])
    code = asyncio.run(main())
    os._exit(code if code >= 0 else 1)
