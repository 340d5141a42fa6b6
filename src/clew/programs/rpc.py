"""Calls over a program's lines of JSON, and JSON-RPC: messages with an id get an answer, others are notifications."""

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from typing import Any

from clew.programs.faults import NotUnderstood, ProgramEnded, TooSlow
from clew.programs.json_lines import dumps, loads
from clew.programs.program import Program

Message = Mapping[str, Any]

_FINAL_WORDS = 2.0
"""Seconds to read the error stream of a program that has closed its output."""


class CallRefused(Exception):
    """The program answered a call with an error."""

    def __init__(self, code: int, words: str, data: Any = None) -> None:
        super().__init__(words)
        self.code, self.words, self.data = code, words, data


class Exchange(ABC):
    """Requests and answers over a program's lines. A subclass knows how the messages are written."""

    def __init__(self, program: Program) -> None:
        self._program = program
        self._waiting: dict[int | str, asyncio.Future[Any]] = {}
        self._reading = asyncio.create_task(self._read())

    async def _ask(self, number: int | str, what: str, message: Message, seconds: float) -> Any:
        """Send the request of that number and wait for its answer, at most that long. `what` names it for people."""
        if self._reading.done():
            # No answer can come, although the pipe may still accept the request.
            raise ProgramEnded(f"The program has ended: {self._said()}.", "It is started again.")
        answer = self._waiting[number] = asyncio.get_running_loop().create_future()
        try:
            async with asyncio.timeout(seconds):
                await self._send(message)
                return await answer
        except TimeoutError as fault:
            raise TooSlow(
                f"{what} was not answered within {seconds:g} s.", "It is tried again; look at the agent's own log."
            ) from fault
        finally:
            del self._waiting[number]
            # Retrieve the exception of an answer that came while the request was being sent, or asyncio logs it.
            if answer.done() and not answer.cancelled():
                answer.exception()

    def _resolve(self, number: object, result: Any) -> None:
        """An exception is raised to the caller. An answer for which nothing waits is dropped."""
        answer = self._waiting.get(number) if isinstance(number, int | str) else None
        if answer is None or answer.done():
            return
        if isinstance(result, Exception):
            answer.set_exception(result)
        else:
            answer.set_result(result)

    async def close(self) -> None:
        self._reading.cancel()
        await asyncio.wait([self._reading])
        if not self._reading.cancelled():
            self._reading.exception()

    async def _send(self, message: Message) -> None:
        await self._program.send(dumps(message))

    async def _read(self) -> None:
        words = ""
        try:
            async for line in self._program.lines():
                try:
                    message = loads(line)
                except ValueError:
                    # Some programs, or tools of the user's, write lines of their own in between.
                    continue
                if isinstance(message, dict):
                    self._receive(message)
            await self._program.final_words(_FINAL_WORDS)
        except NotUnderstood as fault:
            # Reading cannot go on after a line that is too long.
            words = fault.words
        finally:
            words = words or self._said()
            for number in self._waiting:
                self._resolve(number, ProgramEnded(f"The program ended: {words}.", "It is started again."))
            self._on_end(words)

    def _said(self) -> str:
        return self._program.last_words or "it closed its output"

    @abstractmethod
    def _receive(self, message: dict[str, Any]) -> None: ...

    @abstractmethod
    def _on_end(self, words: str) -> None: ...


class Peer(Exchange):
    """JSON-RPC: both sides may call. `notified` gets the program's notifications, `requested` its requests; neither may
    block."""

    def __init__(
        self,
        program: Program,
        notified: Callable[[str, Message], None],
        requested: Callable[[int | str, str, Message], None],
        ended: Callable[[str], None],
        extra: Mapping[str, Any] | None = None,
    ) -> None:
        self._notified, self._requested, self._on_ended = notified, requested, ended
        self._extra = dict(extra or {})
        self._last = 0
        super().__init__(program)

    async def call(self, method: str, arguments: Message, seconds: float) -> Any:
        """Send a request and wait for its answer, at most that long."""
        self._last += 1
        message = {**self._extra, "id": self._last, "method": method, "params": arguments}
        return await self._ask(self._last, method, message, seconds)

    async def notify(self, method: str, arguments: Message | None = None) -> None:
        given = {} if arguments is None else {"params": arguments}
        await self._send({**self._extra, "method": method, **given})

    async def reply(self, number: int | str, result: Any) -> None:
        await self._send({**self._extra, "id": number, "result": result})

    async def refuse(self, number: int | str, code: int, words: str) -> None:
        await self._send({**self._extra, "id": number, "error": {"code": code, "message": words}})

    def _receive(self, message: dict[str, Any]) -> None:
        method, number = message.get("method"), message.get("id")
        if not isinstance(method, str):
            self._resolve(number, _answer_in(message))
            return
        given = message.get("params")
        arguments = given if isinstance(given, dict) else {}
        if number is None:
            self._notified(method, arguments)
        elif isinstance(number, int | str):
            self._requested(number, method, arguments)

    def _on_end(self, words: str) -> None:
        self._on_ended(words)


def _answer_in(message: Message) -> Any:
    error = message.get("error")
    if isinstance(error, dict):
        return CallRefused(error.get("code", 0), str(error.get("message", "")), error.get("data"))
    if "result" in message:
        return message["result"]
    return NotUnderstood("An answer held neither a result nor an error.", "Update the program.")
