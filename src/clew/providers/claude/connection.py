"""The JSON lines between Clew and Claude Code: messages, requests in both directions, and their answers."""

import uuid
from typing import Any, Protocol

from clew.programs.faults import Refused
from clew.programs.program import Program
from clew.programs.rpc import Exchange, Message
from clew.programs.secrets import Redactor


class Listener(Protocol):
    """Receives what the program sends, in order. None of these may block."""

    def on_message(self, message: Message) -> None: ...

    def on_request(self, number: str, request: Message) -> None: ...

    def on_withdrawn(self, number: str) -> None:
        """The program cancelled its request."""

    def on_end(self, words: str) -> None: ...


class Connection(Exchange):
    """Error texts are redacted; other messages are passed on as they came.

    `found_nothing` is set when the program said, instead of its first answer, that there is nothing to open.
    """

    def __init__(self, program: Program, listener: Listener, redactor: Redactor) -> None:
        self._listener, self._redactor = listener, redactor
        self._answered = self.found_nothing = False
        super().__init__(program)

    async def request(self, subtype: str, seconds: float, **arguments: Any) -> Message:
        """Send a request and wait for its answer, at most that long."""
        number = str(uuid.uuid4())
        request = {"subtype": subtype, **arguments}
        message = {"type": "control_request", "request_id": number, "request": request}
        answer: Message = await self._ask(number, subtype, message, seconds)
        return answer

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

    async def _respond(self, response: Message) -> None:
        await self._send({"type": "control_response", "response": response})

    def _receive(self, message: dict[str, Any]) -> None:
        match message:
            case {"type": "control_response", "response": dict(response)}:
                self._answered = True
                # The program also echoes our own answers, for which nothing waits.
                self._resolve(response.get("request_id"), self._answer_in(response))
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

    def _on_end(self, words: str) -> None:
        self._listener.on_end(words)

    def _answer_in(self, response: Message) -> Any:
        if response.get("subtype") == "success":
            return response.get("response") or {}
        why = self._redactor.text(str(response.get("error")))
        return Refused(f"Claude Code refused: {why}.", "Nothing was changed.")
