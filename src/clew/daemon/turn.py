"""One turn: the prompt is sent, and the agent's events are followed until the turn ends or is ended."""

import asyncio
import hashlib
import logging
import time
from collections.abc import Sequence

from clew.daemon.landing import Pins
from clew.daemon.limits import Limits
from clew.daemon.log_lines import in_short, question_of
from clew.daemon.reports import Reports
from clew.daemon.run_end import TurnResult
from clew.daemon.stop_signal import StopCause, StopSignal
from clew.kernel import Answer, ApprovalId, ApprovalState, PromptId, Silence, silence
from clew.ports.events import (
    ApprovalAsked,
    Done,
    Ending,
    Event,
    Failed,
    PlanChanged,
    QuestionAsked,
    Retrying,
    Text,
    Thought,
    ToolFinished,
    ToolStarted,
    Used,
)
from clew.ports.provider import EndsSilence, LiveSession
from clew.protocol.orders import Order
from clew.protocol.reports import AnswerGiven, Asked, Usage

_log = logging.getLogger("clew.daemon")


class Questions:
    """The questions of the agent that are open. An agent's own ids are unique within its session at most, so people
    know each question by an id made of run, attempt and that."""

    def __init__(self, order: Order) -> None:
        self._order = order
        self._open: dict[ApprovalId, ApprovalId] = {}

    @property
    def open(self) -> bool:
        return bool(self._open)

    def ask(self, event: ApprovalAsked | QuestionAsked) -> Asked:
        known_as = self._id(event.id)
        self._open[known_as] = event.id
        return Asked(known_as, question_of(event))

    async def answer(self, answers: Sequence[AnswerGiven], live: LiveSession) -> bool:
        """Pass the answers to the agent, each once. Returns whether that left no question open."""
        given = [(answer, self._open.pop(answer.approval)) for answer in answers if answer.approval in self._open]
        for answer, own in given:
            # Anything but an approval is a denial: expired and withdrawn questions were allowed by nobody.
            said = Answer.APPROVE if answer.state == ApprovalState.APPROVED.value else Answer.DENY
            try:
                await live.answer(own, said, answer.words)
            except Exception as fault:  # noqa: BLE001 - the turn that asked shows what is wrong with its session
                _log.warning("run %s: the agent did not take an answer: %r", self._order.run, fault)
        return bool(given) and not self._open

    def _id(self, own: ApprovalId) -> ApprovalId:
        text = f"{self._order.run}\0{self._order.attempt}\0{own}"
        return ApprovalId("ap_" + hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:24])


