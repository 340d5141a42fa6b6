"""Calls and events over HTTP: every way in which a body may end, and every way in which a call may fail."""

import asyncio
import errno
import os
import subprocess
import sys
from asyncio import StreamReader, StreamWriter
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from clew.programs.faults import NotUnderstood, ProgramEnded, ProgramFault, Refused, TooSlow
from clew.providers.opencode.faults import NotListening
from clew.providers.opencode.http import Answer, Http

HEARD: list[bytes] = []
EVENTS = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n"


def against(sent: bytes | None, ask: Callable[[Http], Awaitable[Any]], hangs: bool = False) -> Any:
    """Ask a server that sends just these bytes and hangs up, unless it `hangs`; None never sends and never hangs up."""

    async def serve(reader: StreamReader, writer: StreamWriter) -> None:
        HEARD[:] = [await reader.readuntil(b"\r\n\r\n")]
        if sent is None:
            await reader.read()
        else:
            writer.write(sent)
            await writer.drain()
            if hangs:
                await reader.read()
        writer.close()
        served.release()

    async def scene() -> Any:
        server = await asyncio.start_server(serve, "127.0.0.1", 0)
        async with server:
            try:
                return await ask(Http(server.sockets[0].getsockname()[1], "opencode", "the password"))
            finally:
                await asyncio.wait_for(served.acquire(), 5.0)

    served = asyncio.Semaphore(0)

    return asyncio.run(scene())


def called(sent: bytes | None) -> Answer:
    answer: Answer = against(sent, lambda http: http.call("POST", "/session?directory=%2Fx", {"a": 1}, 5.0))
    return answer


@pytest.mark.parametrize(
    ("sent", "answer"),
    [
        (b'HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n{"ok": 1}', Answer(200, {"ok": 1})),
        (
            b'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\n{"ok\r\n5;x=y\r\n": 1}\r\n0\r\n\r\n',
            Answer(200, {"ok": 1}),
        ),
        (b'HTTP/1.1 404 Not Found\r\n\r\n{"name": "NotFoundError"}', Answer(404, {"name": "NotFoundError"})),
        (b"HTTP/1.1 204 No Content\r\nContent-Length: 0\r\n\r\n", Answer(204, None)),
        (b"HTTP/1.1 500 X\r\n\r\nno json", Answer(500, None)),
        # The half of a character, as JavaScript cuts it.
        (
            b'HTTP/1.1 200 OK\r\n\r\n["a\\ud83d", {"\\ude00": "\\ud83d\\ude00"}]',
            Answer(200, ["a\ufffd", {"\ufffd": "\U0001f600"}]),
        ),
    ],
)
def test_a_body_is_read_to_its_end(sent: bytes, answer: Answer) -> None:
    assert called(sent) == answer


@pytest.mark.case("C14")
@pytest.mark.parametrize(
    ("sent", "fault"),
    [
        (b"", ProgramEnded),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\n{", ProgramEnded),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n9\r\n{", ProgramEnded),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nwhat\r\n", NotUnderstood),
        (b"what\r\n\r\n", NotUnderstood),
        (None, TooSlow),
    ],
)
def test_a_call_that_fails_says_how(sent: bytes | None, fault: type[ProgramFault]) -> None:
    with pytest.raises(fault) as told:
        called(sent)
    assert not isinstance(told.value, NotListening), "it was heard"
    assert "password" not in str(told.value)


def test_a_call_that_nobody_heard_is_told_apart() -> None:
    with pytest.raises(NotListening):
        asyncio.run(Http(1, "opencode", "x").call("GET", "/", None, 1.0))


def test_a_machine_without_files_left_is_not_taken_for_a_server_that_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    async def no_files(*_: object, **__: object) -> None:
        raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))

    async def scene() -> None:
        http = Http(1, "opencode", "x")
        monkeypatch.setattr(asyncio.get_running_loop(), "create_connection", no_files)
        # Within the handling of another fault, which says nothing of this one.
        try:
            raise ConnectionResetError(errno.ECONNRESET, "another")
        except ConnectionResetError:
            await http.call("GET", "/", None, 1.0)

    with pytest.raises(Refused) as told:
        asyncio.run(scene())
    assert "Too many open files" in told.value.words


def test_no_proxy_gets_a_call(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:1")
    assert called(b"HTTP/1.1 204 X\r\n\r\n") == Answer(204, None)


def test_httpx2_is_not_loaded_with_the_provider() -> None:
    """It takes 0.3 s, and most that load the provider start no server."""
    seen = "import clew.providers.opencode, sys; sys.exit('httpx2' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", seen], check=False, timeout=60).returncode == 0


def test_the_password_goes_in_the_head() -> None:
    called(b"HTTP/1.1 204 X\r\n\r\n")
    assert b"Authorization: Basic b3BlbmNvZGU6dGhlIHBhc3N3b3Jk\r\n" in HEARD[0]


def followed(sent: bytes | None, hangs: bool = False) -> list[Any]:
    async def ask(http: Http) -> list[Any]:
        return [event async for event in http.events("/global/event", 0.5, 0.3)]

    events: list[Any] = against(sent, ask, hangs)
    return events


def test_events_are_read_however_they_are_cut() -> None:
    chunks = b"".join(
        f"{len(part):x}\r\n".encode() + part + b"\r\n" for part in (b'data: {"a"', b": 1}\n\nda", b"ta: {}\n\n")
    )
    head = EVENTS + b"Transfer-Encoding: chunked\r\n\r\n"
    assert followed(head + chunks + b"0\r\n\r\n") == [{"a": 1}, {}]
    assert followed(EVENTS + b'\r\n: note\ndata: {"a": 1}\n\n') == [{"a": 1}]
    # JavaScript escapes neither of these, and Python takes them for the ends of lines.
    assert followed(EVENTS + '\r\ndata: {"a": "1\u2028\x852"}\n\n'.encode()) == [{"a": "1\u2028\x852"}]
    # An event may be larger than a client expects by default.
    assert followed(EVENTS + b'\r\ndata: {"a": "%b"}\n\n' % (b"x" * 3_000_000)) == [{"a": "x" * 3_000_000}]


def test_a_stream_that_is_cut_is_told_apart_from_one_that_ends() -> None:
    with pytest.raises(ProgramEnded):
        followed(EVENTS + b"Transfer-Encoding: chunked\r\n\r\n9\r\n{")


def test_a_stream_that_falls_silent_ends_in_time() -> None:
    with pytest.raises(TimeoutError):
        followed(EVENTS + b"Content-Length: 99\r\n\r\ndata: {}\n\n", hangs=True)


def test_events_that_are_refused_or_no_events_are_a_fault() -> None:
    with pytest.raises(NotUnderstood):
        followed(b"HTTP/1.1 401 X\r\n\r\n")
    with pytest.raises(NotUnderstood):
        followed(EVENTS + b"\r\ndata: {\n\n")
    with pytest.raises(NotUnderstood):
        followed(EVENTS + b"\r\ndata: []\n\n")
    with pytest.raises(NotUnderstood):
        followed(b"HTTP/1.1 200 X\r\nContent-Type: text/html\r\n\r\n<html>")
    with pytest.raises(TimeoutError):
        followed(None)
