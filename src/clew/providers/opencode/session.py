"""An open session: held by us, in the server that all sessions of this home share."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from typing import TypeVar

from clew.kernel import (
    HELD_BY_AGENT,
    Answer,
    ApprovalId,
    Attestation,
    Cursor,
    Evidence,
    Landing,
    PermissionMode,
    PromptId,
    Sent,
    digest_of,
)
from clew.ports.events import Done, Ending, ErrorCode, Event, Failed, SessionNamed
from clew.ports.provider import Deadlines, OpenSpec
from clew.programs.faults import NotUnderstood, ProgramEnded, ProgramFault, Refused, SessionBusy, TooSlow
from clew.programs.secrets import Redactor
from clew.providers.opencode.api import Api
from clew.providers.opencode.approvals import Asking
from clew.providers.opencode.events import Following
from clew.providers.opencode.home import cursor_of
from clew.providers.opencode.http import Json, NotListening
from clew.providers.opencode.messages import cut_off, message_id, part_id
from clew.providers.opencode.modes import apply
from clew.providers.opencode.opened import Opened, must_have
from clew.providers.opencode.plugin import Belongings
from clew.providers.opencode.server import Listener, Server, Shared
from clew.providers.opencode.turn import Gone, Turn

T = TypeVar("T")

_PASSING: Mapping[type[ProgramFault], ErrorCode] = {
    ProgramEnded: ErrorCode.PROGRAM_ENDED,
    TooSlow: ErrorCode.TOO_SLOW,
    NotUnderstood: ErrorCode.UNKNOWN,
}
"""What may go well another time: the server died, did not answer in time, or answered with something odd."""


class OpenCodeSession:
    def __init__(
        self,
        opened: Opened,
        spec: OpenSpec,
        shared: Shared,
        belongings: Belongings,
        deadlines: Deadlines,
        redactor: Redactor,
        closed: Callable[["OpenCodeSession"], None],
        heard: Callable[[Cursor, Sent], Awaitable[Attestation]],
    ) -> None:
        self._opened, self._shared, self._belongings, self._closed = opened, shared, belongings, closed
        self._deadlines, self._redactor, self._heard = deadlines, redactor, heard
        self._mode, self._model, self._instructions = spec.mode, spec.model, spec.instructions
        self._left = opened.left
        self._asking = Asking(redactor)
        self._listener = Listener(self._told, self._server_ended)
        self._server: Server | None = None
        self._turn: Turn | None = None
        self._ruling = asyncio.Lock()
        self._closing: asyncio.Task[None] | None = None

    @property
    def landing(self) -> Landing:
        return self._opened.landing

    @property
    def cursor(self) -> Cursor | None:
        return cursor_of(self._opened.id)

    @property
    def has_ended(self) -> bool:
        return self._server is not None and not self._server.alive

    @property
    def address(self) -> Cursor | None:
        return cursor_of(self._opened.id)

    # ---------------------------------------------------------------- a turn

    async def turn(self, prompt: str, id: PromptId | None = None) -> AsyncIterator[Event]:  # noqa: A002 - the prompt's own
        self._must_be_open()
        if self._going is not None:
            raise SessionBusy("A turn of this session is going on.", "Wait for its end, or interrupt it.")
        following = Following(self._opened.id, self._redactor, self._asking, self._opened.known)
        turn = self._turn = Turn(self._opened.id, self._opened.directory, following, self._deadlines, self._redactor)
        turn.withdraw = lambda: self._withdraw(turn)
        asked = self._words(prompt, id)
        if id is not None:
            turn.messages.append(message_id(id))
        try:
            yield SessionNamed(self._opened.landing.native_id or cursor_of(self._opened.id).native_id, durable=True)
            left, self._left = self._left, ()
            for part in left:
                yield cut_off(part)
            try:
                api = await self._begin(turn, asked, self._mode)
            except ProgramFault as fault:
                if turn.handed and not self._withdraw(turn):
                    # It may have been heard all the same, and would be answered with nobody there.
                    await self._stop(turn)
                turn.over.set()
                if not self._called_off(turn):
                    yield self._not_begun(fault)
                    yield Done(Ending.FAILED)
                    return
                api = None
            if api is None:
                turn.over.set()
                yield Done(Ending.INTERRUPTED)
                return
            async for event in turn.events(api):
                yield event
        finally:
            self._asking.drop()
            if not turn.over.is_set():
                await asyncio.shield(asyncio.ensure_future(self._stop(turn)))
            if self._turn is turn:
                self._turn = None
            self._clear_gate(turn)
            if self._server is not None and not self._server.alive:
                await self._belongings.end_processes()

    def _called_off(self, turn: Turn) -> bool:
        return turn.interrupted or self._closing is not None

    async def _begin(self, turn: Turn, asked: Json, mode: PermissionMode) -> Api | None:
        """Hand the prompt over, under that mode. None when it was called off before that.

        A second time only when it is certain that nobody got the first: it was not posted yet, or nobody took the
        connection. Of whatever else went wrong with it, the session is asked whether it has it (`heard`).
        """
        for last in (False, True):
            server = await self.attach()
            api = Api(server)
            try:
                await self._must_be_idle(api)
                await self._apply(api, mode)
                if self._called_off(turn):
                    return None
                for message in turn.messages:
                    self._opened.known.discard(message)
                    server.gate.open(message)
                turn.handed = True
                await api.prompt(self._opened.id, asked)
            except ProgramEnded as fault:
                if isinstance(fault, NotListening):
                    turn.not_handed()
                if last or turn.handed or not await server.has_ended():
                    raise
                continue
            return api
        raise AssertionError("the second time either ends or raises")

    def _words(self, prompt: str, id_: PromptId | None) -> dict[str, object]:
        text = {"type": "text", "text": prompt}
        asked: dict[str, object] = {"parts": [text], "agent": self._opened.agent.name}
        if id_ is not None:
            asked["messageID"], text["id"] = message_id(id_), part_id(id_)
        if self._model is not None:
            provider, _, model = self._model.partition("/")
            asked["model"] = {"providerID": provider, "modelID": model}
        if self._instructions is not None:
            asked["system"] = self._instructions
        return asked

    async def _must_be_idle(self, api: Api) -> None:
        """A prompt would otherwise be put into a turn that nobody follows any more."""
        if await api.busy(self._opened.id, self._opened.directory):
            await self._abort()
            if await api.busy(self._opened.id, self._opened.directory):
                raise SessionBusy(
                    "An earlier turn of this session does not end.", "Close the session, and open it again."
                )

    def _not_begun(self, fault: ProgramFault) -> Failed:
        code = next((code for kind, code in _PASSING.items() if isinstance(fault, kind)), None)
        return Failed(code or ErrorCode.UNKNOWN, self._redactor.text(fault.words), retryable=code is not None)

    @property
    def _going(self) -> Turn | None:
        return self._turn if self._turn is not None and not self._turn.over.is_set() else None

    # ---------------------------------------------------------------- during a turn

    async def interrupt(self) -> None:
        turn = self._going
        if turn is not None:
            turn.interrupt()
            self._asking.drop()
            await self._stop(turn)

    async def steer(self, prompt: str, id: PromptId | None = None) -> bool:  # noqa: A002 - the prompt's own
        """OpenCode keeps it at once and answers it before it is idle, or right after; the turn goes on until then."""
        turn = self._going
        if turn is None or not await turn.works() or turn is not self._going or self._called_off(turn):
            return False
        server = self._server
        if server is None or not server.alive:
            return False
        asked = self._words(prompt, id)
        if id is not None:
            server.gate.open(message_id(id))
            turn.messages.append(message_id(id))
        turn.owes(1)
        try:
            await Api(server).prompt(self._opened.id, asked)
        except ProgramFault as fault:
            taken = id is not None and await self._took(server, prompt, id, fault)
            turn.owes(0 if taken else -1)
            return taken
        return True

    async def _took(self, server: Server, prompt: str, id_: PromptId, fault: ProgramFault) -> bool:
        """Whether it got what was posted and not answered. Raises the fault when nobody can say."""
        if isinstance(fault, NotListening):
            return False
        if server.alive:
            return not server.gate.shut(message_id(id_))
        told = await self._heard(cursor_of(self._opened.id), Sent(id_, digest_of(prompt)))
        if told.evidence is Evidence.UNKNOWN:
            raise fault
        return told.evidence in HELD_BY_AGENT

    async def answer(self, approval: ApprovalId, given: Answer, words: str = "") -> bool:
        server = self._server
        if self._going is None or self._closing is not None or server is None or not server.alive:
            return False
        try:
            return await self._asking.answer(Api(server), self._opened.directory, approval, given, words)
        except ProgramEnded:
            return False

    async def set_mode(self, mode: PermissionMode) -> PermissionMode:
        self._must_be_open()
        if self._going is None:
            landed = await self._asked(lambda api: self._apply(api, mode))
        else:
            # Put to the session now, it would change what the turn that is going may do.
            landed = self._opened.agent.mode_of(self._opened.agent.rules_for(mode))
        self._mode = mode
        return landed

    async def _apply(self, api: Api, mode: PermissionMode) -> PermissionMode:
        # One after the other: a list is replaced in two steps.
        async with self._ruling:
            return await apply(api, await api.session(self._opened.id), mode, self._opened.agent)

    async def set_model(self, model: str) -> None:
        self._must_be_open()
        await self._asked(lambda api: must_have(api, self._opened.directory, model))
        self._model = model

    async def _asked(self, ask: Callable[[Api], Awaitable[T]]) -> T:
        async def asked(_: Server) -> T:
            return await ask(Api(await self.attach()))

        return await self._shared.ask(asked)

    async def _stop(self, turn: Turn) -> None:
        """End a turn. One that was handed over and has not begun would begin after the end."""
        if turn.handed:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(self._deadlines.close):
                    await turn.moved.wait()
            self._withdraw(turn)
            await self._abort()

    def _withdraw(self, turn: Turn) -> bool:
        """Keep out what was handed over and has not come in. True when nothing of the turn can come any more."""
        server = self._server
        if server is None or not server.alive:
            return False
        with contextlib.suppress(ProgramFault):
            unseen = [message for message in turn.messages if message not in self._opened.known]
            shut = [server.gate.shut(message) for message in unseen]
            return bool(shut) and all(shut)
        return False

    def _clear_gate(self, turn: Turn) -> None:
        """Of what is in the session nobody will ask whether it may come in."""
        if self._server is not None:
            for message in self._opened.known.intersection(turn.messages):
                self._server.gate.open(message)

    async def _abort(self) -> None:
        """End what goes on in the session, and wait until it has."""
        server = self._server
        if server is None or not server.alive:
            return
        api = Api(server)
        with contextlib.suppress(ProgramFault, TimeoutError):
            async with asyncio.timeout(self._deadlines.close):
                await api.abort(self._opened.id)
                while await api.busy(self._opened.id, self._opened.directory):
                    await asyncio.sleep(0.05)

    # ---------------------------------------------------------------- its server

    async def attach(self) -> Server:
        """The server that is running, with all that it must know of this session."""
        server = await self._shared.running()
        if self._server not in (None, server):
            await self._belongings.end_processes()
            server = await self._shared.running()
        if server is not self._server:
            self._must_be_open()
            self._belongings.lay(server.sessions)
            server.listen(self._listener)
            self._server = server
        return server

    def _told(self, event: Json) -> None:
        if (turn := self._going) is not None:
            turn.tell(event)

    def _server_ended(self, words: str) -> None:
        self._asking.drop()
        if (turn := self._going) is not None and turn.handed:
            # One that is not handed over yet goes to the next server.
            turn.tell(Gone(words))

    # ---------------------------------------------------------------- its end

    async def close(self) -> None:
        if self._closing is None:
            self._closing = asyncio.create_task(self._close())
        await asyncio.shield(self._closing)

    async def _close(self) -> None:
        try:
            self._asking.drop()
            if (turn := self._going) is not None:
                await self._stop(turn)
                turn.tell(Gone("It was closed.", closed=True))
            if self._server is not None:
                self._server.leave(self._listener)
            await self._belongings.end()
        finally:
            self._opened.hold.release()
            self._closed(self)

    def _must_be_open(self) -> None:
        if self._closing is not None:
            raise Refused("This session is closed.", "Open it again.")
