"""One run, from its order to its end. The table of contents of the daemon."""

import asyncio
import logging
from collections.abc import Callable
from dataclasses import dataclass, replace

from clew.daemon.context import RunContext
from clew.daemon.evidence import answer_to, ask_store, in_words, observed
from clew.daemon.landing import LandingRefused, Pins, planned_directory
from clew.daemon.limits import Limits
from clew.daemon.logins import explain_refused_open, explain_refused_turn
from clew.daemon.machine import LocalMachine
from clew.daemon.open import Opened, Opener, PlanHolds
from clew.daemon.outbox import Outbox
from clew.daemon.place import Placed, PlaceHeld, PlaceQueue, ensure_place
from clew.daemon.reports import Reports
from clew.daemon.run_end import DAEMON_STOPPED, TurnResult, end_before_prompt, end_of_turn
from clew.daemon.settings import program_of
from clew.daemon.steering import Steering
from clew.daemon.stop_signal import RunStopped, StopCause, StopSignal
from clew.daemon.turn import LiveTurn, Questions
from clew.daemon.warm import WarmSessions
from clew.kernel import (
    Attestation,
    Evidence,
    FailureKind,
    FoundReason,
    NoticeReason,
    Outcome,
    Plan,
    Sent,
    digest_of,
    with_observed_work,
)
from clew.ports.context import ContextEngine
from clew.ports.fault import Fault
from clew.ports.provider import LiveSession, Provider
from clew.protocol.control import ControlPlane, Held
from clew.protocol.orders import Order, StoreQuestion
from clew.protocol.reports import (
    End,
    Failed,
    NewSession,
    Prompted,
    Reported,
    Returned,
    Stopped,
    StoreAsked,
    Usage,
    new_prompt_id,
)

_log = logging.getLogger("clew.daemon")


class PromptRefused(Fault):
    code = "daemon:prompt-refused"


@dataclass(frozen=True, slots=True)
class RunDependencies:
    """`freed` is called when the server has a run's end, which is before this daemon has cleaned up after it."""

    plane: ControlPlane
    machine: LocalMachine
    context: ContextEngine
    outbox: Outbox
    warm: WarmSessions
    limits: Limits
    freed: Callable[[], None]
    places: PlaceQueue


