"""An open session of OpenCode, locked by Clew, on the server that all sessions of the home share."""

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
from clew.programs.faults import NotUnderstood, ProgramEnded, ProgramFault, SessionBusy, TooSlow
from clew.programs.secrets import Redactor
from clew.programs.session import OpenSession
from clew.providers.opencode.api import Api
from clew.providers.opencode.approvals import Approvals
from clew.providers.opencode.events import TurnFollower
from clew.providers.opencode.faults import NotListening
from clew.providers.opencode.home import CURSORS
from clew.providers.opencode.messages import Json, cut_off, message_id, part_id
from clew.providers.opencode.modes import apply
from clew.providers.opencode.opened import Opened, check_model
from clew.providers.opencode.plugin import ShellEnvironment
from clew.providers.opencode.server import Listener, Server, SharedServer
from clew.providers.opencode.turn import Gone, Turn

T = TypeVar("T")

_RETRYABLE: Mapping[type[ProgramFault], ErrorCode] = {
    ProgramEnded: ErrorCode.PROGRAM_ENDED,
    TooSlow: ErrorCode.TOO_SLOW,
    NotUnderstood: ErrorCode.UNKNOWN,
}
"""Faults after which another try may succeed."""


class OpenCodeSession(OpenSession):
    def __init__(
        self,
        opened: Opened,
        spec: OpenSpec,
        shared: SharedServer,
        shell_environment: ShellEnvironment,
        deadlines: Deadlines,
        redactor: Redactor,
        heard: Callable[[Cursor, Sent], Awaitable[Attestation]],
    ) -> None:
        super().__init__()
        self.after_close.callback(opened.lock.release)
        self._opened, self._shared, self._shell_environment = opened, shared, shell_environment
        self._deadlines, self._redactor, self._heard = deadlines, redactor, heard
        self._mode, self._model, self._instructions = spec.mode, spec.model, spec.instructions
        self._unfinished_tools = opened.unfinished_tools
        self._approvals = Approvals(redactor)
        self._listener = Listener(self._on_event, self._on_server_end)
        self._server: Server | None = None
        self._turn: Turn | None = None
        self._mode_lock = asyncio.Lock()

    @property
    def landing(self) -> Landing:
        return self._opened.landing

    @property
    def cursor(self) -> Cursor | None:
        return CURSORS.cursor(self._opened.id)

    @property
    def has_ended(self) -> bool:
        return self._server is not None and not self._server.alive

    @property
    def ends_in(self) -> float | None:
        turn = self._running_turn
        return None if turn is None else turn.ends_in

    @property
    def address(self) -> Cursor | None:
        return CURSORS.cursor(self._opened.id)

    # ---------------------------------------------------------------- a turn

    async def turn(self, prompt: str, id: PromptId | None = None) -> AsyncIterator[Event]:  # noqa: A002 - the prompt's own
        self._must_be_idle(self._running_turn)
        follower = TurnFollower(self._opened.id, self._redactor, self._approvals, self._opened.known)
        turn = self._turn = Turn(self._opened.id, self._opened.directory, follower, self._deadlines, self._redactor)
        turn.withdraw = lambda: self._withdraw(turn)
        message = self._message(prompt, id)
        if id is not None:
            turn.messages.append(message_id(id))
        try:
            yield SessionNamed(
                self._opened.landing.native_id or CURSORS.cursor(self._opened.id).native_id, durable=True
            )
            tools, self._unfinished_tools = self._unfinished_tools, ()
            for tool in tools:
                yield cut_off(tool)
            try:
                api = await self._post(turn, message, self._mode)
            except ProgramFault as fault:
                if turn.handed and not self._withdraw(turn):
                    # The server may have it all the same, and would answer it unseen.
                    await self._stop(turn)
                turn.over.set()
                if not self._called_off(turn):
                    yield self._not_posted(fault)
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
            self._approvals.clear()
            if not turn.over.is_set():
                await asyncio.shield(asyncio.ensure_future(self._stop(turn)))
            if self._turn is turn:
                self._turn = None
            self._clear_gate(turn)
            if self._server is not None and not self._server.alive:
                await self._shell_environment.end_processes()

    def _called_off(self, turn: Turn) -> bool:
        return turn.interrupted or self.is_closed

    async def _post(self, turn: Turn, message: Json, mode: PermissionMode) -> Api | None:
        """Apply the mode and post the prompt. None if the turn was called off before that.

        Tried twice, but only if it is certain that no server got the first: it was not posted yet, or the connection
        was refused. After any other fault, `heard` finds out whether the session has the prompt.
        """
        for last in (False, True):
            server = await self.attach()
            api = Api(server)
            try:
                await self._abort_earlier(api)
                await self._apply(api, mode)
                if self._called_off(turn):
                    return None
                for own in turn.messages:
                    self._opened.known.discard(own)
                    server.gate.open(own)
                turn.handed = True
                await api.prompt(self._opened.id, message)
            except ProgramEnded as fault:
                if isinstance(fault, NotListening):
                    turn.not_handed()
                if last or turn.handed or not await server.has_ended():
                    raise
                continue
            return api
        raise AssertionError("the second time either ends or raises")

    def _message(self, prompt: str, id_: PromptId | None) -> dict[str, object]:
        text = {"type": "text", "text": prompt}
        message: dict[str, object] = {"parts": [text], "agent": self._opened.agent.name}
        if id_ is not None:
            message["messageID"], text["id"] = message_id(id_), part_id(id_)
        if self._model is not None:
            provider, _, model = self._model.partition("/")
            message["model"] = {"providerID": provider, "modelID": model}
        if self._instructions is not None:
            message["system"] = self._instructions
        return message

    async def _abort_earlier(self, api: Api) -> None:
        """Abort an earlier turn that still runs: the prompt would become part of it."""
        if await api.busy(self._opened.id, self._opened.directory):
            await self._abort()
            if await api.busy(self._opened.id, self._opened.directory):
                raise SessionBusy(
                    "An earlier turn of this session does not end.", "Close the session, and open it again."
                )

    def _not_posted(self, fault: ProgramFault) -> Failed:
        code = next((code for kind, code in _RETRYABLE.items() if isinstance(fault, kind)), None)
        return Failed(code or ErrorCode.UNKNOWN, self._redactor.text(fault.words), retryable=code is not None)

    @property
    def _running_turn(self) -> Turn | None:
        return self._turn if self._turn is not None and not self._turn.over.is_set() else None

    # ---------------------------------------------------------------- during a turn

    async def interrupt(self) -> None:
        turn = self._running_turn
        if turn is not None:
            turn.interrupt()
            self._approvals.clear()
            await self._stop(turn)

    async def steer(self, prompt: str, id: PromptId | None = None) -> bool:  # noqa: A002 - the prompt's own
        """OpenCode stores it at once and answers it in this turn, or right after; the turn lasts until then."""
        turn = self._running_turn
        if turn is None or not await turn.works() or turn is not self._running_turn or self._called_off(turn):
            return False
        server = self._server
        if server is None or not server.alive:
            return False
        message = self._message(prompt, id)
        if id is not None:
            server.gate.open(message_id(id))
            turn.messages.append(message_id(id))
        turn.expect(1)
        try:
            await Api(server).prompt(self._opened.id, message)
        except ProgramFault as fault:
            taken = id is not None and await self._took(server, prompt, id, fault)
            turn.expect(0 if taken else -1)
            return taken
        return True

    async def _took(self, server: Server, prompt: str, id_: PromptId, fault: ProgramFault) -> bool:
        """Whether the session has a prompt whose post failed. Raises the fault if that cannot be known."""
        if isinstance(fault, NotListening):
            return False
        if server.alive:
            return not server.gate.shut(message_id(id_))
        attested = await self._heard(CURSORS.cursor(self._opened.id), Sent(id_, digest_of(prompt)))
        if attested.evidence is Evidence.UNKNOWN:
            raise fault
        return attested.evidence in HELD_BY_AGENT

    async def answer(self, approval: ApprovalId, given: Answer, words: str = "") -> bool:
        server = self._server
        if self._running_turn is None or self.is_closed or server is None or not server.alive:
            return False
        try:
            return await self._approvals.answer(Api(server), self._opened.directory, approval, given, words)
        except ProgramEnded:
            return False

    async def set_mode(self, mode: PermissionMode) -> PermissionMode:
        self._must_be_open()
        if self._running_turn is None:
            landed = await self._call(lambda api: self._apply(api, mode))
        else:
            # Applied now, it would change what the running turn may do. The next turn applies it.
            landed = self._opened.agent.mode_of(self._opened.agent.rules_for(mode))
        self._mode = mode
        return landed

    async def _apply(self, api: Api, mode: PermissionMode) -> PermissionMode:
        # One at a time: a list of rules is replaced in two steps.
        async with self._mode_lock:
            return await apply(api, await api.session(self._opened.id), mode, self._opened.agent)

    async def set_model(self, model: str) -> None:
        self._must_be_open()
        await self._call(lambda api: check_model(api, self._opened.directory, model))
        self._model = model

    async def _call(self, work: Callable[[Api], Awaitable[T]]) -> T:
        async def call(_: Server) -> T:
            return await work(Api(await self.attach()))

        return await self._shared.run(call)

    async def _stop(self, turn: Turn) -> None:
        """End a turn. A posted prompt that has not begun is waited for first: it would begin after the abort."""
        if turn.handed:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(self._deadlines.close):
                    await turn.started.wait()
            self._withdraw(turn)
            await self._abort()

    def _withdraw(self, turn: Turn) -> bool:
        """Keep out prompts that were posted and are not in the session. True if none of the turn can enter any more."""
        server = self._server
        if server is None or not server.alive:
            return False
        with contextlib.suppress(ProgramFault):
            unseen = [message for message in turn.messages if message not in self._opened.known]
            shut = [server.gate.shut(message) for message in unseen]
            return bool(shut) and all(shut)
        return False

    def _clear_gate(self, turn: Turn) -> None:
        """Remove the gate files of messages that are in the session."""
        if self._server is not None:
            for message in self._opened.known.intersection(turn.messages):
                self._server.gate.open(message)

    async def _abort(self) -> None:
        """Abort what runs in the session, and wait until it has ended."""
        server = self._server
        if server is None or not server.alive:
            return
        api = Api(server)
        with contextlib.suppress(ProgramFault, TimeoutError):
            async with asyncio.timeout(self._deadlines.close):
                await api.abort(self._opened.id)
                while await api.busy(self._opened.id, self._opened.directory):
                    await asyncio.sleep(0.05)

    # ---------------------------------------------------------------- server

    async def attach(self) -> Server:
        """The running server, set up for this session: its shell environment, and a listener for its events."""
        server = await self._shared.running()
        if self._server not in (None, server):
            await self._shell_environment.end_processes()
            server = await self._shared.running()
        if server is not self._server:
            self._must_be_open()
            self._shell_environment.write(server.directory)
            server.listen(self._listener)
            self._server = server
        return server

    def _on_event(self, event: Json) -> None:
        if (turn := self._running_turn) is not None:
            turn.put(event)

    def _on_server_end(self, words: str) -> None:
        self._approvals.clear()
        if (turn := self._running_turn) is not None and turn.handed:
            # A prompt that was not posted yet goes to the next server.
            turn.put(Gone(words))

    # ---------------------------------------------------------------- end

    async def _close(self) -> None:
        self._approvals.clear()
        if (turn := self._running_turn) is not None:
            await self._stop(turn)
            turn.put(Gone("The session was closed.", closed=True))
        if self._server is not None:
            self._server.unlisten(self._listener)
        await self._shell_environment.remove()
