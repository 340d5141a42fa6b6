"""A turn from its prompt to its end, as a stream of events."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping
from typing import Any

from clew.kernel import ApprovalId, NativeId
from clew.ports.events import ApprovalAsked, Done, Ending, ErrorCode, Event, Failed, SessionNamed, Used
from clew.ports.provider import Deadlines
from clew.programs.acp.agent import ModeRule
from clew.programs.acp.approvals import Approvals
from clew.programs.acp.connection import Connection
from clew.programs.acp.events import Tool, TurnEvents, failure
from clew.programs.faults import NotUnderstood, ProgramEnded, ProgramFault
from clew.programs.rpc import CallRefused

_NO_LIMIT = 365 * 86_400.0
"""Seconds. Only silence is limited, not the length of a turn."""

_LATE = (0.0, 0.05, 0.1, 0.2, 0.4)
"""Pauses in seconds between attempts to find a session that is not durable yet."""

_STOPPED: Mapping[str, str] = {
    "max_tokens": "The model reached its limit of tokens in one answer.",
    "max_turn_requests": "The agent reached its limit of model requests in one turn.",
    "refusal": "The model refused to continue.",
}


class Turn:
    """`found` returns whether the session is durable: another process could find it. It is called until it is."""

    def __init__(
        self,
        connection: Connection,
        session: NativeId,
        rule: ModeRule,
        approvals: Approvals,
        deadlines: Deadlines,
        durable: bool,
        found: Callable[[], Awaitable[bool]],
    ) -> None:
        self.rule = rule
        self.over = asyncio.Event()
        self.interrupted = False
        self.answered = False
        self.cost: float | None = None
        self._connection, self._session, self._deadlines = connection, session, deadlines
        self._approvals = approvals
        self._durable, self._found = durable, found
        self._checking: asyncio.Task[None] | None = None
        self._turn_events = TurnEvents(connection.redactor)
        self._events: asyncio.Queue[Event] = asyncio.Queue()
        self._given_up: Failed | None = None
        self._stopping: asyncio.Task[None] | None = None
        self._sent = False
        self._quiet_since = asyncio.get_running_loop().time()
        self._task: asyncio.Task[None] | None = None

    async def events(
        self, prompt: list[dict[str, Any]], cost_before: float | None, meta: Mapping[str, Any]
    ) -> AsyncIterator[Event]:
        self._put([SessionNamed(self._session, self._durable)])
        self._task = asyncio.create_task(self._run({"prompt": prompt, **meta}, cost_before))
        self._task.add_done_callback(self._end)
        while True:
            event = await self._next()
            yield event
            if isinstance(event, Done):
                return

    def update(self, update: Mapping[str, Any]) -> None:
        # An update that comes before the prompt was sent does not belong to the turn.
        if self.over.is_set() or not self._sent:
            return
        if update.get("sessionUpdate") == "usage_update":
            cost = update.get("cost")
            amount = cost.get("amount") if isinstance(cost, Mapping) else None
            self.cost = amount if isinstance(amount, int | float) else self.cost
        events = list(self._turn_events.update(update))
        self._put(events)
        if events and not self._durable and self._checking is None:
            self._checking = asyncio.create_task(self._check_durable())

    async def steer(self, method: str, prompt: str, meta: Mapping[str, Any]) -> bool:
        """The agent answers as soon as it has taken the prompt, at the latest when the turn is over."""
        if self.over.is_set() or self.interrupted:
            return False
        parameters = {"sessionId": self._session, "prompt": [{"type": "text", "text": prompt}], **meta}
        try:
            return (await self._connection.call(method, parameters, _NO_LIMIT)).get("taken") is True
        except (ProgramFault, CallRefused):
            return False

    def asked_about(self, said: Mapping[str, Any]) -> Tool:
        tool, events = self._turn_events.asked_about(said)
        self._put(events)
        return tool

    def ask(self, id_: ApprovalId, tool: Tool, said: Mapping[str, Any]) -> None:
        clean = self._connection.redactor.value
        name, command, file = clean([tool.name, tool.command, tool.file])
        self._put([ApprovalAsked(id_, tool.kind, name, command, file, raw=clean(dict(said)))])

    # ---------------------------------------------------------------- from prompt to end

    async def _run(self, parameters: Mapping[str, Any], cost_before: float | None) -> None:
        failed: Failed | None = None
        ending, usage = Ending.COMPLETED, None
        try:
            if not self._connection.lives:
                raise ProgramEnded("The agent has ended.", "It is started again for the next turn.")
            self._sent = True
            answer = await self._connection.call(
                "session/prompt", {"sessionId": self._session, **parameters}, _NO_LIMIT
            )
            self.answered = True
            ending, failed = _ending(self._connection.redactor.value(dict(answer)))
            usage = answer.get("usage")
        except CallRefused as refusal:
            failed = failure(refusal, self._connection.redactor)
        except NotUnderstood as fault:
            failed = Failed(ErrorCode.UNKNOWN, fault.words, retryable=False)
        except ProgramFault as fault:
            failed = Failed(ErrorCode.PROGRAM_ENDED, self._connection.redactor.text(fault.words), retryable=True)
        self._put(self._turn_events.flush())
        await self._await_durable()
        self._put(self._used(usage, cost_before))
        failed = self._given_up or failed
        if self.interrupted and self._given_up is None and not (ending is Ending.COMPLETED and failed is None):
            ending, failed = Ending.INTERRUPTED, None
        if failed is not None:
            ending = Ending.FAILED
            self._put([failed])
        self._put([Done(ending, self._turn_events.reply)])
        self.over.set()

    def _end(self, task: "asyncio.Task[None]") -> None:
        """Every turn ends with Done, even if its task failed."""
        fault = None if task.cancelled() else task.exception()
        if not self.over.is_set():
            words = self._connection.redactor.text(
                f"The agent's answer cannot be read: {str(fault) or type(fault).__name__}."
            )
            self._put([Failed(ErrorCode.UNKNOWN, words, retryable=False), Done(Ending.FAILED, self._turn_events.reply)])
            self.over.set()

    @property
    def ends_in(self) -> float | None:
        left = self._quiet_since + self._deadlines.silence - asyncio.get_running_loop().time()
        return None if self._approvals or self.stopping else left

    async def _next(self) -> Event:
        while True:
            self._quiet_since = asyncio.get_running_loop().time()
            try:
                async with asyncio.timeout(self._deadlines.silence):
                    return await self._events.get()
            except TimeoutError:
                if not self._approvals and self._given_up is None:
                    words = f"The agent said nothing for {self._deadlines.silence:g} s."
                    self.give_up(Failed(ErrorCode.TOO_SLOW, words, retryable=True))

    @property
    def stopping(self) -> bool:
        return self.interrupted or self._given_up is not None

    def give_up(self, why: Failed) -> None:
        """Stop the agent. However it answers to that, the turn failed for this reason."""
        if not self.over.is_set() and not self.stopping:
            self._given_up = why
            self._stopping = asyncio.create_task(self.stop())

    async def stop(self) -> None:
        """Ask the agent to stop. If it does not in time, it is ended."""
        try:
            await self._connection.notify("session/cancel", {"sessionId": self._session})
            # Afterwards: an answer before it could make the agent go on.
            self._approvals.cancel()
            async with asyncio.timeout(self._deadlines.close):
                await self.over.wait()
        except (TimeoutError, ProgramFault):
            await self._connection.end()

    async def _check_durable(self) -> None:
        try:
            self._durable = await self._found()
        except (ProgramFault, CallRefused):
            return
        if self._durable:
            self._put([SessionNamed(self._session, durable=True)])

    async def _await_durable(self) -> None:
        if self._checking is not None:
            await self._checking
        # Some agents write their store a moment after they answered.
        for pause in _LATE:
            if self._durable or not self._connection.lives:
                return
            await asyncio.sleep(pause)
            await self._check_durable()

    def _used(self, usage: object, cost_before: float | None) -> Iterable[Event]:
        cost = self.cost - cost_before if self.cost is not None and cost_before is not None else None
        if isinstance(usage, Mapping):
            said, answered, cached = (
                count if isinstance(count := usage.get(name), int) else 0
                for name in ("inputTokens", "outputTokens", "cachedReadTokens")
            )
            yield Used(said, answered, cached, cost, raw=dict(usage))
        elif cost is not None:
            yield Used(cost=cost)

    def _put(self, events: Iterable[Event]) -> None:
        for event in events:
            self._events.put_nowait(event)


def _ending(answer: Mapping[str, Any]) -> tuple[Ending, Failed | None]:
    reason = answer.get("stopReason")
    if reason == "cancelled":
        return Ending.INTERRUPTED, None
    if reason == "end_turn":
        return Ending.COMPLETED, None
    words = _STOPPED.get(str(reason), f"The agent ended the turn with an unknown stop reason: {reason}.")
    return Ending.FAILED, Failed(ErrorCode.MODEL_FAILED, words, retryable=False, raw=dict(answer))
