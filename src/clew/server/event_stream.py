"""Server-sent events: how an event is written, and the HTTP response that carries them."""

import asyncio
import json
from collections.abc import AsyncGenerator
from dataclasses import fields
from typing import Any, Protocol

import orjson
from fastapi.responses import StreamingResponse
from starlette.types import Receive, Scope, Send

RETRY = b"retry: 1000\n"

PADDING = b"padding: %s\n" % (b"." * 2048)
"""A field that clients ignore. Some proxies pass nothing on before they have about this much."""

_HEADERS = {"cache-control": "no-cache, no-transform", "x-accel-buffering": "no"}


def event(kind: str, view: object) -> bytes:
    """One `data:` line is enough: JSON contains no raw line break."""
    return b"event: %s\ndata: %s\n\n" % (kind.encode(), _json(view))


def id_line(position: str) -> bytes:
    return b"id: %s\n" % position.encode()


def _json(view: object) -> bytes:
    try:
        return orjson.dumps(view)
    except TypeError:
        # A lone surrogate, from an agent that cut its output within a character: json writes it as an escape.
        return json.dumps(view, default=_fields).encode()


def _fields(view: Any) -> dict[str, object]:
    return {each.name: getattr(view, each.name) for each in fields(view)}


class Client(Protocol):
    def chunks(self) -> AsyncGenerator[bytes]:
        """Parts of the response, as they become due."""
        ...

    def close(self) -> None:
        """Let the chunks end."""
        ...

    def leave(self) -> None:
        """Release what it holds; nothing is asked of it any more."""
        ...


class EventStream(StreamingResponse):
    """Ends when the chunks do, or when the client disconnects. `StreamingResponse` itself would run two more tasks for
    each client."""

    def __init__(self, client: Client) -> None:
        self._client = client
        super().__init__(client.chunks(), media_type="text/event-stream", headers=_HEADERS)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:  # noqa: ARG002 - ASGI
        leaving = asyncio.create_task(self._await_disconnect(receive))
        try:
            await self.stream_response(send)
        finally:
            leaving.cancel()
            self._client.leave()

    async def _await_disconnect(self, receive: Receive) -> None:
        while (await receive())["type"] != "http.disconnect":
            pass
        self._client.close()
