"""Request bodies: read completely, then checked for size, JSON, NUL characters and number range."""

from typing import Any
from urllib.parse import unquote_to_bytes

import orjson
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from clew.ports.fault import Fault
from clew.server.problems import BodyTooLarge, NotJson, NotUnderstood, problem_of

LARGEST = 1024 * 1024
_INT = 2**63


class Bodies:
    def __init__(self, app: ASGIApp, largest: int = LARGEST) -> None:
        self._app = app
        self._largest = largest

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        try:
            _check_address(scope)
            body = await self._read(scope, receive)
            if body is None:
                return
            _check(body)
        except Fault as fault:
            # Not closed: with unread bytes, a close resets the connection and the client loses the answer.
            await problem_of(fault)(scope, receive, send)
            return
        await self._app(scope, _replayed(body, receive), send)

    async def _read(self, scope: Scope, receive: Receive) -> bytes | None:
        """None if the client disconnected."""
        too_large = BodyTooLarge(
            f"The body is larger than {self._largest // 1024} KiB.", "Send less; put long text into a file."
        )
        for name, value in scope["headers"]:
            if name == b"content-length" and (not value.isdigit() or int(value) > self._largest):
                raise too_large
        read, more = bytearray(), True
        while more:
            message = await receive()
            if message["type"] == "http.disconnect":
                return None
            read += message.get("body", b"")
            if len(read) > self._largest:
                raise too_large
            more = message.get("more_body", False)
        return bytes(read)


def _replayed(body: bytes, receive: Receive) -> Receive:
    sent = False

    async def replay() -> Message:
        nonlocal sent
        if sent:
            return await receive()
        sent = True
        return {"type": "http.request", "body": body, "more_body": False}

    return replay


def _check_address(scope: Scope) -> None:
    # PostgreSQL stores no NUL, and no name in Clew has control characters.
    for part in (scope["path"].encode("utf-8", "replace"), unquote_to_bytes(scope["query_string"])):
        if any(byte < 32 or byte == 127 for byte in part):
            raise NotUnderstood("The address contains control characters.", "Remove them.")


def _check(body: bytes) -> None:
    if not body:
        return
    try:
        value = orjson.loads(body)
    except orjson.JSONDecodeError as fault:
        raise NotJson(f"The body is not JSON: {fault}.", "Send JSON in UTF-8.") from fault
    stack = [value]
    while stack:
        each: Any = stack.pop()
        match each:
            case dict():
                stack += (*each, *each.values())
            case list():
                stack += each
            case str() if "\0" in each:
                raise NotUnderstood("A text contains a NUL character.", "Remove it.")
            case int() | float() if not -_INT <= each < _INT:
                raise NotUnderstood("A number is too large.", "Send a number that fits into 64 bits.")
            case _:
                pass
