"""Serving one run, from its order to its end. The table of contents of the daemon."""

import asyncio
import logging
from dataclasses import replace

from clew.daemon.asking import Questions
from clew.daemon.calls import Call, CalledOff, Calls
from clew.daemon.ending import DAEMON_STOPPED, Turned, end_before_prompt, end_of_turn
from clew.daemon.evidence import answer_to, ask_store, in_words, observed
from clew.daemon.landing import LandingRefused, Pins, settled_at
from clew.daemon.means import Means
from clew.daemon.opening import Opened, Opener, PlanHolds
from clew.daemon.orders import program_of
from clew.daemon.placing import Placed, PlaceHeld, placed
from clew.daemon.reporting import Reporting
from clew.daemon.steering import Steering
from clew.daemon.turning import Turning
from clew.kernel import (
    Attestation,
    Evidence,
    FailureKind,
    NoticeReason,
    Outcome,
    Plan,
    Sent,
    digest_of,
    with_observed_work,
)
from clew.ports.fault import Fault
from clew.ports.provider import LiveSession, Provider
from clew.protocol.orders import Order, StoreQuestion
from clew.protocol.prompted import new_prompt_id
from clew.protocol.reports import End, Failed, NewSession, Prompted, Reported, Stopped, StoreAsked, Usage
from clew.protocol.runtimes import Held

_log = logging.getLogger("clew.daemon")


class PromptRefused(Fault):
    code = "daemon:prompt-refused"


