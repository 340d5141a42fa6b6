"""An open session of Claude Code: the port's LiveSession, and the listener of its connection."""

import asyncio
import contextlib
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import replace

from clew.kernel import Answer, ApprovalId, Cursor, Landing, PermissionMode, PromptId
from clew.ports.events import ErrorCode, Event
from clew.programs.checks import expressed
from clew.programs.faults import ProgramEnded, ProgramFault, Refused
from clew.programs.rpc import Message
from clew.programs.session import OpenSession
from clew.programs.tasks import TaskSet
from clew.providers.claude.home import AGENT, CURSORS
from clew.providers.claude.locks import is_at_terminal
from clew.providers.claude.modes import TOOL_HOOK, WORKTREE_HOOK, before_a_tool
from clew.providers.claude.opened import BackgroundTasks, Opened
from clew.providers.claude.turn import (
    ProcessEnded,
    PromptWritten,
    Received,
    RequestClosed,
    Requested,
    Retried,
    Silence,
    Steer,
    Turn,
    TurnFollower,
    literal,
)

Restart = Callable[["ClaudeSession", Opened, str | None], Awaitable[Opened]]
"""Starts another process for an opened session, with that model and in its next mode."""

_NO_TURN = "No person can be asked: no turn of the user's is running."
_NO_WORKTREE = "This session makes no worktrees; work in the current directory."
_GRACE = 2.0
"""Seconds for a program whose input was closed to write its last lines."""


