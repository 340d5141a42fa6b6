"""Claude Code's lines: what it tells, what either side asks of the other, and the answers."""

import asyncio
import contextlib
import uuid
from collections.abc import Mapping
from typing import Any, Protocol

from clew.programs import json_lines as lines
from clew.programs.faults import NotUnderstood, ProgramEnded, Refused, TooSlow
from clew.programs.program import Program
from clew.programs.secrets import Redactor

Message = Mapping[str, Any]

_PARTING = 2.0
"""Seconds for the rest of what a program that closed its output had to say."""


class Listener(Protocol):
    """Gets what comes in, in order. None of these may block."""

    def told(self, message: Message) -> None: ...

    def asked(self, number: str, request: Message) -> None: ...

    def taken_back(self, number: str) -> None: ...

    def ended(self, words: str) -> None: ...


class Wire:
    """Whatever it says of a failure is told without secrets; what it tells otherwise is as it came.

    `turned_away` when it said, in place of its first answer, that there is nothing to open.
    """

    def __init__(self, program: Program, listener: Listener, redactor: Redactor) -> None:
        self._program, self._listener, self._redactor = program, listener, redactor
        self._answered = self.turned_away = False
        self._waiting: dict[str, asyncio.Future[Message]] = {}
        self._reading = asyncio.create_task(self._read())

    async def request(self, subtype: str, seconds: float, **arguments: Any) -> Message:
        """Ask the program, and wait for its answer no longer than that."""
        number = str(uuid.uuid4())
        answer: asyncio.Future[Message] = asyncio.get_running_loop().create_future()
        self._waiting[number] = answer
        try:
            if self._reading.done():
                raise ProgramEnded("The program has ended.", "It is started again for the next turn.")
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
                # Looked at, so that nobody is warned of an answer that came when it was no longer wanted.
                answer.exception()

    async def reply(self, number: str, answer: Message) -> None:
        await self._respond({"subtype": "success", "request_id": number, "response": answer})

    async def refuse(self, number: str, words: str) -> None:
        await self._respond({"subtype": "error", "request_id": number, "error": words})

    async def prompt(self, text: str, uuid_: str) -> None:
        await self._send({"type": "user", "message": {"role": "user", "content": text}, "uuid": uuid_})

    async def words(self, text: str, uuid_: str) -> None:
        """Within a turn. As a plain text it would keep back what begins with a slash, whatever stands before that."""
        content = [{"type": "text", "text": text}]
        await self._send({"type": "user", "message": {"role": "user", "content": content}, "uuid": uuid_})

    async def close(self) -> None:
        self._reading.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await self._reading

    async def _respond(self, response: Message) -> None:
        await self._send({"type": "control_response", "response": response})

    async def _send(self, message: Message) -> None:
        await self._program.send(lines.dumps(message))

    async def _read(self) -> None:
        words = ""
        try:
            async for line in self._program.lines():
                self._take(line)
        except NotUnderstood as fault:
            # A line beyond all measure cannot be read on from.
            words = fault.words
        finally:
            words = words or await self._program.final_words(_PARTING)
            for answer in self._waiting.values():
                if not answer.done():
                    answer.set_exception(ProgramEnded(f"Claude Code ended: {words or 'it said nothing'}", _AGAIN))
            self._listener.ended(words)

    def _take(self, line: bytes) -> None:
        try:
            message = lines.loads(line)
        except ValueError:
            # A tool of the user's may let a line of its own slip in between.
            return
        match message:
            case {"type": "control_response", "response": dict(response)}:
                self._answered = True
                self._settle(response)
            case {"type": "result", "subtype": "error_during_execution", "num_turns": 0, "errors": [_, *_]} if (
                not self._answered
            ):
                self.turned_away = True
            case {"type": "control_request", "request_id": str(number), "request": dict(request)}:
                self._listener.asked(number, request)
            case {"type": "control_cancel_request", "request_id": str(number)}:
                self._listener.taken_back(number)
            case {"type": str()}:
                self._listener.told(message)
            case _:
                pass

    def _settle(self, response: Message) -> None:
        # Our own answers are echoed too; nobody waits for those.
        answer = self._waiting.get(str(response.get("request_id")))
        if answer is None or answer.done():
            return
        if response.get("subtype") == "success":
            answer.set_result(response.get("response") or {})
        else:
            why = self._redactor.text(str(response.get("error")))
            answer.set_exception(Refused(f"Claude Code refused: {why}.", "Nothing was changed."))


_AGAIN = "It is started again for the next turn."
