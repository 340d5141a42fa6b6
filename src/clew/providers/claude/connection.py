"""The JSON lines between Clew and Claude Code: messages, requests in both directions, and their answers."""

import asyncio
import contextlib
import uuid
from collections.abc import Mapping
from typing import Any, Protocol

from clew.programs import json_lines
from clew.programs.faults import NotUnderstood, ProgramEnded, Refused, TooSlow
from clew.programs.program import Program
from clew.programs.secrets import Redactor

Message = Mapping[str, Any]

_FINAL_WORDS = 2.0
"""Seconds to read the rest of the error stream after the program has closed its output."""
_RESTARTED = "It is started again for the next turn."


class Listener(Protocol):
    """Receives what the program sends, in order. None of these may block."""

    def on_message(self, message: Message) -> None: ...

    def on_request(self, number: str, request: Message) -> None: ...

    def on_withdrawn(self, number: str) -> None:
        """The program cancelled its request."""

    def on_end(self, words: str) -> None: ...


class Connection:
    """Error texts are redacted; other messages are passed on as they came.

    `found_nothing` is set when the program said, instead of its first answer, that there is nothing to open.
    """

    def __init__(self, program: Program, listener: Listener, redactor: Redactor) -> None:
        self._program, self._listener, self._redactor = program, listener, redactor
        self._answered = self.found_nothing = False
        self._waiting: dict[str, asyncio.Future[Message]] = {}
        self._reading = asyncio.create_task(self._read())

    async def request(self, subtype: str, seconds: float, **arguments: Any) -> Message:
        """Send a request and wait for its answer, at most that long."""
        number = str(uuid.uuid4())
        answer: asyncio.Future[Message] = asyncio.get_running_loop().create_future()
        self._waiting[number] = answer
        try:
            if self._reading.done():
                raise ProgramEnded("The program has ended.", _RESTARTED)
            request = {"subtype": subtype, **arguments}
            await self._send({"type": "control_request", "request_id": number, "request": request})
            async with asyncio.timeout(seconds):
                return await answer
        except TimeoutError as fault:
            words = f"Claude Code did not answer {subtype} within {seconds:g} s."
            raise TooSlow(words, "It is tried again; a busy machine may need longer deadlines.") from fault
        finally:
            del self._waiting[number]
            if answer.done() and not answer.cancelled():
                # Retrieve the exception, or asyncio logs an answer that came too late.
                answer.exception()

    async def reply(self, number: str, answer: Message) -> None:
        await self._respond({"subtype": "success", "request_id": number, "response": answer})

    async def refuse(self, number: str, words: str) -> None:
        await self._respond({"subtype": "error", "request_id": number, "error": words})

    async def send_prompt(self, text: str, uuid_: str) -> None:
        await self._send({"type": "user", "message": {"role": "user", "content": text}, "uuid": uuid_})

    async def send_steer(self, text: str, uuid_: str) -> None:
        """Send words within a turn.

        As a plain string, text that begins with a slash would be held back, whatever stands before the slash.
        """
        content = [{"type": "text", "text": text}]
        await self._send({"type": "user", "message": {"role": "user", "content": content}, "uuid": uuid_})

    async def withdraw(self, uuid_: str, seconds: float) -> bool:
        """Remove a sent prompt from the program's queue. False: it was not there, or the program cannot."""
        try:
            answer = await self.request("cancel_async_message", seconds, message_uuid=uuid_)
        except Refused:
            return False
        return answer.get("cancelled") is True

    async def close(self) -> None:
        self._reading.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await self._reading

    async def _respond(self, response: Message) -> None:
        await self._send({"type": "control_response", "response": response})

    async def _send(self, message: Message) -> None:
        await self._program.send(json_lines.dumps(message))

    async def _read(self) -> None:
        words = ""
        try:
            async for line in self._program.lines():
                self._receive(line)
        except NotUnderstood as fault:
            # Reading cannot go on after a line that is too long.
            words = fault.words
        finally:
            words = words or await self._program.final_words(_FINAL_WORDS)
            for answer in self._waiting.values():
                if not answer.done():
                    said = f"Claude Code ended: {words or 'it said nothing'}"
                    answer.set_exception(ProgramEnded(said, _RESTARTED))
            self._listener.on_end(words)

    def _receive(self, line: bytes) -> None:
        try:
            message = json_lines.loads(line)
        except ValueError:
            # A tool of the user's may write a line of its own in between.
            return
        match message:
            case {"type": "control_response", "response": dict(response)}:
                self._answered = True
                self._resolve(response)
            case {"type": "result", "subtype": "error_during_execution", "num_turns": 0, "errors": [_, *_]} if (
                not self._answered
            ):
                self.found_nothing = True
            case {"type": "control_request", "request_id": str(number), "request": dict(request)}:
                self._listener.on_request(number, request)
            case {"type": "control_cancel_request", "request_id": str(number)}:
                self._listener.on_withdrawn(number)
            case {"type": str()}:
                self._listener.on_message(message)
            case _:
                pass

    def _resolve(self, response: Message) -> None:
        # The program also echoes our own answers, for which nothing waits.
        answer = self._waiting.get(str(response.get("request_id")))
        if answer is None or answer.done():
            return
        if response.get("subtype") == "success":
            answer.set_result(response.get("response") or {})
        else:
            why = self._redactor.text(str(response.get("error")))
            answer.set_exception(Refused(f"Claude Code refused: {why}.", "Nothing was changed."))