class LiveTurn:
    def __init__(
        self,
        live: LiveSession,
        pins: Pins,
        questions: Questions,
        reports: Reports,
        stop: StopSignal,
        limits: Limits,
    ) -> None:
        self._live, self._pins, self._questions = live, pins, questions
        self._reports, self._stop, self._limits = reports, stop, limits
        self._done: Done | None = None
        self._failed: Failed | None = None
        self._fault: Exception | None = None
        self._used: Used | None = None
        self._said = self._flagged = self._closed = False
        self._tools: set[str] = set()
        self._silence: Silence | None = None
        self._last, self._last_at = "", time.monotonic()
        self._attention: asyncio.Event = asyncio.Event()
        self._timer: asyncio.TimerHandle | None = None
        self._following: asyncio.Task[None] | None = None

    @property
    def has_open_tools(self) -> bool:
        """Whether a tool was started and has not finished: it may go on in the background."""
        return bool(self._tools)

    async def run(self, prompt: str, id_: PromptId) -> TurnResult:
        """Until the agent says that the turn is over. `wait_cleanup` waits for what the provider does after that."""
        following = self._following = asyncio.create_task(self._follow(prompt, id_), name="turn")
        following.add_done_callback(lambda _: self._attention.set())
        self._stop.listen(self._attention.set)
        self._watch()
        try:
            while not self._is_over(following):
                await self._attention.wait()
                self._attention.clear()
                if not self._is_over(following) and (self._stop.cause is not None or self._ends_silent):
                    await self._end(following)
                    break
        except asyncio.CancelledError:
            following.cancel()
            raise
        finally:
            self._stop.unlisten(self._attention.set)
            if self._timer is not None:
                self._timer.cancel()
        return self._result()

    async def wait_cleanup(self) -> None:
        """Wait for the provider to clean up after the turn, which it does once the end is out."""
        following = self._following
        if following is None or following.done():
            return
        await asyncio.wait((following,), timeout=self._limits.close)
        if not following.done():
            following.cancel()
            await asyncio.wait((following,), timeout=self._limits.cancel)

    # ---------------------------------------------------------------- events of the agent

    async def _follow(self, prompt: str, id_: PromptId) -> None:
        try:
            async for event in self._live.turn(prompt, id_):
                self._record(event)
        except Exception as fault:  # noqa: BLE001 - a run has an end, whatever a provider raises
            self._fault = fault

    def _record(self, event: Event) -> None:
        if self._done is not None:
            return
        if not isinstance(event, Retrying):
            self._last, self._last_at, self._flagged = in_short(event) or self._last, time.monotonic(), False
        if isinstance(event, ApprovalAsked | QuestionAsked):
            asked = self._questions.ask(event)
            self._said = True
            self._reports.log_event(event, asked.id)
            self._reports.add_question(asked)
        else:
            self._reports.log_event(event)
            self._note(event)
        pin = self._pins.due(self._live.cursor)
        if pin is not None:
            self._reports.pin(pin)

    def _note(self, event: Event) -> None:
        match event:
            case ToolStarted(id_):
                self._tools.add(id_)
                self._reports.note_tool()
            case ToolFinished(id_):
                # Says nothing new: a tool of this turn was seen to start; one of an earlier turn is not about this one.
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

    # ---------------------------------------------------------------- silence, and ending the turn

    @property
    def _ends_silent(self) -> bool:
        return self._silence is not None and self._silence.ends

    def _watch(self) -> None:
        """Check the silence now, and again when it could have become too long."""
        limits = self._limits.silence
        # What is said of a silent turn is what its provider does.
        ends_in = self._live.ends_in if isinstance(self._live, EndsSilence) else None
        found = silence(self._last_at, self._last, self._questions.open, time.monotonic(), limits, ends_in)
        self._silence = found
        if found.ends:
            self._attention.set()
            return
        if found.flagged and not self._flagged:
            self._flagged = True
            self._reports.log_step("silence", found.words)
        due = limits.end_after if self._flagged else limits.flag_after
        wait = limits.flag_after if self._questions.open else due - found.silent
        self._timer = asyncio.get_running_loop().call_later(max(wait, 0.01), self._watch)

    async def _end(self, following: "asyncio.Task[None]") -> None:
        """Interrupt the turn; if that fails, close its session; if that fails too, leave it behind."""
        cause = self._stop.cause
        words = self._silence.words if cause is None and self._silence is not None else self._stop.words
        self._reports.log_step("interrupt", words or "The run is to end.")
        if cause is not StopCause.LOST and await self._interrupted(following):
            return
        self._closed = True
        try:
            async with asyncio.timeout(self._limits.close):
                await self._live.close()
        except Exception as fault:  # noqa: BLE001 - it is left behind then
            _log.warning("a session that was to end could not be closed: %r", fault)
        await asyncio.wait((following,), timeout=self._limits.cancel)
        following.cancel()

    async def _interrupted(self, following: "asyncio.Task[None]") -> bool:
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

    def _result(self) -> TurnResult:
        done, used = self._done, self._used
        completed = done is not None and done.ending is Ending.COMPLETED
        tokens = 0 if used is None else used.input + used.output
        plan, landing = self._pins.plan, self._pins.landing
        mode = landing.mode or plan.mode
        return TurnResult(
            done,
            self._failed,
            self._fault,
            Usage(int(completed), tokens, None, landing.model or plan.model, None if mode is None else mode.value),
            self._said,
            self._silence.words if self._ends_silent and self._silence is not None else "",
            self._closed,
        )
