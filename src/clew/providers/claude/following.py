"""Following a turn: what is heard of Claude Code, one after the other, and what is done about it."""

import asyncio
import contextlib
from collections.abc import Mapping
from pathlib import Path

from clew.kernel import PermissionMode
from clew.ports.events import ErrorCode, Event
from clew.programs.faults import ProgramEnded, ProgramFault, TooSlow
from clew.providers.claude import transcript
from clew.providers.claude.failing import code_of
from clew.providers.claude.opened import Opened
from clew.providers.claude.spending import Spent
from clew.providers.claude.steering import Steered
from clew.providers.claude.turn import Answered, Asked, Ended, Heard, Silent, Told, Turn, Written
from clew.providers.claude.wire import Message

_READ_ONLY = "This session may read and change nothing; do not try another way."
_STOPPED = "The turn was interrupted."
_NEXT_TURN = "The turn that this was for is over; it comes with the next one."
_TOO_LATE = 5.0
"""Seconds. It asks for a turn of its own at once when it has words left."""
_CODES: Mapping[type[ProgramFault], ErrorCode] = {ProgramEnded: ErrorCode.PROGRAM_ENDED, TooSlow: ErrorCode.TOO_SLOW}


class Following:
    def __init__(self, opened: Opened, turn: Turn) -> None:
        self._opened, self._turn = opened, turn

    async def send(self) -> list[Event]:
        """Hand the prompt over. What keeps it from going out ends the turn."""
        opened, turn = self._opened, self._turn
        try:
            await opened.apply_mode()
            await opened.wire.prompt(turn.text, turn.id)
        except ProgramFault as fault:
            return list(turn.cut(_CODES.get(type(fault), ErrorCode.UNKNOWN), fault.words))
        return []

    async def watch(self) -> None:
        """Notice when the prompt is in the transcript."""
        opened, turn = self._opened, self._turn
        while opened.transcript is None or not transcript.holds(opened.transcript, turn.id):
            await asyncio.sleep(0.03)
        turn.inbox.put_nowait(Written())

    async def events(self) -> list[Event]:
        """The events that come of what is heard next."""
        opened, turn = self._opened, self._turn
        match await self._next():
            case Told(message):
                return await self._told(message)
            case Asked(number, request):
                return await self._asked(number, request)
            case Written():
                return [named] if (named := await opened.made_durable()) is not None else []
            case Ended(words):
                said = f"Claude Code ended in the middle of the turn: {words or 'it said nothing'}"
                return list(turn.cut(ErrorCode.PROGRAM_ENDED, said))
            case Silent():
                return await self._silent()
            case Answered(number):
                opened.asking.forget(number)
                return []

    async def _next(self) -> Heard:
        """Who waits for a person waits as long as that takes; for all else there is a limit."""
        opened, turn = self._opened, self._turn
        if turn.ended_with is not None:
            seconds = min(_TOO_LATE, opened.deadlines.answer)
        elif turn.ending:
            seconds = opened.deadlines.answer
        else:
            seconds = opened.deadlines.silence + turn.telling.allowed
        try:
            async with asyncio.timeout(None if opened.asking else seconds):
                while True:
                    heard = await turn.inbox.get()
                    if not isinstance(heard, Told) or heard.shows_life:
                        return heard
                    turn.tried = heard.message if heard.tries_again else turn.tried
        except TimeoutError:
            return Silent()

    # ---------------------------------------------------------------- what it tells

    async def _told(self, message: Message) -> list[Event]:
        opened, turn = self._opened, self._turn
        if message.get("isReplay") and message.get("uuid") == turn.id:
            turn.accept()
            opened.look_for_transcript()
        if message.get("isReplay") and turn.tells is not None and message.get("uuid") == turn.tells.id:
            self._taken(turn.tells)
        if message.get("type") == "system" and "permissionMode" in message:
            turn.stands = message
        if turn.accepted and turn.stands is not None and not turn.ending:
            at, turn.stands = turn.stands, None
            wrong = opened.wrong(at.get("session_id"), at.get("cwd"), at["permissionMode"])
            if wrong is not None:
                await self._stop(ErrorCode.UNKNOWN, wrong)
        if message.get("type") == "result":
            return await self._result(message)
        return list(turn.telling.take(message)) if turn.accepted else []

    async def _result(self, result: Message) -> list[Event]:
        turn = self._turn
        if not turn.accepted and not turn.ending:
            # The end of a turn that it had begun by itself; what that used is told with this one.
            return []
        if turn.tells is not None and turn.ended_with is None:
            # It asks at the gate next, what it was told being too late for this turn.
            turn.ended_with = result
            return []
        return await self._end(turn.ended_with or result)

    def _taken(self, told: Steered) -> None:
        turn = self._turn
        told.settle(True)
        if turn.ended_with is not None:
            # A turn of its own making that was not kept from it: what it says in it is part of the answer.
            turn.answers = (*turn.answers, str(turn.ended_with.get("result", "")))
            turn.ended_with = None

    async def _end(self, result: Message) -> list[Event]:
        opened, turn = self._opened, self._turn
        events: list[Event] = []
        if not turn.blocked and opened.cursor is None and await opened.written(turn.id):
            events += filter(None, [await opened.made_durable()])
        if turn.telling.last is not None and not turn.ending:
            await opened.written(turn.telling.last)
        used, opened.spent = Spent.told(result, opened.spent)
        return [*events, *turn.end(opened.redactor.value(dict(result)), used)]

    async def _silent(self) -> list[Event]:
        opened, turn = self._opened, self._turn
        if turn.ended_with is not None:
            return await self._end(turn.ended_with)
        if not turn.ending:
            await self._stop(*self._why_silent())
            return []
        # It does not even stop when told to.
        await opened.program.end(opened.deadlines.close, gently=False)
        return list(turn.cut(ErrorCode.TOO_SLOW, "Claude Code did not stop when told to, and was ended."))

    def _why_silent(self) -> tuple[ErrorCode, str]:
        seconds, tried = self._opened.deadlines.silence, self._turn.tried
        if tried is None:
            return ErrorCode.TOO_SLOW, f"Nothing was heard of the model for {seconds:g} s."
        status, kind = tried.get("error_status"), tried.get("error")
        code = code_of(status, str(kind), ErrorCode.MODEL_UNREACHABLE)
        return code, f"The model failed for {seconds:g} s, however often it was tried ({status or kind})."

    async def _stop(self, code: ErrorCode, words: str) -> None:
        self._turn.stopped = (code, words)
        with contextlib.suppress(ProgramFault):
            await self._opened.wire.request("interrupt", self._opened.deadlines.answer)

    # ---------------------------------------------------------------- what it asks

    async def _asked(self, number: str, request: Message) -> list[Event]:
        wire = self._opened.wire
        with contextlib.suppress(ProgramFault):
            match request.get("subtype"):
                case "hook_callback":
                    return await self._gate(number, request.get("input") or {})
                case "can_use_tool" if self._turn.ending:
                    await wire.reply(number, {"behavior": "deny", "message": _STOPPED})
                case "can_use_tool" if self._opened.mode is PermissionMode.READ:
                    await wire.reply(number, {"behavior": "deny", "message": _READ_ONLY})
                case "can_use_tool":
                    return list(self._opened.asking.ask(number, request))
                case other:
                    await wire.refuse(number, f"Clew does not answer {other}.")
        return []

    async def _gate(self, number: str, at: Message) -> list[Event]:
        """It holds a prompt back until we agree; what we refuse here reaches no model and no history."""
        opened, turn = self._opened, self._turn
        if turn.ended_with is not None and turn.tells is not None:
            if at.get("prompt") == turn.tells.text:
                await opened.wire.reply(number, {"decision": "block", "reason": _NEXT_TURN})
            else:
                # What it begins by itself waits for the next turn.
                turn.inbox.put_nowait(Asked(number, {"subtype": "hook_callback", "input": at}))
            return await self._end(turn.ended_with)
        wrong = opened.wrong(at.get("session_id"), at.get("cwd"), at.get("permission_mode"))
        if at.get("prompt") == turn.text:
            # Where it said it was at a turn of its own making does not count any more.
            turn.accept()
            turn.stands = None
            if opened.transcript is None:
                opened.transcript = Path(str(at.get("transcript_path")))
            if wrong is not None and not turn.ending:
                turn.stopped = (ErrorCode.UNKNOWN, f"{wrong} The prompt was not sent on.")
            turn.blocked = turn.ending
        if wrong is None and not turn.ending:
            await opened.wire.reply(number, {})
            return []
        await opened.wire.reply(number, {"decision": "block", "reason": wrong or _STOPPED})
        return []
