"""Request bodies: read completely, then checked for size, JSON, depth, repeated fields, NUL and number range.

Those that bring files are read by their route, in pieces, up to a limit.
"""

import json
import re
from typing import Any

import orjson
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from clew.ports.fault import Fault
from clew.protocol.files import LARGEST_FILE, LARGEST_TOGETHER
from clew.server.address import check_address, keep_slashes
from clew.server.problems import BodyTooLarge, NotJson, NotUnderstood, WrongMediaType, problem_of

LARGEST = 1024 * 1024
_OF_FILES = (
    (re.compile(r"/api/v1/files"), LARGEST_FILE),
    # The form of a page: its fields come with the files.
    (re.compile(r"/threads/[^/]+/say"), LARGEST_TOGETHER + LARGEST),
)
"""Paths whose bodies bring files, and the most bytes of each."""
_INT = 2**63
_DEEPEST = 100
_SHOWN = 100


class Bodies:
    def __init__(self, app: ASGIApp, largest: int = LARGEST) -> None:
        self._app = app
        self._largest = largest

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        try:
            check_address(scope)
            if (most := _files_at(scope)) is not None:
                _check_length(scope, most)
                await self._app(keep_slashes(scope), _counted(receive, most), send)
                return
            body = await self._read(scope, receive)
            if body is None:
                return
            if body:
                _check_media_type(scope)
                _check(body)
        except Fault as fault:
            # Not closed: with unread bytes, a close resets the connection and the client loses the answer.
            await problem_of(fault)(scope, receive, send)
            return
        await self._app(keep_slashes(scope), _replayed(body, receive), send)

    async def _read(self, scope: Scope, receive: Receive) -> bytes | None:
        """None if the client disconnected."""
        _check_length(scope, self._largest)
        read, more = bytearray(), True
        while more:
            message = await receive()
            if message["type"] == "http.disconnect":
                return None
            read += message.get("body", b"")
            if len(read) > self._largest:
                raise _too_large(self._largest)
            more = message.get("more_body", False)
        return bytes(read)


def _files_at(scope: Scope) -> int | None:
    if scope["method"] != "POST":
        return None
    return next((most for path, most in _OF_FILES if path.fullmatch(scope["path"])), None)


def _check_length(scope: Scope, most: int) -> None:
    for name, value in scope["headers"]:
        if name == b"content-length" and (not value.isdigit() or int(value) > most):
            raise _too_large(most)


def _too_large(most: int) -> BodyTooLarge:
    if most > LARGEST:
        return BodyTooLarge(f"This is larger than {most // 1_000_000} MB.", "Send less, or smaller files.")
    return BodyTooLarge(f"The body is larger than {most // 1024} KiB.", "Send less; put long text into a file.")


def _counted(receive: Receive, most: int) -> Receive:
    left = most

    async def counted() -> Message:
        nonlocal left
        message = await receive()
        left -= len(message.get("body", b""))
        if left < 0:
            raise _too_large(most)
        return message

    return counted


def _replayed(body: bytes, receive: Receive) -> Receive:
    sent = False

    async def replay() -> Message:
        nonlocal sent
        if sent:
            return await receive()
        sent = True
        return {"type": "http.request", "body": body, "more_body": False}

    return replay


def _check_media_type(scope: Scope) -> None:
    sent = dict(scope["headers"]).get(b"content-type", b"").decode("latin-1")
    kind = sent.partition(";")[0].strip().lower()
    if kind != "application/json" and not kind.endswith("+json"):
        words = f"The body is {kind[:_SHOWN]!r}, not JSON." if kind else "The body has no Content-Type."
        raise WrongMediaType(words, "Send it with `Content-Type: application/json`.")


def _check(body: bytes) -> None:
    try:
        value = orjson.loads(body)
    except orjson.JSONDecodeError as fault:
        raise NotJson(f"The body is not JSON: {fault}.", "Send JSON in UTF-8.") from fault
    stack: list[tuple[str, int, Any]] = [("", 0, value)]
    while stack:
        name, depth, each = stack.pop()
        if depth > _DEEPEST:
            raise NotUnderstood(f"The body is nested deeper than {_DEEPEST} levels.", "Send a flatter one.")
        match each:
            case dict():
                stack += ((name, depth, key) for key in each)
                stack += ((_below(name, key), depth + 1, below) for key, below in each.items())
            case list():
                stack += ((f"{name}[{place}]", depth + 1, below) for place, below in enumerate(each))
            case str() if "\0" in each:
                raise NotUnderstood(f"{_named(name)} contains a NUL character.", "Remove it.")
            case int() | float() if not -_INT <= each < _INT:
                raise NotUnderstood(f"{_named(name)} is too large.", "Send a number that fits into 64 bits.")
            case _:
                pass
    # After the depth is known: this parser recurses.
    json.loads(body, object_pairs_hook=_each_once)


def _below(name: str, key: str) -> str:
    return f"{name}.{key}" if name else key


def _named(name: str) -> str:
    return name[:_SHOWN].replace("\0", "") or "The body"


def _each_once(pairs: list[tuple[str, Any]]) -> None:
    """Of two values for one field, one would be dropped silently."""
    seen = set[str]()
    for name, _ in pairs:
        if name in seen:
            raise NotUnderstood(f"The field {name[:_SHOWN]!r} is given twice.", "Send it once.")
        seen.add(name)
