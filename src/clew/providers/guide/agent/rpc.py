"""JSON-RPC 2.0 over lines of standard input and output, with calls in both directions.

Not clew.programs.rpc: the guide imports only the standard library, so that it starts fast.
"""

import asyncio
import json
import os
import sys
from collections.abc import Awaitable, Callable
from typing import Any

Json = dict[str, Any]

STEER = "_clew/steer"
"""The method for a prompt during a turn; the protocol has none."""

PROMPT_ID = "clew/prompt"
"""The name of a prompt's id in its `_meta`. It is optional."""

INVALID = -32602
NO_METHOD = -32601
INTERNAL = -32603
NOT_FOUND = -32002


class CallError(Exception):
    def __init__(self, code: int, message: str, data: object = None) -> None:
        super().__init__(message)
        self.error = {"code": code, "message": message, **({} if data is None else {"data": data})}


class Rpc:
    """`handle` answers a call; `hear` gets notifications."""

    def __init__(self, handle: Callable[[str, Json], Awaitable[Json]], hear: Callable[[str, Json], None]) -> None:
        self._handle, self._hear = handle, hear
        self._waiting: dict[int, asyncio.Future[Json]] = {}
        self._last = 0
        self._going: set[asyncio.Task[None]] = set()

    async def serve(self) -> None:
        """Until the client closes its side."""
        # In a thread: asyncio cannot wait for every kind of input, such as a file.
        while line := await asyncio.to_thread(sys.stdin.buffer.readline):
            self._receive(line)
        for task in self._going:
            task.cancel()
        await asyncio.gather(*self._going, return_exceptions=True)

    def notify(self, method: str, said: Json) -> None:
        _send({"method": method, "params": said})

    async def call(self, method: str, said: Json) -> Json:
        self._last += 1
        number = self._last
        answer: asyncio.Future[Json] = asyncio.get_running_loop().create_future()
        self._waiting[number] = answer
        _send({"id": number, "method": method, "params": said})
        try:
            return await answer
        finally:
            del self._waiting[number]

    def _receive(self, line: bytes) -> None:
        try:
            message = json.loads(line)
        except (ValueError, RecursionError):
            _send({"id": None, "error": {"code": -32700, "message": "This is not JSON."}})
            return
        if not isinstance(message, dict):
            _send({"id": None, "error": {"code": -32600, "message": "This is not a call."}})
            return
        method, number, said = message.get("method"), message.get("id"), message.get("params") or {}
        if method is None:
            answer = self._waiting.get(number) if isinstance(number, int) else None
            if answer is not None and not answer.done():
                result = message.get("result")
                answer.set_result(result if isinstance(result, dict) else {})
        elif number is None:
            if isinstance(said, dict):
                self._hear(method, said)
        else:
            task = asyncio.create_task(self._answer(number, method, said))
            self._going.add(task)
            task.add_done_callback(self._going.discard)

    async def _answer(self, number: object, method: str, said: Json) -> None:
        try:
            _send({"id": number, "result": await self._handle(method, said)})
        except CallError as fault:
            _send({"id": number, "error": fault.error})
        except (AttributeError, KeyError, TypeError, ValueError) as fault:
            _send({"id": number, "error": {"code": INVALID, "message": f"{method} was not understood: {fault!r}"}})
        except Exception as fault:  # noqa: BLE001 - the client would wait for ever
            _send({"id": number, "error": {"code": INTERNAL, "message": f"{method} failed: {fault!r}"}})


def _send(message: Json) -> None:
    line = json.dumps({"jsonrpc": "2.0", **message}, ensure_ascii=False).encode(errors="replace") + b"\n"
    while line:
        line = line[os.write(1, line) :]
