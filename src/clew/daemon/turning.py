"""One turn: the prompt goes out, and what the agent says is followed to its end, or to when it is ended."""

import asyncio
import logging
import time

from clew.daemon.asking import Questions
from clew.daemon.calls import Call, Calls
from clew.daemon.ending import Turned
from clew.daemon.landing import Pins
from clew.daemon.limits import Limits
from clew.daemon.reporting import Reporting
from clew.daemon.telling import in_short
from clew.kernel import PromptId, Silence, silence
from clew.ports.events import (
    ApprovalAsked,
    Done,
    Ending,
    Event,
    Failed,
    PlanChanged,
    QuestionAsked,
    Text,
    Thought,
    ToolFinished,
    ToolStarted,
    Used,
)
from clew.ports.provider import LiveSession
from clew.protocol.reports import Usage

_log = logging.getLogger("clew.daemon")


class Turning:
    def __init__(
        self,
        live: LiveSession,
        pins: Pins,
        questions: Questions,
        reporting: Reporting,
        calls: Calls,
        limits: Limits,
    ) -> None:
        self._live, self._pins, self._questions = live, pins, questions
        self._reporting, self._calls, self._limits = reporting, calls, limits
        self._done: Done | None = None
        self._failed: Failed | None = None
        self._fault: Exception | None = None
        self._used: Used | None = None
        self._said = self._tool_ran = self._flagged = self._closed = False
        self._tools: set[str] = set()
        self._silence: Silence | None = None
        self._last, self._last_at = "", time.monotonic()
        self._attention: asyncio.Event = asyncio.Event()
        self._timer: asyncio.TimerHandle | None = None
        self._following: asyncio.Task[None] | None = None

    @property
    def works_on(self) -> bool:
        """Whether a tool was begun that has not come to its end: it may go on in the background."""
        return bool(self._tools)

    async def run(self, prompt: str, id_: PromptId) -> Turned:
        """Until the agent has said that the turn is over. What is left of it then, `leave` waits for."""
        following = self._following = asyncio.create_task(self._follow(prompt, id_), name="turn")
        following.add_done_callback(self._over)
        self._calls.listen(self._attention.set)
        self._watch()
        try:
            while not self._is_over(following):
                await self._attention.wait()
                self._attention.clear()
                if not self._is_over(following) and (self._calls.call is not None or self._ends_silent):
                    await self._end(following)
                    break
        except asyncio.CancelledError:
            following.cancel()
            raise
        finally:
            self._calls.leave(self._attention.set)
            if self._timer is not None:
                self._timer.cancel()
        return self._turned()

    async def leave(self) -> None:
        """The turn's own cleaning up, after its end was told."""
        following = self._following
        if following is None or following.done():
            return
        await asyncio.wait((following,), timeout=self._limits.close)
        if not following.done():
            following.cancel()
            await asyncio.wait((following,), timeout=self._limits.calling_off)

    # ---------------------------------------------------------------- what the agent says

    async def _follow(self, prompt: str, id_: PromptId) -> None:
        try:
            async for event in self._live.turn(prompt, id_):
                self._take(event)
        except Exception as fault:  # noqa: BLE001 - whatever a provider does, the run has an end
            self._fault = fault

    def _take(self, event: Event) -> None:
        if self._done is not None:
            return
        self._last, self._last_at, self._flagged = in_short(event) or self._last, time.monotonic(), False
        if isinstance(event, ApprovalAsked | QuestionAsked):
            asked = self._questions.ask(event)
            self._said = self._tool_ran = True
            self._reporting.tell(event, asked.id)
            self._reporting.asks(asked)
        else:
            self._reporting.tell(event)
            self._note(event)
        pin = self._pins.due(self._live.cursor)
        if pin is not None:
            self._reporting.pin(pin)

    def _note(self, event: Event) -> None:
        match event:
            case ToolStarted(id_):
                self._tools.add(id_)
                self._tool_ran = True
                self._reporting.tool_ran()
            case ToolFinished(id_):
                # The end of a tool that an earlier turn left is no word of this one.
                self._said = self._said or id_ in self._tools
                self._tools.discard(id_)
            case Used():
                self._used = event
            case Failed():
                self._failed = event
            case Done():
                self._done = event
                self._attention.set()
            case _:
                pass
        self._said = self._said or isinstance(event, Text | Thought | ToolStarted | PlanChanged)

    def _over(self, _: "asyncio.Task[None]") -> None:
        self._attention.set()

    # ---------------------------------------------------------------- silence, and being ended

    @property
    def _ends_silent(self) -> bool:
        return self._silence is not None and self._silence.ends

    def _watch(self) -> None:
        """Look at the silence now, and again when it could mean something."""
        limits = self._limits.silence
        found = silence(self._last_at, self._last, self._questions.open, time.monotonic(), limits)
        self._silence = found
        if found.ends:
            self._attention.set()
            return
        if found.flagged and not self._flagged:
            self._flagged = True
            self._reporting.step("silence", found.words)
        due = limits.end_after if self._flagged else limits.flag_after
        wait = limits.flag_after if self._questions.open else due - found.silent
        self._timer = asyncio.get_running_loop().call_later(max(wait, 0.01), self._watch)

    async def _end(self, following: "asyncio.Task[None]") -> None:
        """Asked to stop first, then closed, then left alone: nobody waits for it for ever."""
        call = self._calls.call
        words = self._silence.words if call is None and self._silence is not None else self._calls.words
        self._reporting.step("interrupt", words or "The run is to end.")
        if call is not Call.LOST and await self._stopped(following):
            return
        self._closed = True
        try:
            async with asyncio.timeout(self._limits.close):
                await self._live.close()
        except Exception as fault:  # noqa: BLE001 - it is left alone then
            _log.warning("a session that was to end could not be closed: %r", fault)
        await asyncio.wait((following,), timeout=self._limits.calling_off)
        following.cancel()

    async def _stopped(self, following: "asyncio.Task[None]") -> bool:
        try:
            async with asyncio.timeout(self._limits.interrupt):
                await self._live.interrupt()
        except Exception as fault:  # noqa: BLE001 - it is closed then
            _log.warning("a turn that was to end could not be interrupted: %r", fault)
            return False
        deadline = time.monotonic() + self._limits.interrupt
        while not self._is_over(following) and time.monotonic() < deadline:
            self._attention.clear()
            waiting = asyncio.ensure_future(self._attention.wait())
            await asyncio.wait((waiting, following), timeout=deadline - time.monotonic(), return_when="FIRST_COMPLETED")
            waiting.cancel()
        return self._is_over(following)

    def _is_over(self, following: "asyncio.Task[None]") -> bool:
        return self._done is not None or following.done()

    def _turned(self) -> Turned:
        done, used = self._done, self._used
        completed = done is not None and done.ending is Ending.COMPLETED
        tokens = 0 if used is None else used.input + used.output
        plan, landing = self._pins.plan, self._pins.landing
        mode = landing.mode or plan.mode
        return Turned(
            done,
            self._failed,
            self._fault,
            Usage(int(completed), tokens, None, landing.model or plan.model, None if mode is None else mode.value),
            self._said,
            self._tool_ran,
            self._silence.words if self._ends_silent and self._silence is not None else "",
            self._closed,
        )
