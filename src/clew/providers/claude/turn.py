"""One turn: its state, and the follower that takes each signal from its inbox and turns it into events of the port."""

import asyncio
import contextlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from clew.kernel import PermissionMode
from clew.ports.events import Done, Ending, ErrorCode, Event, Retrying, Used
from clew.programs import json_lines
from clew.programs.faults import ProgramEnded, ProgramFault, TooSlow
from clew.programs.rpc import Message
from clew.providers.claude import transcript
from clew.providers.claude.events import EventReader, Usage, code_of, failure, failure_in
from clew.providers.claude.opened import Opened


@dataclass(frozen=True, slots=True)
class Received:
    message: Message

    @property
    def is_retry(self) -> bool:
        return self.message.get("subtype") == "api_retry"

    @property
    def shows_life(self) -> bool:
        """Retries and keep-alives do not count, however many come."""
        return not self.is_retry and self.message.get("type") != "keep_alive"


@dataclass(frozen=True, slots=True)
class Requested:
    number: str
    request: Message


@dataclass(frozen=True, slots=True)
class RequestClosed:
    """A person answered that request, or the program cancelled it."""

    number: str


@dataclass(frozen=True, slots=True)
class PromptWritten:
    """The prompt is in the transcript."""


@dataclass(frozen=True, slots=True)
class ProcessEnded:
    words: str


@dataclass(frozen=True, slots=True)
class Silence:
    """Nothing was received within the deadline."""


@dataclass(frozen=True, slots=True)
class Retried:
    """The model failed, and the program tries again by itself."""

    message: Message


Signal = Received | Requested | RequestClosed | PromptWritten | ProcessEnded | Silence | Retried


@dataclass
class Steer:
    """Words sent within a turn. The program puts them into the turn after the next tool, and echoes them by `id`.

    If no tool follows, it would begin another turn with them when this one is over. Before that it asks at the gate,
    and the gate refuses, which leaves no trace of the words; so the end of the turn is reported only then. `taken` is
    resolved when the words are part of the turn, or never will be. `refused`: the gate refused them, so the program no
    longer has them.
    """

    text: str
    id: str
    refused: bool = False
    taken: "asyncio.Future[bool]" = field(default_factory=lambda: asyncio.get_running_loop().create_future())

    def resolve(self, taken: bool) -> None:
        if not self.taken.done():
            self.taken.set_result(taken)


@dataclass
class Turn:
    """`id` is the uuid of the prompt's line in the transcript; the program echoes the prompt by it.

    `accepted` once the program has taken this prompt; before that it may be at a turn that it began by itself.
    `blocked` when the gate refused the prompt. `stopped` is the reason why Clew ended the turn, if it did. `last_retry`
    is the last failure of the model that the program retried, `last_status` where it last said it was. `steer` is what
    was sent last within the turn; `result` is the program's last line while that steer is unresolved.
    """

    text: str
    reader: EventReader
    id: str
    inbox: "asyncio.Queue[Signal]" = field(default_factory=asyncio.Queue)
    begun: "asyncio.Future[bool]" = field(default_factory=lambda: asyncio.get_running_loop().create_future())
    blocked: bool = False
    interrupted: bool = False
    over: bool = False
    stopped: tuple[ErrorCode, str] | None = None
    alive_at: float = field(default_factory=lambda: asyncio.get_running_loop().time())
    """When the program last showed life, by the clock of the loop."""
    last_retry: Message | None = None
    last_status: Message | None = None
    steering: asyncio.Lock = field(default_factory=asyncio.Lock)
    steer: Steer | None = None
    result: Message | None = None
    answers: tuple[str, ...] = ()
    """The results of turns that the program began by itself and that belong to this one."""

    @property
    def accepted(self) -> bool:
        return self.begun.done() and self.begun.result()

    def accept(self) -> None:
        if not self.begun.done():
            self.begun.set_result(True)

    def silent_until(self, silence: float) -> float:
        """When it is ended if the program shows no life until then, by the clock of the loop."""
        return self.alive_at + silence + self.reader.allowed

    def release_waiters(self) -> None:
        """Steering callers stop waiting for this turn."""
        if not self.begun.done():
            self.begun.set_result(False)
        if self.steer is not None:
            self.steer.resolve(False)

    @property
    def open_steer(self) -> Steer | None:
        """The steer that the program has neither taken nor lost yet."""
        return None if self.steer is None or self.steer.taken.done() else self.steer

    @property
    def ending(self) -> bool:
        return self.interrupted or self.stopped is not None

    def end(self, shown: Message, used: Used) -> Iterator[Event]:
        """The last events, by the program's own last line."""
        yield used
        reply = self.reader.reply
        failed = failure_in(shown, self.reader.error_kind, self.reader.reset_at)
        if failed is None and not self.blocked and isinstance(shown.get("result"), str):
            reply = "\n\n".join((*self.answers, shown["result"]))
        if self.stopped is not None:
            failed = failure(*self.stopped, raw=shown)
        elif self.interrupted:
            failed = None
        if failed is not None:
            yield failed
            yield self._done(Ending.FAILED, reply, shown)
        else:
            yield self._done(Ending.INTERRUPTED if self.interrupted else Ending.COMPLETED, reply, shown)

    def cut(self, code: ErrorCode, words: str) -> Iterator[Event]:
        """The last events when the program sends no last line."""
        if self.interrupted and self.stopped is None:
            yield self._done(Ending.INTERRUPTED, self.reader.reply, {})
            return
        code, words = self.stopped or (code, words)
        yield failure(code, words)
        yield self._done(Ending.FAILED, self.reader.reply, {})

    def _done(self, ending: Ending, reply: str, raw: Message) -> Done:
        self.over = True
        self.release_waiters()
        return Done(ending, reply, raw=raw)