class Serving:
    def __init__(self, order: Order, means: Means) -> None:
        self._order, self._means = order, means
        self._calls = Calls()
        self._questions = Questions(order)
        self._reporting = Reporting(order, means.plane, means.outbox, means.limits, self._hear, self._lose_session)
        self._steering = Steering(order, means.prompts, self._reporting, means.limits, self._was_steered)
        self._opened: Opened | None = None
        self._turning: Turning | None = None
        self._place: Placed | None = None
        self._provider: Provider | None = None
        self._sent: Sent | None = None
        self._prompted = self._reopen_said = self._well = False
        self._session_fault: Fault | None = None
        self._answering: set[asyncio.Task[None]] = set()

    @property
    def held(self) -> Held:
        return Held(self._order.run, self._order.attempt)

    def call(self, call: Call, words: str = "") -> None:
        self._calls.make(call, words)

    def look(self) -> None:
        """The server has something to say of this run."""
        self._steering.hear_news()
        self._reporting.look()

    async def serve(self) -> None:
        """To its end, whatever happens: told to the server, unless it is somebody else's by then."""
        try:
            end = await self._end()
            if self._calls.call is Call.LOST:
                await self._reporting.abandon()
                return
            # Whatever ended the turn: what was being told is settled first.
            await self._steering.end()
            # Who resumes it next finds it ready; what nobody can resume keeps nobody waiting.
            resumable = self._opened is not None and self._opened.live.cursor is not None
            if resumable:
                await self._put_away()
            finished = await self._reporting.finish(end)
            self._means.freed()
            if not finished.taken:
                _log.info("run %s: its end was not taken: %s", self._order.run, finished.words)
        finally:
            await self._put_away()
            if self._place is not None:
                await self._place.release()

    # ---------------------------------------------------------------- from the order to the end

    async def _end(self) -> End:
        try:
            return await self._served()
        except CalledOff:
            return self._called_off()
        except Exception as fault:  # noqa: BLE001 - a run has an end, whatever is wrong with us
            if not isinstance(fault, Fault | PlaceHeld | PlanHolds):
                _log.exception("run %s", self._order.run)
            if self._prompted:
                return Failed(FailureKind.UNKNOWN, str(fault) or repr(fault))
            return end_before_prompt(fault)

    async def _served(self) -> End:
        order, means = self._order, self._means
        if order.questions:
            return await self._ask_stores()
        program = program_of(order) or means.machine.offered_as(order.runtime)
        provider = self._provider = means.machine.provider(program)
        self._place = await placed(order, means.machine.places, self._calls, self._reporting, means.limits)
        opener = Opener(
            order,
            provider,
            means.machine.key_of(program),
            self._place.directory,
            means.warm,
            self._calls,
            self._reporting,
            means.limits,
        )
        plan = self._place.plan
        if plan is not order.plan:
            opener.settled.append(plan)
        while True:
            opened = self._opened = await self._open(opener, plan)
            turned = await self._turn(opener, opened)
            lost = self._calls.call is Call.LOST
            heard = None if turned.completed or lost else await self._heard_of(opened, turned)
            if self._calls.call is not None:
                return self._called_off(turned, heard)
            again = await self._another(opener, opened, turned, heard)
            if again is None:
                return self._after(turned, opened.plan, heard)
            plan = again

    async def _open(self, opener: Opener, plan: Plan) -> Opened:
        try:
            return await opener.open(plan)
        except PlanHolds:
            await self._reporting.ask(settled=tuple(opener.settled))
            raise
        except LandingRefused as fault:
            await self._reporting.ask(settled=tuple(opener.settled), landed=fault.landed)
            raise

    async def _turn(self, opener: Opener, opened: Opened) -> Turned:
        """The prompt is made and reported; only when the server agrees does it go out."""
        place = self._place
        assert place is not None
        plan, live = opened.plan, opened.live
        order = await self._complete(opener, plan)
        prompt = await self._means.prompts(order, plan)
        if prompt.words:
            self._reporting.step("prompt", prompt.words)
        landing = opened.session.landing if opened.warm else live.landing
        pins = Pins(plan, settled_at(plan, place.directory), landing)
        reopens = opener.reopened and not self._reopen_said
        sent = self._sent = Sent(new_prompt_id(), digest_of(prompt.text), landing.turns)
        reported = await self._reporting.ask(
            settled=tuple(opener.settled),
            landed=opened.landed,
            told=prompt.told,
            prompted=self._prompted_as(sent, pins.at(live.address), plan),
            pin=pins.due(live.cursor),
            reopens=reopens,
        )
        self._reopen_said = self._reopen_said or reopens
        self._calls.check()
        if not reported.may_prompt:
            raise PromptRefused(f"The server does not let the prompt go out: {reported.words}", "Wake the agent again.")
        self._prompted = True
        self._turning = Turning(live, pins, self._questions, self._reporting, self._calls, self._means.limits)
        self._steering.begin(live, plan)
        turned = await self._turning.run(prompt.text, sent.id)
        await self._steering.end()
        # What was told on the way would be lost in another session.
        turned = replace(turned, said=turned.said or self._steering.took)
        session, self._well = opened.session, turned.well
        session.turns += turned.usage.turns
        session.left_running, session.open_question = self._turning.works_on, self._questions.open
        cursor = live.cursor
        if cursor is not None:
            session.native_id = cursor.native_id
        return turned

    async def _complete(self, opener: Opener, plan: Plan) -> Order:
        """A session that takes another's place is told more than the order had for that one."""
        if not opener.settled or _has_all(self._order, plan):
            return self._order
        reported = await self._reporting.ask(settled=tuple(opener.settled))
        self._calls.check()
        return replace(self._order, entries=reported.entries) if reported.entries else self._order

    def _prompted_as(self, sent: Sent, session: NewSession | None, plan: Plan) -> Prompted:
        hears = self._provider is not None and self._provider.capabilities.hears
        wakes = tuple(wake.id for wake in self._order.wakes)
        told = any(notice.reason is NoticeReason.WORKSPACE_REMADE for notice in plan.notices)
        return Prompted(sent, session, wakes, hears, plan.situation.place.remade if told else None)

    async def _heard_of(self, opened: Opened, turned: Turned) -> Attestation:
        """What the agent's own store says of the prompt of a turn that was not completed."""
        provider, place, sent, address = self._provider, self._place, self._sent, opened.live.address
        assert provider is not None
        assert place is not None
        assert sent is not None
        if not turned.well:
            # What is dead or broken is closed first: a process that still writes would leave nothing certain.
            await self._close(opened)
        if not provider.capabilities.hears:
            return observed(turned)
        said = await ask_store(provider, address, place.directory, sent, self._means.limits)
        if said.evidence is Evidence.UNKNOWN and said.able and self._opened is not None:
            # Some stores tell nothing of a session that is open.
            await self._close(opened)
            said = await ask_store(provider, address, place.directory, sent, self._means.limits)
        heard = with_observed_work(said, turned.said or turned.tool_ran)
        self._reporting.step("evidence", in_words(heard))
        return heard

    async def _was_steered(self, live: LiveSession, sent: Sent) -> Attestation:
        assert self._provider is not None
        assert self._place is not None
        return await ask_store(self._provider, live.address, self._place.directory, sent, self._means.limits)

    async def _another(self, opener: Opener, opened: Opened, turned: Turned, heard: Attestation | None) -> Plan | None:
        """Another try in the same run, once: where the agent's store does not have the prompt, because the session is
        gone or the process that had been kept for it was dead."""
        if heard is None or heard.evidence is not Evidence.UNSENT or turned.tool_ran or opener.reopened:
            return None
        try:
            again = await opener.settled_again(opened.plan, Fault(turned.why_failed, ""), opened.warm)
        except Fault:
            return None
        if again.outcome is Outcome.HOLD:
            return None
        self._reporting.step("reopen", f"The session did not take the prompt, so it is sent once more: {heard.detail}")
        return again

    async def _ask_stores(self) -> End:
        """The run is to find out what became of earlier prompts of its lane; it is decided again by the answers."""
        answers = []
        for question in self._order.questions:
            await self._let_go(question)
            answer = await answer_to(question, self._order, self._means.machine, self._means.limits)
            for said in (answer.prompt, answer.steered):
                if said is not None:
                    self._reporting.step("evidence", f"Run {question.run}: {in_words(said)}")
            answers.append(answer)
        return StoreAsked(tuple(answers))

    async def _let_go(self, question: StoreQuestion) -> None:
        """A session that is kept open here is closed first: some stores tell nothing of one that is."""
        if question.cursor is None:
            return
        kept = self._means.warm.take(question.runtime, question.cursor.native_id)
        if kept is not None:
            await self._means.warm.end(kept)
        await self._means.warm.ended(question.runtime, question.cursor.native_id)

    # ---------------------------------------------------------------- ends

    def _after(self, turned: Turned, plan: Plan, heard: Attestation | None) -> End:
        if self._session_fault is not None:
            return Failed(FailureKind.PERMANENT, str(self._session_fault), usage=turned.usage, heard=heard)
        return end_of_turn(turned, plan, heard)

    def _called_off(self, turned: Turned | None = None, heard: Attestation | None = None) -> End:
        usage = Usage() if turned is None else turned.usage
        finished = heard is not None and heard.evidence is Evidence.FINISHED
        if turned is not None and (turned.completed or finished):
            # It was completed before the call reached it.
            return end_of_turn(turned, self._order.plan, heard)
        if self._session_fault is not None:
            if turned is not None:
                return self._after(turned, self._order.plan, heard)
            return end_before_prompt(self._session_fault)
        if self._calls.call is Call.CLOSE:
            return Failed(FailureKind.INTERRUPTED, self._calls.words or DAEMON_STOPPED, usage=usage, heard=heard)
        return Stopped(self._calls.words, usage, heard)

    # ---------------------------------------------------------------- what comes from outside

    def _hear(self, said: Reported) -> None:
        if not said.held:
            self._calls.make(Call.LOST, said.words)
            return
        if said.stop is not None:
            self._calls.make(Call.STOP, said.words or said.stop)
        if said.news:
            self._steering.hear_news()
            self._steering.look()
        if said.steer is not None:
            self._steering.hear(said.steer)
        if said.answers and self._opened is not None:
            task = asyncio.create_task(self._answer(said), name=f"answers of {self._order.run}")
            self._answering.add(task)
            task.add_done_callback(self._answering.discard)

    async def _answer(self, said: Reported) -> None:
        assert self._opened is not None
        if await self._questions.hear(said.answers, self._opened.live):
            self._reporting.answered()

    def _lose_session(self, fault: Fault) -> None:
        """The session that the agent is in is another lane's: nothing more is done in it."""
        self._session_fault = fault
        self._calls.make(Call.STOP, str(fault))

    # ---------------------------------------------------------------- afterwards

    async def _put_away(self) -> None:
        """The session is kept for the next turn where it can have one, and closed otherwise."""
        opened, self._opened = self._opened, None
        if opened is None:
            return
        if self._turning is not None:
            await self._turning.leave()
        keeps = self._well and self._calls.call is not Call.LOST and self._session_fault is None
        can = opened.plan.wanted.here.capabilities
        if keeps and opened.live.cursor is not None and can.resume and can.warm:
            self._means.warm.keep(opened.session)
        else:
            await self._means.warm.end(opened.session)

    async def _close(self, opened: Opened) -> None:
        self._opened = None
        if self._turning is not None:
            await self._turning.leave()
        await self._means.warm.end(opened.session)


def _has_all(order: Order, plan: Plan) -> bool:
    told = {entry.seq for entry in order.entries}
    return told.issuperset((*plan.kept, *range(plan.catch_up.after + 1, plan.catch_up.through + 1)))
