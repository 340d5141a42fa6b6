"""An open session of an ACP agent: one process, one conversation, one turn at a time."""

import asyncio
from collections.abc import AsyncIterator, Mapping
from typing import Any

from clew.kernel import Answer, ApprovalId, Cursor, Landing, NativeId, PermissionMode, PromptId
from clew.ports.events import Done, Ending, ErrorCode, Event, Failed
from clew.ports.provider import Deadlines
from clew.programs.acp.agent import AcpAgent
from clew.programs.acp.approvals import CANCELLED, Approvals, by_rule, outcome
from clew.programs.acp.connection import Connection
from clew.programs.acp.history import GAP
from clew.programs.acp.lookup import find
from clew.programs.acp.opened import Opened
from clew.programs.acp.protected_files import must_not_widen, stays_inside, would_widen
from clew.programs.acp.turn import Turn
from clew.programs.checks import expressed
from clew.programs.cursor import VERSION
from clew.programs.faults import NotAble
from clew.programs.rpc import Message
from clew.programs.session import OpenSession


class AcpSession(OpenSession):
    def __init__(
        self,
        connection: Connection,
        agent: AcpAgent,
        opened: Opened,
        deadlines: Deadlines,
        instructions: str | None,
    ) -> None:
        super().__init__()
        self._connection, self._agent, self._opened, self._deadlines = connection, agent, opened, deadlines
        self._instructions = instructions
        self._approvals = Approvals(connection, opened.id)
        self._turn: Turn | None = None
        self._busy = self._called_off = False
        # Processes that ran before the turn; all others were started in it.
        self._before: frozenset[int] = frozenset()
        self._wanted_mode = opened.mode
        # The agent reports the sum over all turns. For a resumed session the sum so far is not known.
        self._cost: float | None = 0.0 if opened.fresh else None
        connection.listen(self)

    @property
    def id(self) -> NativeId:
        return self._opened.id

    @property
    def landing(self) -> Landing:
        return self._opened.landing

    @property
    def cursor(self) -> Cursor | None:
        return Cursor(VERSION, self._opened.id) if self._opened.durable else None

    @property
    def has_ended(self) -> bool:
        return not self._connection.lives

    @property
    def ends_in(self) -> float | None:
        return None if self._turn is None else self._turn.ends_in

    @property
    def address(self) -> Cursor | None:
        """Known from the start: the agent names a session when it opens it, durable or not."""
        return Cursor(VERSION, self._opened.id)

    async def turn(self, prompt: str, id: PromptId | None = None) -> AsyncIterator[Event]:  # noqa: A002 - the port's
        self._must_be_idle(self._busy)
        self._busy, self._called_off = True, False
        try:
            if self._opened.history is not None:
                await self._opened.history.over()
                self._opened.history = None
            await self._apply_mode()
            if self._called_off:
                yield Done(Ending.INTERRUPTED)
                return
            self._before = self._connection.processes() if self._agent.leaves_tools else frozenset()
            turn = self._turn = self._new_turn()
            async for event in turn.events(self._blocks(prompt), self._cost, self._meta(id)):
                yield event
        finally:
            await self.interrupt()
            if self._turn is not None and self._turn.cost is not None:
                self._cost = self._turn.cost
            self._approvals.cancel()
            if self._agent.leaves_tools and self._turn is not None and self._turn.stopping:
                self._connection.end_processes(but=self._before)
            self._turn, self._busy = None, False

    async def interrupt(self) -> None:
        turn = self._turn
        # A turn that still applies its mode ends before its prompt is sent.
        self._called_off = self._busy
        if turn is None or turn.over.is_set():
            return
        turn.interrupted = True
        await turn.stop()
        if self._agent.leaves_tools:
            self._connection.end_processes(but=self._before)

    async def steer(self, prompt: str, id: PromptId | None = None) -> bool:  # noqa: A002 - the port's
        if not self._agent.steers:
            raise NotAble("The protocol has no way to add a prompt to a running turn.", "Send it in the next turn.")
        turn = self._turn
        return turn is not None and await turn.steer(self._agent.steers, prompt, self._meta(id))

    async def answer(self, approval: ApprovalId, given: Answer, words: str = "") -> bool:  # noqa: ARG002 - no words here
        return self._approvals.answer(approval, given)

    async def set_mode(self, mode: PermissionMode) -> PermissionMode:
        chosen = expressed(mode, self._agent.modes, self._agent.name)
        await asyncio.to_thread(must_not_widen, self._agent, chosen, self._opened.directory)
        self._wanted_mode = chosen
        if not self._busy:
            await self._apply_mode()
        return chosen

    async def set_model(self, model: str) -> None:
        if not self._opened.models.offered:
            raise NotAble("The agent offers no choice of models.", "Choose the model in the agent's own settings.")
        self._opened.models = await self._opened.models.choose(self._connection, self._opened.id, model)

    # ---------------------------------------------------------------- messages of the agent

    def notified(self, method: str, said: Message) -> None:
        update = said.get("update")
        # An update outside of a turn is played-back history, or belongs to another session.
        if method != "session/update" or said.get("sessionId") != self._opened.id or not isinstance(update, Mapping):
            return
        if self._opened.own_mode.update(update) and self._turn is not None:
            self._check_own_mode(self._turn)
        if self._turn is not None:
            self._turn.update(update)
        elif self._opened.history is not None:
            self._opened.history.add(update)

    def requested(self, number: int | str, method: str, said: Message) -> None:
        if method != "session/request_permission":
            self._connection.refuse(number, method)
            return
        turn, call = self._turn, said.get("toolCall")
        if turn is None or turn.stopping or said.get("sessionId") != self._opened.id or not isinstance(call, Mapping):
            self._connection.reply(number, CANCELLED)
            return
        options = tuple(each for each in said.get("options") or () if isinstance(each, Mapping))
        tool = turn.asked_about(call)
        inside = stays_inside(tool, self._opened.directory) and not would_widen(self._agent, tool)
        given = by_rule(turn.rule, tool.kind, inside)
        if given is None:
            turn.ask(self._approvals.ask(number, options), tool, said)
        else:
            self._connection.reply(number, outcome(options, given))

    def ended(self, words: str) -> None:  # noqa: ARG002 - the running turn reports them
        self._approvals.clear()

    # ---------------------------------------------------------------- inside

    def _new_turn(self) -> Turn:
        return Turn(
            self._connection,
            self._opened.id,
            self._agent.modes[self._opened.mode],
            self._approvals,
            self._deadlines,
            self._opened.durable,
            self._found,
        )

    async def _apply_mode(self) -> None:
        """Called only before a prompt: the mode of a running turn does not change."""
        mode = self._wanted_mode
        await self._opened.own_mode.apply(mode)
        self._opened.mode = mode

    def _check_own_mode(self, turn: Turn) -> None:
        if self._opened.own_mode.is_wider_than(self._opened.mode):
            words = f"The agent changed its own mode during the turn to one that is wider than {self._opened.mode}."
            turn.give_up(Failed(ErrorCode.UNKNOWN, words, retryable=False))

    async def _found(self) -> bool:
        """Whether another process could find this session."""
        if self._connection.abilities.list:
            listed = await find(self._connection, self._opened.id, self._opened.directory)
            self._opened.durable = listed is not None
        elif self._turn is not None and self._turn.answered:
            self._opened.durable = self._connection.abilities.load or self._connection.abilities.resume
        return self._opened.durable

    def _blocks(self, prompt: str) -> list[dict[str, Any]]:
        """The protocol has no place for instructions, so they go before the first prompt of every opening.

        In one block, because some agents play back each block as a prompt.
        """
        instructions, self._instructions = self._instructions, None
        apart = [prompt] if instructions is None else [instructions, prompt]
        texts = apart if self._agent.apart else [GAP.join(apart)]
        return [{"type": "text", "text": text} for text in texts]

    def _meta(self, id_: PromptId | None) -> dict[str, Any]:
        """The prompt's id, for an agent that stores it. It is never part of the text."""
        return {"_meta": {self._agent.takes_ids: id_}} if self._agent.takes_ids and id_ is not None else {}

    async def _close(self) -> None:
        if self._turn is not None:
            self._turn.interrupted = True
        self._approvals.clear()
        await self._connection.end(self._agent.flush)