class ClaudeSession(OpenSession):
    """Requests that come between turns are answered here; those within a turn go to the turn's inbox."""

    def __init__(self, expressible: frozenset[PermissionMode], restart: "Restart") -> None:
        super().__init__()
        self._expressible, self._restart = expressible, restart
        self._opened_as: Opened | None = None
        self._turn: Turn | None = None
        self._ended: str | None = None
        self._clearing: asyncio.Task[None] | None = None
        self._restarting = False
        # The last turn was left before its end: it was told to stop, and may still be running.
        self._left_running = False
        self._answering = TaskSet()
        # Prompts and steers, by id, that were given up before the program took them: the gate refuses them whenever
        # they come, and those that are still in its queue are withdrawn before the next prompt is sent.
        self._abandoned: dict[str, str] = {}
        # Turns that the program wants to begin by itself: they wait for the next turn.
        self._waiting: dict[str, Requested] = {}
        self._background = BackgroundTasks()

    def set_opened(self, opened: Opened) -> None:
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
        """None once the transcript is deleted: the running program still knows its session, no other process does."""
        return self._opened.cursor if self._opened.is_stored else None

    @property
    def has_ended(self) -> bool:
        return self._ended is not None

    @property
    def ends_in(self) -> float | None:
        turn = self._turn
        if turn is None or self._opened.approvals:
            return None
        return turn.silent_until(self._opened.deadlines.silence) - asyncio.get_running_loop().time()

    @property
    def address(self) -> Cursor:
        """Known from the start: Clew chooses the id of a new session."""
        return CURSORS.cursor(self._opened.native_id)

    @property
    def works_on(self) -> bool:
        """Whether a background task is running, however many turns have ended since it began."""
        return self._ended is None and bool(self._background)

    @property
    def process(self) -> int:
        return self._opened.program.pid

    def has_visitor(self) -> bool:
        """Whether a person has opened the session: two processes in it would each lose what the other one says."""
        return is_at_terminal(self._opened.home, self._opened.native_id)

    @property
    def is_idle(self) -> bool:
        """Whether every turn has come to its end."""
        return self._turn is None and not self._restarting and not self._left_running

    # ---------------------------------------------------------------- turns

    async def turn(self, prompt: str, id: PromptId | None = None) -> AsyncIterator[Event]:  # noqa: A002
        self._check_ready()
        turn = self._turn = Turn(literal(prompt), self._opened.reader(), id or str(uuid.uuid4()))
        watching: asyncio.Task[None] | None = None
        try:
            yield self._opened.named
            for event in await self._prepare(turn):
                yield event
            for waiting in self._waiting.values():
                self._deliver(waiting)
            self._waiting.clear()
            follower = TurnFollower(self._opened, turn)
            for event in [] if turn.over else await self._send(follower, turn):
                yield event
            if self._opened.cursor is None:
                watching = asyncio.create_task(follower.watch())
            while not turn.over:
                for event in await follower.events():
                    yield event
        finally:
            self._opened.approvals.clear()
            if watching is not None:
                watching.cancel()
            turn.release_waiters()
            if turn.steer is not None and not turn.steer.taken.result() and not turn.steer.refused:
                self._abandoned[turn.steer.id] = turn.steer.text
            if not turn.accepted:
                self._abandoned[turn.id] = turn.text
            try:
                if not turn.over:
                    await self.interrupt()
            finally:
                self._turn, self._left_running = None, not turn.over
                self._drain(turn)

    def _drain(self, turn: Turn) -> None:
        """Handle signals that came after the turn's end as if no turn were going: a request would stay unanswered."""
        while not turn.inbox.empty():
            match turn.inbox.get_nowait():
                case Received(message):
                    self._count_usage(message)
                case Requested(number, request):
                    self.on_request(number, request)
                case RequestClosed(number):
                    self.on_withdrawn(number)
                case PromptWritten() | ProcessEnded() | Silence() | Retried():
                    pass

    async def _prepare(self, turn: Turn) -> list[Event]:
        """Withdraw what was given up, and put the mode that was set meanwhile into force.

        If that fails, the prompt is not sent.
        """
        try:
            while self._ended is None and (self._opened.needs_restart or not await self._withdraw_abandoned()):
                await self._start_again(self._opened.model)
        except ProgramFault as fault:
            return list(turn.cut(ErrorCode.PROGRAM_ENDED, fault.words))
        return []

    async def _withdraw_abandoned(self) -> bool:
        """Whether the program's queue is free of abandoned words: it would send them together with the next prompt."""
        for id_ in tuple(self._abandoned):
            withdrawn = await self._opened.connection.withdraw(id_, self._opened.deadlines.answer)
            if not withdrawn and id_ in self._abandoned:
                return False
            self._abandoned.pop(id_, None)
        return True

    async def _send(self, follower: TurnFollower, turn: Turn) -> list[Event]:
        if self._ended is not None:
            said = f"Claude Code has ended: {self._ended or 'it said nothing'}"
            return list(turn.cut(ErrorCode.PROGRAM_ENDED, said))
        return await follower.send()

    async def interrupt(self) -> None:
        turn = self._turn
        if turn is None or turn.ending or self._ended is not None:
            return
        # From now on the gate refuses every prompt; a turn that is past it is told to stop.
        turn.interrupted = True
        self._opened.approvals.clear()
        with contextlib.suppress(ProgramFault):
            await self._opened.connection.request("interrupt", self._opened.deadlines.answer)

    async def steer(self, prompt: str, id: PromptId | None = None) -> bool:  # noqa: A002
        turn = self._turn
        if turn is None:
            return False
        async with turn.steering:
            # Before the program has taken the prompt, it would take both for one.
            if not await asyncio.shield(turn.begun) or turn.over or turn.ending or self._ended is not None:
                return False
            if turn.result is not None:
                return False
            steer = turn.steer = Steer(literal(prompt), id or str(uuid.uuid4()))
            try:
                await self._opened.connection.send_steer(steer.text, steer.id)
            except ProgramFault:
                steer.resolve(False)
            # Echoed words can still be lost: the program writes them a little later, and asks its model meanwhile.
            return await steer.taken and await self._opened.wait_steer_written(
                steer.id, lambda: self._ended is not None
            )

    async def answer(self, approval: ApprovalId, given: Answer, words: str = "") -> bool:
        was_open, reply = self._opened.approvals.answer(approval, given, words)
        if reply is not None:
            try:
                await self._opened.connection.reply(*reply)
            except ProgramFault:
                return False
            self._deliver(RequestClosed(reply[0]))
        return was_open

    # ---------------------------------------------------------------- mode and model

    async def set_mode(self, mode: PermissionMode) -> PermissionMode:
        chosen = expressed(mode, self._expressible, AGENT)
        # Set first: if it cannot be applied now, no turn goes out before it is.
        self._opened.next_mode = chosen
        if self._turn is not None:
            return chosen
        if self._opened.needs_restart:
            self._check_ready()
            if self._ended is not None:
                raise ProgramEnded("The program has ended.", "Open the session again in that mode.")
            await self._start_again(self._opened.model)
            return self._opened.mode
        return await self._opened.apply_mode()

    async def set_model(self, model: str) -> None:
        """Restart the program: changing the model of a running one adds three messages to the history."""
        self._check_ready()
        await self._start_again(model)

    async def _start_again(self, model: str | None) -> None:
        """End the process, with its background tasks, and start another."""
        before, self._restarting = self._opened, True
        try:
            await self._close_input()
            await before.program.end(before.deadlines.close)
            await before.connection.close()
            self._waiting.clear()
            self._abandoned.clear()
            self._background = BackgroundTasks()
            self._ended, ended, wanted = None, self._ended, before.next_mode
            try:
                opened = await self._restart(self, before, model)
            except BaseException:
                self._ended = ended
                raise
            if before.next_mode is not wanted:
                # Set while it started.
                opened.next_mode = before.next_mode
            # The caller counts turns since the first landing.
            opened.landing = replace(opened.landing, turns=before.landing.turns)
            self._opened_as = opened
        finally:
            self._restarting = False
        if self.is_closed:
            await self._opened.end()
            raise Refused("The session was closed meanwhile.", "Open it again.")

    def _check_ready(self) -> None:
        self._must_be_idle(self._turn)
        if self._restarting:
            raise Refused("The session is being started again.", "Wait until it is.")

    async def _close(self) -> None:
        opened, turn = self._opened, self._turn
        opened.approvals.clear()
        try:
            if turn is not None:
                turn.interrupted = True
            else:
                await self._close_input()
            await opened.end()
        finally:
            if self._clearing is not None:
                await asyncio.wait([self._clearing])

    async def _close_input(self) -> None:
        """The program ends by this, and writes what it still has."""
        if self._ended is None:
            await self._opened.program.close_input()
            await self._opened.program.wait(min(_GRACE, self._opened.deadlines.close))

    # ---------------------------------------------------------------- the listener of the connection

    def on_message(self, message: Message) -> None:
        self._background.note(message)
        if not self._deliver(Received(message)):
            self._count_usage(message)

    def _count_usage(self, message: Message) -> None:
        if message.get("type") == "result" and self._opened_as is not None:
            self._opened_as.count_usage(message)

    def on_request(self, number: str, request: Message) -> None:
        at_tool = request.get("callback_id") in (TOOL_HOOK, WORKTREE_HOOK)
        words = (request.get("input") or {}).get("prompt")
        abandoned = next((id_ for id_, text in self._abandoned.items() if text == words and not at_tool), None)
        # An abandoned prompt is part of no later turn, whenever it comes.
        if abandoned is not None:
            del self._abandoned[abandoned]
        elif self._opened_as is None or (not at_tool and self._deliver(Requested(number, request))):
            return
        elif request.get("subtype") == "hook_callback" and not at_tool:
            self._waiting[number] = Requested(number, request)
            return
        self._answering.start(self._answer_alone(number, request))

    async def _answer_alone(self, number: str, request: Message) -> None:
        """Answer a request for which no turn and no person is needed."""
        connection = self._opened.connection
        with contextlib.suppress(ProgramFault):
            match request.get("subtype"):
                case "hook_callback" if request.get("callback_id") == TOOL_HOOK:
                    at = request.get("input") or {}
                    decision = before_a_tool(at.get("tool_name"), at.get("permission_mode"), self._opened.mode)
                    await connection.reply(number, decision)
                case "hook_callback" if request.get("callback_id") == WORKTREE_HOOK:
                    await connection.refuse(number, _NO_WORKTREE)
                case "hook_callback":
                    await connection.reply(number, {"decision": "block", "reason": _NO_TURN})
                case "can_use_tool":
                    await connection.reply(number, {"behavior": "deny", "message": _NO_TURN})
                case other:
                    await connection.refuse(number, f"Clew does not answer {other}.")

    def on_withdrawn(self, number: str) -> None:
        if self._opened_as is not None:
            self._opened_as.approvals.withdraw(number)
        self._waiting.pop(number, None)
        # Also through the inbox, in its order: the request itself may still be in there.
        self._deliver(RequestClosed(number))

    def on_end(self, words: str) -> None:
        self._ended = words
        if self._opened_as is None:
            return
        self._opened_as.approvals.clear()
        if self.is_closed:
            self._deliver(ProcessEnded(words))
        elif not self._restarting:
            # It ended by itself, perhaps killed: what it had started must not go on without it.
            self._clearing = asyncio.create_task(self._clear(self._opened_as, words))

    async def _clear(self, opened: Opened, words: str) -> None:
        try:
            await opened.program.end(opened.deadlines.close, gently=False)
        finally:
            self._deliver(ProcessEnded(words))

    def _deliver(self, signal: Received | Requested | RequestClosed | ProcessEnded) -> bool:
        """Put the signal into the inbox of the turn that is going; False when none is."""
        if self._turn is not None:
            self._turn.inbox.put_nowait(signal)
        return self._turn is not None