def literal(prompt: str) -> str:
    """The prompt, not to be run as a command: the program takes text that begins with a slash for one."""
    text = str(json_lines.without_surrogates(prompt))
    return f" {text}" if text.startswith("/") else text


_READ_ONLY = "This session may read and change nothing; do not try another way."
_STOPPED = "The turn was interrupted."
_NEXT_TURN = "The turn that this was for is over. It will be sent with the next one."
_LATE_STEER = 5.0
"""Seconds. A program that has words left asks at the gate at once."""
_CODES: Mapping[type[ProgramFault], ErrorCode] = {ProgramEnded: ErrorCode.PROGRAM_ENDED, TooSlow: ErrorCode.TOO_SLOW}


class TurnFollower:
    """Acts on the signals of one turn."""

    def __init__(self, opened: Opened, turn: Turn) -> None:
        self._opened, self._turn = opened, turn

    async def send(self) -> list[Event]:
        """Send the prompt. A fault ends the turn."""
        opened, turn = self._opened, self._turn
        try:
            await opened.apply_mode()
            await opened.connection.send_prompt(turn.text, turn.id)
        except ProgramFault as fault:
            return list(turn.cut(_CODES.get(type(fault), ErrorCode.UNKNOWN), fault.words))
        return []

    async def watch(self) -> None:
        """Signal when the prompt is in the transcript."""
        opened, turn = self._opened, self._turn
        while opened.transcript is None or not transcript.holds(opened.transcript, turn.id):
            await asyncio.sleep(0.03)
        turn.inbox.put_nowait(PromptWritten())

    async def events(self) -> list[Event]:
        """Handle the next signal."""
        opened, turn = self._opened, self._turn
        match await self._next():
            case Received(message):
                return await self._received(message)
            case Requested(number, request):
                return await self._requested(number, request)
            case PromptWritten():
                return [named] if (named := await opened.make_durable()) is not None else []
            case ProcessEnded(words):
                said = f"Claude Code ended in the middle of the turn: {words or 'it said nothing'}"
                return list(turn.cut(ErrorCode.PROGRAM_ENDED, said))
            case Silence():
                return await self._silent()
            case Retried(message):
                status = message.get("error_status")
                words = f"{message.get('error')} {'' if status is None else status}".strip()
                return [Retrying(words, raw=opened.redactor.value(dict(message)))]
            case RequestClosed(number):
                opened.approvals.withdraw(number)
                return []

    async def _next(self) -> Signal:
        """There is no deadline while a person is asked."""
        opened, turn = self._opened, self._turn
        now = asyncio.get_running_loop().time()
        if turn.result is not None:
            deadline = now + min(_LATE_STEER, opened.deadlines.answer)
        elif turn.ending:
            deadline = now + opened.deadlines.answer
        else:
            deadline = turn.silent_until(opened.deadlines.silence)
        try:
            async with asyncio.timeout_at(None if opened.approvals else deadline):
                while True:
                    signal = await turn.inbox.get()
                    if not isinstance(signal, Received) or signal.shows_life:
                        turn.alive_at = asyncio.get_running_loop().time()
                        return signal
                    if signal.is_retry:
                        turn.last_retry = signal.message
                        return Retried(signal.message)
        except TimeoutError:
            return Silence()

    # ---------------------------------------------------------------- messages

    async def _received(self, message: Message) -> list[Event]:
        opened, turn = self._opened, self._turn
        if message.get("isReplay") and message.get("uuid") == turn.id:
            turn.accept()
            opened.find_transcript()
        if message.get("isReplay") and turn.open_steer is not None and message.get("uuid") == turn.open_steer.id:
            self._steer_taken(turn.open_steer)
        if message.get("type") == "system" and "permissionMode" in message:
            turn.last_status = message
        if turn.accepted and turn.last_status is not None and not turn.ending:
            status, turn.last_status = turn.last_status, None
            mismatch = opened.mismatch(status.get("session_id"), status.get("cwd"), status["permissionMode"])
            if mismatch is not None:
                await self._stop(ErrorCode.UNKNOWN, mismatch)
        if message.get("type") == "result":
            return await self._result(message)
        return list(turn.reader.read(message)) if turn.accepted else []

    async def _result(self, result: Message) -> list[Event]:
        turn = self._turn
        if not turn.accepted and not turn.ending:
            # The end of a turn that the program had begun by itself; its usage is counted with this one.
            return []
        if turn.open_steer is not None and turn.result is None:
            # The steer came too late for this turn: the program asks at the gate next.
            turn.result = result
            return []
        return await self._end(turn.result or result)

    def _steer_taken(self, steer: Steer) -> None:
        turn = self._turn
        steer.resolve(True)
        if turn.result is not None:
            # The program began another turn with the steer, past the gate. Its reply belongs to this turn.
            turn.answers = (*turn.answers, str(turn.result.get("result", "")))
            turn.result = None

    async def _end(self, result: Message) -> list[Event]:
        opened, turn = self._opened, self._turn
        events: list[Event] = []
        if not turn.blocked and opened.cursor is None and await opened.wait_written(turn.id):
            events += filter(None, [await opened.make_durable()])
        if turn.reader.last is not None and not turn.ending:
            await opened.wait_written(turn.reader.last)
        used, opened.usage = Usage.of_turn(result, opened.usage)
        return [*events, *turn.end(opened.redactor.value(dict(result)), used)]

    async def _silent(self) -> list[Event]:
        opened, turn = self._opened, self._turn
        if turn.result is not None:
            return await self._end(turn.result)
        if not turn.ending:
            await self._stop(*self._why_silent())
            return []
        # It does not stop when told to.
        await opened.program.end(opened.deadlines.close, gently=False)
        return list(turn.cut(ErrorCode.TOO_SLOW, "Claude Code did not stop when told to, and was ended."))

    def _why_silent(self) -> tuple[ErrorCode, str]:
        seconds, retry = self._opened.deadlines.silence, self._turn.last_retry
        if retry is None:
            return ErrorCode.TOO_SLOW, f"The model sent nothing for {seconds:g} s."
        status, kind = retry.get("error_status"), retry.get("error")
        code = code_of(status, str(kind), ErrorCode.MODEL_UNREACHABLE)
        return code, f"The model failed for {seconds:g} s, in every attempt ({status or kind})."

    async def _stop(self, code: ErrorCode, words: str) -> None:
        self._turn.stopped = (code, words)
        with contextlib.suppress(ProgramFault):
            await self._opened.connection.request("interrupt", self._opened.deadlines.answer)

    # ---------------------------------------------------------------- requests

    async def _requested(self, number: str, request: Message) -> list[Event]:
        connection = self._opened.connection
        with contextlib.suppress(ProgramFault):
            match request.get("subtype"):
                case "hook_callback":
                    return await self._gate(number, request.get("input") or {})
                case "can_use_tool" if self._turn.ending:
                    await connection.reply(number, {"behavior": "deny", "message": _STOPPED})
                case "can_use_tool" if self._opened.mode is PermissionMode.READ:
                    await connection.reply(number, {"behavior": "deny", "message": _READ_ONLY})
                case "can_use_tool":
                    return list(self._opened.approvals.ask(number, request))
                case other:
                    await connection.refuse(number, f"Clew does not answer {other}.")
        return []

    async def _gate(self, number: str, at: Message) -> list[Event]:
        """The program waits here before it takes a prompt. A prompt that is refused reaches no model and no history."""
        opened, turn = self._opened, self._turn
        if turn.result is not None and turn.open_steer is not None:
            if at.get("prompt") == turn.open_steer.text:
                await opened.connection.reply(number, {"decision": "block", "reason": _NEXT_TURN})
                turn.open_steer.refused = True
            else:
                # A turn that the program begins by itself waits for the next turn.
                turn.inbox.put_nowait(Requested(number, {"subtype": "hook_callback", "input": at}))
            return await self._end(turn.result)
        mismatch = opened.mismatch(at.get("session_id"), at.get("cwd"), at.get("permission_mode"))
        if at.get("prompt") == turn.text:
            turn.accept()
            # A status from a turn that the program began by itself does not count for this one.
            turn.last_status = None
            if opened.transcript is None:
                opened.transcript = Path(str(at.get("transcript_path")))
            if mismatch is not None and not turn.ending:
                turn.stopped = (ErrorCode.UNKNOWN, f"{mismatch} The prompt was not sent on.")
            turn.blocked = turn.ending
        if mismatch is None and not turn.ending:
            await opened.connection.reply(number, {})
            return []
        await opened.connection.reply(number, {"decision": "block", "reason": mismatch or _STOPPED})
        return []
