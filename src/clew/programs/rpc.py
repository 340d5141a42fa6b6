"""JSON-RPC over a program's lines. Messages with an id are requests and get an answer; others are notifications."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from clew.programs.faults import NotUnderstood, ProgramEnded, TooSlow
from clew.programs.json_lines import dumps, loads
from clew.programs.program import Program

Message = Mapping[str, Any]

_FINAL_WORDS = 1.0
"""Seconds to read the error stream of a program that has closed its output."""


class CallRefused(Exception):
    """The program answered a call with an error."""

    def __init__(self, code: int, words: str, data: Any = None) -> None:
        super().__init__(words)
        self.code, self.words, self.data = code, words, data


class Peer:
    """Both sides may call. `notified` gets the program's notifications, `requested` its requests; neither may block."""

    def __init__(
        self,
        program: Program,
        notified: Callable[[str, Message], None],
        requested: Callable[[int | str, str, Message], None],
        ended: Callable[[str], None],
        extra: Mapping[str, Any] | None = None,
    ) -> None:
        self._program = program
        self._notified, self._requested, self._ended = notified, requested, ended
        self._extra = dict(extra or {})
        self._waiting: dict[int, asyncio.Future[Any]] = {}
        self._last = 0
        self._reading = asyncio.create_task(self._read())

    async def call(self, method: str, arguments: Message, seconds: float) -> Any:
        """Send a request and wait for its answer, at most that long."""
        if self._reading.done():
            # No answer can come, although the pipe may still accept the request.
            raise ProgramEnded(f"The program has ended: {self._said()}.", "It is started again.")
        self._last += 1
        number = self._last
        answer = self._waiting[number] = asyncio.get_running_loop().create_future()
        try:
            async with asyncio.timeout(seconds):
                await self._send({"id": number, "method": method, "params": arguments})
                return await answer
        except TimeoutError as fault:
            raise TooSlow(
                f"{method} was not answered within {seconds:g} s.", "It is tried again; look at the agent's own log."
            ) from fault
        finally:
            del self._waiting[number]
            # Retrieve the exception of an answer that came while the request was being sent, or asyncio logs it.
            if answer.done() and not answer.cancelled():
                answer.exception()

    async def notify(self, method: str, arguments: Message | None = None) -> None:
        await self._send({"method": method} if arguments is None else {"method": method, "params": arguments})

    async def reply(self, number: int | str, result: Any) -> None:
        await self._send({"id": number, "result": result})

    async def refuse(self, number: int | str, code: int, words: str) -> None:
        await self._send({"id": number, "error": {"code": code, "message": words}})

    async def close(self) -> None:
        self._reading.cancel()
        await asyncio.wait([self._reading])
        if not self._reading.cancelled():
            self._reading.exception()

    def _send(self, message: Message) -> Awaitable[None]:
        return self._program.send(dumps({**self._extra, **message}))

    async def _read(self) -> None:
        words = ""
        try:
            async for line in self._program.lines():
                self._receive(line)
            await self._program.final_words(_FINAL_WORDS)
        except NotUnderstood as fault:
            words = fault.words
        finally:
            words = words or self._said()
            for answer in self._waiting.values():
                if not answer.done():
                    answer.set_exception(ProgramEnded(f"The program ended: {words}.", "It is started again."))
            self._ended(words)

    def _said(self) -> str:
        return self._program.last_words or "it closed its output"

    def _receive(self, line: bytes) -> None:
        try:
            message = loads(line)
        except ValueError:
            # Some programs write log lines in between.
            return
        if not isinstance(message, dict):
            return
        method, number = message.get("method"), message.get("id")
        if isinstance(method, str):
            given = message.get("params")
            arguments = given if isinstance(given, dict) else {}
            if number is None:
                self._notified(method, arguments)
            elif isinstance(number, int | str):
                self._requested(number, method, arguments)
        elif isinstance(number, int) and (answer := self._waiting.get(number)) is not None and not answer.done():
            _resolve(answer, message)


def _resolve(answer: asyncio.Future[Any], message: Message) -> None:
    error = message.get("error")
    if isinstance(error, dict):
        answer.set_exception(CallRefused(error.get("code", 0), str(error.get("message", "")), error.get("data")))
    elif "result" in message:
        answer.set_result(message["result"])
    else:
        answer.set_exception(NotUnderstood("An answer held neither a result nor an error.", "Update the program."))