class ServedRun:
    def __init__(self, order: Order, with_: RunDependencies) -> None:
        self._order, self._with = order, with_
        self._stop = StopSignal()
        self._questions = Questions(order)
        self._reports = Reports(order, with_.plane, with_.outbox, with_.limits, self._on_answer, self._on_pin_refused)
        self._context = RunContext(order, with_.context, with_.plane, with_.limits)
        self._steering = Steering(order, self._context, self._reports, with_.limits, self._was_steered)
        self._opened: Opened | None = None
        self._turn: LiveTurn | None = None
        self._place: Placed | None = None
        self._provider: Provider | None = None
        self._sent: Sent | None = None
        self._prompted = self._reopen_reported = self._reusable = False
        self._session_fault: Fault | None = None
        self._answering: set[asyncio.Task[None]] = set()

    @property
    def held(self) -> Held:
        return Held(self._order.run, self._order.attempt)

    def stop(self, cause: StopCause, words: str = "") -> None:
        self._stop.set(cause, words)

    def poll_server(self) -> None:
        """The server has news of this run: a stop, answers, or messages for the agent."""
        self._steering.note_news()
        self._reports.poll_server()

    async def serve(self) -> None:
        """Serve the run and report its end, whatever happens; nothing is reported once the lease is lost."""
        released = self._with.places.released
        try:
            end = await self._end()
            if self._stop.cause is StopCause.LOST:
                await self._reports.abandon()
                return
            # However the turn ended, a steer that was being delivered is resolved before the run ends.
            await self._steering.end()
            # A resumable session is parked before the end is reported: the next run may come at once and wants it.
            if self._opened is not None and self._opened.live.cursor is not None:
                await self._park_or_close()
            work = await self._place.end_run(self._order.run) if self._place is not None and self._prompted else None
            finished = await self._reports.finish(end, work)
            self._with.freed()
            if isinstance(end, Returned) and end.code == FoundReason.IN_USE.code:
                self._with.places.add(self._order.run, released)
            if not finished.taken:
                _log.info("run %s: the server did not accept its end: %s", self._order.run, finished.words)
        finally:
            await self._park_or_close()
            if self._place is not None:
                await self._place.release()
                self._with.places.release()
        await self._context.dispose(finished)

    # ---------------------------------------------------------------- from the order to the end

    async def _end(self) -> End:
        try:
            return await self._served()
        except RunStopped:
            return self._stopped_end()
        except Exception as fault:  # noqa: BLE001 - a run has an end, whatever is wrong with the daemon
            if not isinstance(fault, Fault | PlaceHeld | PlanHolds):
                _log.exception("run %s", self._order.run)
            if self._prompted:
                return Failed(FailureKind.UNKNOWN, str(fault) or repr(fault))
            return end_before_prompt(await explain_refused_open(fault, self._order, self._with.machine))

    async def _served(self) -> End:
        order, with_ = self._order, self._with
        if order.questions:
            return await self._ask_stores()
        program = program_of(order) or with_.machine.offered_as(order.runtime)
        provider = self._provider = with_.machine.provider(program)
        self._place = await ensure_place(order, with_.machine.places, self._stop, self._reports, with_.limits)
        opener = Opener(
            order,
            provider,
            with_.machine.key_of(program),
            self._place.directory,
            with_.warm,
            self._stop,
            self._reports,
            with_.limits,
        )
        plan = self._place.plan
        if plan is not order.plan:
            opener.settled.append(plan)
        while True:
            opened = self._opened = await self._open(opener, plan)
            result = await self._take_turn(opener, opened)
            lost = self._stop.cause is StopCause.LOST
            heard = None if result.completed or lost else await self._ask_about_prompt(opened, result)
            if self._stop.cause is not None:
                return self._stopped_end(result, heard)
            again = await self._reopen_once(opener, opened, result, heard)
            if again is None:
                result = await explain_refused_turn(result, order, with_.machine)
                return self._end_after(result, opened.plan, heard)
            plan = again

    async def _open(self, opener: Opener, plan: Plan) -> Opened:
        try:
            return await opener.open(plan)
        except PlanHolds:
            await self._reports.ask(settled=tuple(opener.settled))
            raise
        except LandingRefused as fault:
            await self._reports.ask(settled=tuple(opener.settled), landed=fault.landed)
            raise

    async def _take_turn(self, opener: Opener, opened: Opened) -> TurnResult:
        """Make the prompt and report it; only when the server agrees does it go out."""
        place = self._place
        assert place is not None
        plan, live = opened.plan, opened.live
        prompt = await self._context.prompt(await self._with_missing_entries(opener, plan), plan, place.directory)
        if prompt.words:
            self._reports.log_step("prompt", prompt.words)
        landing = opened.session.landing if opened.warm else live.landing
        pins = Pins(plan, planned_directory(plan, place.directory), landing)
        reopens = opener.reopened and not self._reopen_reported
        sent = self._sent = Sent(new_prompt_id(), digest_of(prompt.text), landing.turns)
        reported = await self._reports.ask(
            settled=tuple(opener.settled),
            landed=opened.landed,
            told=prompt.told,
            prompted=self._prompted_as(sent, pins.at(live.address), plan),
            pin=pins.due(live.cursor),
            reopens=reopens,
        )
        self._reopen_reported = self._reopen_reported or reopens
        self._stop.check()
        if not reported.may_prompt:
            raise PromptRefused(f"The server does not let the prompt go out: {reported.words}", "Wake the agent again.")
        self._prompted = True
        turn = self._turn = LiveTurn(live, pins, self._questions, self._reports, self._stop, self._with.limits)
        self._steering.begin(live, plan, place.directory)
        result = await turn.run(prompt.text, sent.id)
        await self._steering.end()
        # A message that the agent took within the turn would be missing from another session: this one is not replaced.
        result = replace(result, said=result.said or self._steering.taken)
        session, self._reusable = opened.session, result.reusable
        session.turns += result.usage.turns
        session.left_running, session.open_question = turn.has_open_tools, self._questions.open
        if live.cursor is not None:
            session.native_id = live.cursor.native_id
        await self._context.after_turn(plan, prompt, sent.id, result.completed, result.usage.tokens)
        return result

    async def _with_missing_entries(self, opener: Opener, plan: Plan) -> Order:
        """The order, with the entries that a session needs which takes the place of the planned one."""
        if not opener.settled or _has_all_entries(self._order, plan):
            return self._order
        reported = await self._reports.ask(settled=tuple(opener.settled))
        self._stop.check()
        return replace(self._order, entries=reported.entries) if reported.entries else self._order

    def _prompted_as(self, sent: Sent, session: NewSession | None, plan: Plan) -> Prompted:
        hears = self._provider is not None and self._provider.capabilities.hears
        wakes = tuple(wake.id for wake in self._order.wakes)
        told = any(notice.reason is NoticeReason.WORKSPACE_REMADE for notice in plan.notices)
        return Prompted(
            sent, session, wakes, hears, plan.situation.place.remade if told else None, plan.told_late or None
        )

    async def _ask_about_prompt(self, opened: Opened, result: TurnResult) -> Attestation:
        """Ask the agent's own store about the prompt of a turn that was not completed."""
        provider, place, sent, address = self._provider, self._place, self._sent, opened.live.address
        assert provider is not None
        assert place is not None
        assert sent is not None
        if not result.reusable:
            # Close it first: a process that still writes to its store makes every answer uncertain.
            await self._close(opened)
        if not provider.capabilities.hears:
            return observed(result)
        said = await ask_store(provider, address, place.directory, sent, self._with.limits)
        if said.evidence is Evidence.UNKNOWN and said.able and self._opened is not None:
            # Some stores tell nothing of a session that is open.
            await self._close(opened)
            said = await ask_store(provider, address, place.directory, sent, self._with.limits)
        heard = with_observed_work(said, result.said)
        self._reports.log_step("evidence", in_words(heard))
        return heard

    async def _was_steered(self, live: LiveSession, sent: Sent) -> Attestation:
        assert self._provider is not None
        assert self._place is not None
        return await ask_store(self._provider, live.address, self._place.directory, sent, self._with.limits)

    async def _reopen_once(
        self, opener: Opener, opened: Opened, result: TurnResult, heard: Attestation | None
    ) -> Plan | None:
        """The plan of a second try in the same run, or None. Only where the agent's store does not have the prompt:
        the session is gone, or its warm process was dead."""
        if heard is None or heard.evidence is not Evidence.UNSENT or result.said or opener.reopened:
            return None
        try:
            again = await opener.plan_again(opened.plan, Fault(result.why_failed, ""), opened.warm)
        except Fault:
            return None
        if again.outcome is Outcome.HOLD:
            return None
        self._reports.log_step(
            "reopen", f"The session did not take the prompt, so it is sent once more: {heard.detail}"
        )
        return again

    async def _ask_stores(self) -> End:
        """Find out what became of earlier prompts of the lane. The server decides the run again by the answers."""
        answers = []
        for question in self._order.questions:
            await self._close_warm(question)
            answer = await answer_to(question, self._order, self._with.machine, self._with.limits)
            for said in (answer.prompt, answer.steered):
                if said is not None:
                    self._reports.log_step("evidence", f"Run {question.run}: {in_words(said)}")
            answers.append(answer)
        return StoreAsked(tuple(answers))

    async def _close_warm(self, question: StoreQuestion) -> None:
        """Some stores tell nothing of a session that is open, so a warm one is closed before its store is asked."""
        if question.cursor is None:
            return
        session = self._with.warm.pop(question.runtime, question.cursor.native_id)
        if session is not None:
            await self._with.warm.end(session)
        await self._with.warm.wait_ended(question.runtime, question.cursor.native_id)

    # ---------------------------------------------------------------- ends

    def _end_after(self, result: TurnResult, plan: Plan, heard: Attestation | None) -> End:
        if self._session_fault is not None:
            return Failed(FailureKind.PERMANENT, str(self._session_fault), usage=result.usage, heard=heard)
        return end_of_turn(result, plan, heard)

    def _stopped_end(self, result: TurnResult | None = None, heard: Attestation | None = None) -> End:
        usage = Usage() if result is None else result.usage
        finished = heard is not None and heard.evidence is Evidence.FINISHED
        if result is not None and (result.completed or finished):
            # It was completed before the stop reached it.
            return end_of_turn(result, self._order.plan, heard)
        if self._session_fault is not None:
            if result is not None:
                return self._end_after(result, self._order.plan, heard)
            return end_before_prompt(self._session_fault)
        if self._stop.cause is StopCause.SHUTDOWN:
            return Failed(FailureKind.INTERRUPTED, self._stop.words or DAEMON_STOPPED, usage=usage, heard=heard)
        return Stopped(self._stop.words, usage, heard)

    # ---------------------------------------------------------------- answers of the server

    def _on_answer(self, said: Reported) -> None:
        if not said.held:
            self._stop.set(StopCause.LOST, said.words)
            return
        if said.stop is not None:
            self._stop.set(StopCause.CANCEL, said.words or said.stop)
        if said.news:
            self._steering.note_news()
            self._steering.poll_if_free()
        if said.steer is not None:
            self._steering.deliver(said.steer)
        if said.answers and self._opened is not None:
            task = asyncio.create_task(self._answer(said), name=f"answers of {self._order.run}")
            self._answering.add(task)
            task.add_done_callback(self._answering.discard)

    async def _answer(self, said: Reported) -> None:
        assert self._opened is not None
        if await self._questions.answer(said.answers, self._opened.live):
            self._reports.note_answered()

    def _on_pin_refused(self, fault: Fault) -> None:
        """Another lane has the session that the agent is in: nothing more is done in it."""
        self._session_fault = fault
        self._stop.set(StopCause.CANCEL, str(fault))

    # ---------------------------------------------------------------- afterwards

    async def _park_or_close(self) -> None:
        """Keep the session warm for the next turn where it can have one; otherwise close it."""
        opened, self._opened = self._opened, None
        if opened is None:
            return
        if self._turn is not None:
            await self._turn.wait_cleanup()
        parks = self._reusable and self._stop.cause is not StopCause.LOST and self._session_fault is None
        can = opened.plan.wanted.here.capabilities
        if parks and opened.live.cursor is not None and can.resume and can.warm:
            self._with.warm.park(opened.session)
        else:
            await self._with.warm.end(opened.session)

    async def _close(self, opened: Opened) -> None:
        self._opened = None
        if self._turn is not None:
            await self._turn.wait_cleanup()
        await self._with.warm.end(opened.session)


def _has_all_entries(order: Order, plan: Plan) -> bool:
    present = {entry.seq for entry in order.entries}
    return present.issuperset((*plan.kept, *range(plan.catch_up.after + 1, plan.catch_up.through + 1)))
