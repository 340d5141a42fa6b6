"""An open session of Codex: one thread in its own app-server; the port's LiveSession."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from typing import Any

from clew.kernel import Answer, ApprovalId, Cursor, Landing, NativeId, PermissionMode, PromptId
from clew.ports.events import Done, Ending, ErrorCode, Event, Failed, SessionNamed
from clew.programs.faults import ProgramEnded, ProgramFault, TooSlow
from clew.programs.rpc import CallRefused
from clew.programs.session import OpenSession
from clew.programs.visitors import opened_by_command
from clew.providers.codex.approvals import Approvals
from clew.providers.codex.events import Meter, files
from clew.providers.codex.home import Home
from clew.providers.codex.modes import ThreadSettings
from clew.providers.codex.rollout import CURSORS
from clew.providers.codex.server import AppServer, Json
from clew.providers.codex.thread_calls import BackgroundCommands, Opened, discard
from clew.providers.codex.trust import check_mode
from clew.providers.codex.turn import Gone, Notification, Turn, TurnFile


class CodexSession(OpenSession):
    """`echoed` collects the prompts that Codex echoed in turns that did not complete."""

    def __init__(
        self,
        server: AppServer,
        opened: Opened,
        home: Home,
        echoed: set[PromptId],
    ) -> None:
        super().__init__()
        self._server, self._opened, self._home, self._echoed = server, opened, home, echoed
        self._settings = ThreadSettings(server, opened.id, opened.policy, opened.model)
        self._approvals = Approvals(f"{opened.id}/{id(self):x}")
        self._commands = BackgroundCommands(server, opened.id)
        self._meter = Meter()
        self._turn: Turn | None = None
        self._limits: Json = {}
        server.listen(self)

    @property
    def landing(self) -> Landing:
        return self._opened.landing

    @property
    def cursor(self) -> Cursor | None:
        """None while the thread has no file, as before its first turn: no other process could find it."""
        path = self._opened.path
        with contextlib.suppress(OSError):
            if path is not None and path.stat().st_size > 0:
                return self.address
        return None

    @property
    def address(self) -> Cursor:
        """Codex names a thread before the thread has a file."""
        return CURSORS.cursor(self._opened.id)

    @property
    def works_on(self) -> bool:
        """Whether a background command is running, however many turns have ended since it began."""
        return bool(self._commands)

    @property
    def has_ended(self) -> bool:
        return not self._server.lives

    @property
    def ends_in(self) -> float | None:
        turn = self._turn
        return None if turn is None or self._approvals else turn.left(self._server.deadlines.silence)

    def has_visitor(self) -> bool:
        """Whether a person wants the session: a second Codex waits at its terminal until this one lets go."""
        return opened_by_command("codex", self._opened.id)

    @property
    def is_turning(self) -> bool:
        return self._turn is not None and not self._turn.over.is_set()

    # ---------------------------------------------------------------- a turn

    async def turn(self, prompt: str, id: PromptId | None = None) -> AsyncIterator[Event]:  # noqa: A002 - the prompt's own
        self._must_be_idle(self.is_turning)
        turn = self._turn = Turn(self._opened.id, self._meter, self._server.redactor)
        try:
            async for event in self._follow(turn, prompt, id):
                yield event
        finally:
            try:
                if not turn.over.is_set():
                    await self._stop(turn)
                await self._commands.refresh()
            finally:
                if not turn.is_stored:
                    self._echoed |= turn.echoed
                if self._turn is turn:
                    self._approvals.clear()
                    self._turn = None

    async def _follow(self, turn: Turn, prompt: str, id_: PromptId | None) -> AsyncIterator[Event]:
        file = TurnFile(self._opened.path)
        fault = await self._begin(turn, prompt, id_)
        if fault is not None:
            yield fault
            yield Done(Ending.FAILED)
            return
        named = False
        while True:
            if not named and self.cursor is not None:
                named = True
                yield SessionNamed(NativeId(self._opened.id), durable=True)
            # There is no deadline while a person is asked.
            signal = await turn.next(None if self._approvals else self._server.deadlines.silence)
            match signal:
                case None:
                    yield await self._gave_up(turn)
                    yield Done(Ending.FAILED)
                    return
                case Gone() if turn.interrupted or self.is_closed:
                    yield Done(Ending.INTERRUPTED)
                    return
                case Gone(words):
                    said = self._hidden(f"Codex ended in the turn: {words or 'it said nothing'}.")
                    yield Failed(ErrorCode.PROGRAM_ENDED, said, retryable=True)
                    yield Done(Ending.FAILED)
                    return
                case Notification():
                    for event in turn.events(signal, self._limits):
                        completed = isinstance(event, Done) and event.ending is Ending.COMPLETED
                        if completed and (failure := await file.failure(turn.id)) is not None:
                            yield failure
                            yield Done(Ending.FAILED, turn.reply)
                            return
                        turn.is_stored = completed
                        yield event
                        if isinstance(event, Done):
                            return
                case _:
                    yield signal

    async def _begin(self, turn: Turn, prompt: str, id_: PromptId | None) -> Failed | None:
        """Send the prompt; returns the failure, if there was one. Whether Codex took the prompt is then not known: the
        rollout tells (`evidence`)."""
        asked: dict[str, Any] = {
            "threadId": self._opened.id,
            **_input(prompt, id_),
            "model": self._settings.model,
            **self._settings.policy.for_turn(),
        }
        if self._opened.instructions is not None:
            settings = {"model": self._settings.model, **self._opened.instructions}
            asked["collaborationMode"] = {"mode": "default", "settings": settings}
        try:
            answer = await self._server.call("turn/start", asked)
            turn.begin(str(answer["turn"]["id"]))
        except ProgramEnded as fault:
            turn.end()
            return Failed(ErrorCode.PROGRAM_ENDED, self._hidden(fault.words), retryable=True)
        except CallRefused as fault:
            turn.end()
            return Failed(ErrorCode.BAD_REQUEST, self._hidden(fault.words), retryable=False)
        except (TooSlow, KeyError, TypeError) as fault:
            # Without its process the turn cannot go on unseen.
            await self._server.close()
            words = f"Codex was handed the prompt, and did not say that the turn began ({fault}). It was ended."
            return Failed(ErrorCode.TOO_SLOW, self._hidden(words), retryable=isinstance(fault, TooSlow))
        return None

    async def _gave_up(self, turn: Turn) -> Failed:
        code = ErrorCode.MODEL_UNREACHABLE if turn.retrying else ErrorCode.TOO_SLOW
        why = "it tries again and again to reach its model" if turn.retrying else "nothing came"
        words = f"Nothing moved for {self._server.deadlines.silence:g} s ({why}), so the turn was ended."
        await self._stop(turn)
        return Failed(code, words, retryable=True)

    # ---------------------------------------------------------------- end

    async def interrupt(self) -> None:
        turn = self._turn
        if turn is not None and not turn.over.is_set():
            turn.interrupted = True
            await self._stop(turn)

    async def _stop(self, turn: Turn) -> None:
        """End the turn; where Codex does not, end Codex."""
        try:
            async with asyncio.timeout(self._server.deadlines.close):
                await self._ask_to_stop(turn)
        except (ProgramFault, TimeoutError):
            await self._server.close()

    async def _ask_to_stop(self, turn: Turn) -> None:
        await turn.begun.wait()
        if not turn.over.is_set():
            with contextlib.suppress(CallRefused):
                # Codex refuses when the turn has just ended by itself.
                await self._server.call("turn/interrupt", {"threadId": self._opened.id, "turnId": turn.id})
            await turn.over.wait()
        await self._end_commands(turn)

    async def _end_commands(self, turn: Turn) -> None:
        if turn.running and self._server.lives:
            with contextlib.suppress(CallRefused, ProgramEnded):
                await self._commands.end(turn.running)

    async def discard(self) -> None:
        """Close a session whose opening was cancelled in the moment in which it was done."""
        await discard(self._server, self._home, self._opened)
        await self.close()

    async def _close(self) -> None:
        self._approvals.clear()
        turn = self._turn
        try:
            if turn is not None and self._server.lives:
                # Asked first, Codex writes that the turn was interrupted.
                with contextlib.suppress(ProgramFault, TimeoutError):
                    async with asyncio.timeout(self._server.deadlines.close / 4):
                        await self._ask_to_stop(turn)
        finally:
            await self._server.close()

    # ---------------------------------------------------------------- answers, steering and settings

    async def answer(self, approval: ApprovalId, given: Answer, words: str = "") -> bool:
        if self.is_closed or not self._server.lives:
            return False
        found = self._approvals.answer(approval, given, words)
        if found is None:
            return False
        if self._turn is not None:
            self._turn.moved()
        number, reply = found
        return reply is None or await self._server.reply(number, reply)

    async def steer(self, prompt: str, id: PromptId | None = None) -> bool:  # noqa: A002 - the prompt's own
        turn = self._turn
        if turn is None or self.is_closed:
            return False
        async with turn.steering:
            await turn.begun.wait()
            if turn.over.is_set() or turn.interrupted:
                return False
            # Codex queues the words first, and drops the queue when the turn is interrupted: only words that it echoes
            # are part of the turn.
            echo = turn.expect(prompt, id)
            try:
                asked = {"threadId": self._opened.id, "expectedTurnId": turn.id, **_input(prompt, id)}
                await self._server.call("turn/steer", asked)
            except CallRefused:
                return False
            except (TooSlow, ProgramEnded):
                # The echo, or the end of the turn, tells whether Codex got it.
                pass
            return await echo

    async def set_mode(self, mode: PermissionMode) -> PermissionMode:
        self._must_be_open()
        check_mode(self._home, mode, str(self.landing.directory))
        return await self._settings.set_mode(mode, self._home.workspace)

    async def set_model(self, model: str) -> None:
        self._must_be_open()
        await self._settings.set_model(model)

    # ---------------------------------------------------------------- the listener of the server

    def on_notification(self, method: str, arguments: Json) -> None:
        self._commands.note(method, arguments)
        match method:
            case "account/rateLimits/updated":
                self._limits = arguments.get("rateLimits") or {}
            case "thread/settings/updated":
                self._settings.on_updated(arguments)
            case "serverRequest/resolved":
                self._approvals.withdraw(arguments.get("requestId"))
            case _:
                pass
        if self._turn is not None:
            self._turn.receive(method, arguments)

    def on_request(self, number: int | str, method: str, arguments: Json) -> bool:
        """Also of a sub-agent: it belongs to this session, and its turn waits for the answer."""
        turn = self._turn
        if turn is None or self.is_closed:
            return False
        hidden = self._server.redactor.value(arguments)
        file = files(turn.running.get(str(arguments.get("itemId")), {}))
        events = self._approvals.ask(number, method, hidden, file, {"method": method, "params": hidden})
        for event in events or ():
            turn.add(event)
        return events is not None

    def on_end(self, words: str) -> None:
        self._approvals.clear()
        if self._turn is not None:
            self._turn.gone(words)

    def _hidden(self, words: str) -> str:
        return self._server.redactor.text(words)


def _input(prompt: str, id_: PromptId | None) -> Json:
    """Codex writes the id beside the text in the rollout; the model does not see it."""
    words = {"input": [{"type": "text", "text": prompt}]}
    return words if id_ is None else {**words, "clientUserMessageId": id_}
