"""An open session of Claude Code, as the port has it."""

import asyncio
import contextlib
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import replace

from clew.kernel import Answer, ApprovalId, Cursor, Landing, PermissionMode, PromptId, choose_mode
from clew.ports.events import ErrorCode, Event
from clew.programs.faults import NotAble, ProgramEnded, ProgramFault, Refused
from clew.providers.claude.following import Following
from clew.providers.claude.landing import TOOLS, WORKTREES
from clew.providers.claude.modes import before_a_tool
from clew.providers.claude.opened import Opened
from clew.providers.claude.steering import steered
from clew.providers.claude.turn import Answered, Asked, Ended, Silent, Told, Turn, Written, literal
from clew.providers.claude.way import CURSOR_VERSION
from clew.providers.claude.wire import Message
from clew.providers.claude.working import Working

Again = Callable[["Live", Opened, str | None], Awaitable[Opened]]
"""Starts the program of an opened session anew, with that model and in its next mode."""

_NOBODY = "Nobody is there to ask: no turn of the user's is going."
_NO_WORKTREE = "This session makes no worktrees; work in the directory that there is."
_GRACE = 2.0
"""Seconds in which a program that is told of its end writes what it still has."""


class Live:
    """Listens to its wire; between turns that is to nobody's use, but it must be answered."""

    def __init__(self, expressible: frozenset[PermissionMode], again: "Again", gone: Callable[["Live"], None]) -> None:
        self._expressible, self._again, self._gone = expressible, again, gone
        self._opened_as: Opened | None = None
        self._turn: Turn | None = None
        self._ended: str | None = None
        self._closing: asyncio.Task[None] | None = None
        self._clearing: asyncio.Task[None] | None = None
        self._restarting = False
        # A turn that nobody followed to its end: it was told to stop, and may still be at it.
        self._left_off = False
        self._answering: set[asyncio.Task[None]] = set()
        self._given_up: set[str] = set()
        # Turns that it wants to begin by itself: they wait until somebody follows.
        self._waiting: dict[str, Asked] = {}
        self._working = Working()

    def landed(self, opened: Opened) -> None:
        self._opened_as = opened

    @property
    def _opened(self) -> Opened:
        assert self._opened_as is not None, "it is handed out only once it has landed"
        return self._opened_as

    @property
    def landing(self) -> Landing:
        return self._opened.landing

    @property
    def cursor(self) -> Cursor | None:
        """A program that runs knows its session still; once its transcript is deleted, no other process finds it."""
        return self._opened.cursor if self._opened.is_stored else None

    @property
    def has_ended(self) -> bool:
        return self._ended is not None

    @property
    def address(self) -> Cursor:
        """Known from the start: the program is told which id a new session gets."""
        return Cursor(CURSOR_VERSION, self._opened.native_id)

    @property
    def works_on(self) -> bool:
        """Whether something goes on in the background: true until it has ended, however many turns come between."""
        return self._ended is None and bool(self._working)

    @property
    def process(self) -> int:
        return self._opened.program.pid

    @property
    def is_idle(self) -> bool:
        """Whether every turn that was asked of it has come to its end."""
        return self._turn is None and not self._restarting and not self._left_off

    # ---------------------------------------------------------------- turns

    async def turn(self, prompt: str, id: PromptId | None = None) -> AsyncIterator[Event]:  # noqa: A002
        self._must_be_idle()
        turn = self._turn = Turn(literal(prompt), self._opened.telling(), id or str(uuid.uuid4()))
        self._given_up.discard(turn.text)
        watching: asyncio.Task[None] | None = None
        try:
            yield self._opened.named
            for event in await self._ready(turn):
                yield event
            for waiting in self._waiting.values():
                self._hear(waiting)
            self._waiting.clear()
            following = Following(self._opened, turn)
            for event in [] if turn.over else await self._sent(following, turn):
                yield event
            if self._opened.cursor is None:
                watching = asyncio.create_task(following.watch())
            while not turn.over:
                for event in await following.events():
                    yield event
        finally:
            self._opened.asking.forget_all()
            if watching is not None:
                watching.cancel()
            turn.leave()
            if turn.steered is not None and not turn.steered.taken.result():
                # It was kept from it, or comes with it still.
                self._given_up.add(turn.steered.text)
            if not (turn.over and turn.accepted):
                # It may still be on its way, and does not go on without anybody.
                self._given_up.add(turn.text)
            try:
                if not turn.over:
                    await self.interrupt()
            finally:
                self._turn, self._left_off = None, not turn.over
                self._hear_out(turn)

    def _hear_out(self, turn: Turn) -> None:
        """What came too late for a turn that is over counts as heard after it, or it would never be answered."""
        while not turn.inbox.empty():
            match turn.inbox.get_nowait():
                case Told(message):
                    self._count(message)
                case Asked(number, request):
                    self.asked(number, request)
                case Answered(number):
                    self.taken_back(number)
                case Written() | Ended() | Silent():
                    pass

    async def _ready(self, turn: Turn) -> list[Event]:
        """Whatever mode was set meanwhile is in force before the prompt goes out, or it does not go out."""
        try:
            while self._ended is None and self._opened.needs_another:
                await self._start_again(self._opened.model)
        except ProgramFault as fault:
            return list(turn.cut(ErrorCode.PROGRAM_ENDED, fault.words))
        return []

    async def _sent(self, following: Following, turn: Turn) -> list[Event]:
        if self._ended is not None:
            said = f"Claude Code has ended: {self._ended or 'it said nothing'}"
            return list(turn.cut(ErrorCode.PROGRAM_ENDED, said))
        return await following.send()

    async def interrupt(self) -> None:
        turn = self._turn
        if turn is None or turn.ending or self._ended is not None:
            return
        # From now on the gate lets nothing through; what is past it is told to stop.
        turn.interrupted = True
        self._opened.asking.forget_all()
        with contextlib.suppress(ProgramFault):
            await self._opened.wire.request("interrupt", self._opened.deadlines.answer)

    async def steer(self, prompt: str, id: PromptId | None = None) -> bool:  # noqa: A002
        turn = self._turn
        if turn is None:
            return False
        async with turn.steering:
            # Before it has taken the prompt itself it would take both for one.
            if not await asyncio.shield(turn.begun) or turn.over or turn.ending or self._ended is not None:
                return False
            if turn.ended_with is not None:
                return False
            told = turn.steered = steered(literal(prompt), id or str(uuid.uuid4()))
            try:
                await self._opened.wire.words(told.text, told.id)
            except ProgramFault:
                told.settle(False)
            # Told back, they may still be lost: it writes them a little later, and asks its model meanwhile.
            return await told.taken and await self._opened.keeps(told.id, lambda: self._ended is not None)

    async def answer(self, approval: ApprovalId, given: Answer, words: str = "") -> bool:
        asked, reply = self._opened.asking.answer(approval, given, words)
        if reply is not None:
            try:
                await self._opened.wire.reply(*reply)
            except ProgramFault:
                return False
            self._hear(Answered(reply[0]))
        return asked

    # ---------------------------------------------------------------- what is changed

    async def set_mode(self, mode: PermissionMode) -> PermissionMode:
        chosen = choose_mode(mode, (), self._expressible).mode
        if chosen is None:
            raise NotAble(f"Claude Code cannot express {mode}.", "Choose another mode.")
        # Set first: when it cannot be applied now, no turn goes out before it is.
        self._opened.next_mode = chosen
        if self._turn is not None:
            return chosen
        if self._opened.needs_another:
            self._must_be_idle()
            if self._ended is not None:
                raise ProgramEnded("The program has ended.", "Open the session again in that mode.")
            await self._start_again(self._opened.model)
            return self._opened.mode
        return await self._opened.apply_mode()

    async def set_model(self, model: str) -> None:
        """Started again: a model that is changed as it runs leaves three messages of its own in the history."""
        self._must_be_idle()
        await self._start_again(model)

    async def _start_again(self, model: str | None) -> None:
        """What it still runs ends with its process."""
        before, self._restarting = self._opened, True
        try:
            await self._leave()
            await before.program.end(before.deadlines.close)
            await before.wire.close()
            self._waiting.clear()
            self._working = Working()
            self._ended, ended, wanted = None, self._ended, before.next_mode
            try:
                opened = await self._again(self, before, model)
            except BaseException:
                self._ended = ended
                raise
            if before.next_mode is not wanted:
                # Set while it started.
                opened.next_mode = before.next_mode
            # Whoever counts has counted the turns since the first landing.
            opened.landing = replace(opened.landing, turns=before.landing.turns)
            self._opened_as = opened
        finally:
            self._restarting = False
        if self._closing is not None:
            await self._opened.end()
            raise Refused("The session was closed meanwhile.", "Open it again.")

    def _must_be_idle(self) -> None:
        if self._closing is not None:
            raise Refused("The session is closed.", "Open it again.")
        if self._turn is not None:
            raise Refused("A turn of this session is going.", "Wait for its end, or interrupt it.")
        if self._restarting:
            raise Refused("The session is being started again.", "Wait until it is.")

    async def close(self) -> None:
        if self._closing is None:
            self._closing = asyncio.create_task(self._close())
        await asyncio.shield(self._closing)

    async def _close(self) -> None:
        opened, turn = self._opened, self._turn
        opened.asking.forget_all()
        try:
            if turn is not None:
                turn.interrupted = True
            else:
                await self._leave()
            await opened.end()
        finally:
            if self._clearing is not None:
                await asyncio.wait([self._clearing])
            self._gone(self)

    async def _leave(self) -> None:
        """Tell it of its end, so that it writes what it still has."""
        if self._ended is None:
            await self._opened.program.close_input()
            await self._opened.program.wait(min(_GRACE, self._opened.deadlines.close))

    # ---------------------------------------------------------------- the listener of its wire

    def told(self, message: Message) -> None:
        self._working.told(message)
        if not self._hear(Told(message)):
            self._count(message)

    def _count(self, message: Message) -> None:
        if message.get("type") == "result" and self._opened_as is not None:
            self._opened_as.count(message)

    def asked(self, number: str, request: Message) -> None:
        at_tool = request.get("callback_id") in (TOOLS, WORKTREES)
        given_up = (request.get("input") or {}).get("prompt") in self._given_up
        # What was given up is no part of another turn, whenever it comes.
        if self._opened_as is None or (not at_tool and not given_up and self._hear(Asked(number, request))):
            return
        if request.get("subtype") == "hook_callback" and not at_tool and not given_up:
            self._waiting[number] = Asked(number, request)
            return
        answering = asyncio.create_task(self._answer_alone(number, request))
        self._answering.add(answering)
        answering.add_done_callback(self._answering.discard)

    async def _answer_alone(self, number: str, request: Message) -> None:
        wire = self._opened.wire
        with contextlib.suppress(ProgramFault):
            match request.get("subtype"):
                case "hook_callback" if request.get("callback_id") == TOOLS:
                    at = request.get("input") or {}
                    told = before_a_tool(at.get("tool_name"), at.get("permission_mode"), self._opened.mode)
                    await wire.reply(number, told)
                case "hook_callback" if request.get("callback_id") == WORKTREES:
                    await wire.refuse(number, _NO_WORKTREE)
                case "hook_callback":
                    self._given_up.discard((request.get("input") or {}).get("prompt"))
                    await wire.reply(number, {"decision": "block", "reason": _NOBODY})
                case "can_use_tool":
                    await wire.reply(number, {"behavior": "deny", "message": _NOBODY})
                case other:
                    await wire.refuse(number, f"Clew does not answer {other}.")

    def taken_back(self, number: str) -> None:
        if self._opened_as is not None:
            self._opened_as.asking.forget(number)
        self._waiting.pop(number, None)
        # Once more in its order: the question itself may not have been looked at yet.
        self._hear(Answered(number))

    def ended(self, words: str) -> None:
        self._ended = words
        if self._opened_as is None:
            return
        self._opened_as.asking.forget_all()
        if self._closing is not None:
            self._hear(Ended(words))
        elif not self._restarting:
            # It ended by itself, perhaps killed: what it had started must not go on without it.
            self._clearing = asyncio.create_task(self._clear(self._opened_as, words))

    async def _clear(self, opened: Opened, words: str) -> None:
        try:
            await opened.program.end(opened.deadlines.close, gently=False)
        finally:
            self._hear(Ended(words))

    def _hear(self, heard: Told | Asked | Answered | Ended) -> bool:
        if self._turn is not None:
            self._turn.inbox.put_nowait(heard)
        return self._turn is not None
