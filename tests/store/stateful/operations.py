"""The operations of the store, each with what the model allows it to answer and to do."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Protocol

from sqlalchemy import Connection, update

from clew.kernel import (
    HELD_BY_AGENT,
    AgentId,
    AgentState,
    Answer,
    ApprovalId,
    ApprovalState,
    Attestation,
    Cursor,
    Directory,
    Evidence,
    FailureKind,
    LaneId,
    NativeId,
    Origin,
    OriginKind,
    Outcome,
    Patience,
    PromptId,
    Request,
    RunEvent,
    RunId,
    RunOutcome,
    RunState,
    RuntimeId,
    Sent,
    SessionEvent,
    ThreadId,
    TickFacts,
    TickVerdict,
    WaitsFor,
    WakeEvent,
    WakeId,
    WakeReason,
    WakeState,
    admit,
    digest_of,
    holds,
    lane_id,
    on_admission,
    thread_for,
    tick,
    wakes_on,
)
from clew.kernel import AdmissionPolicy as Admission
from clew.protocol.control import Held
from clew.protocol.orders import ClaimRequest, Order
from clew.protocol.reports import (
    Completed,
    Failed,
    Finish,
    Finished,
    NewSession,
    Prompted,
    Report,
    Reported,
    Returned,
    Stopped,
    StoreAnswer,
    StoreAsked,
)
from clew.protocol.wakes import Accepted, WakeRequest
from clew.store.operations.approvals import answer_approval
from clew.store.operations.cancel import cancel_run, cancel_wake, reassign
from clew.store.operations.claim import claim
from clew.store.operations.evidence import attest_by_person
from clew.store.operations.finish import finish
from clew.store.operations.leases import end_orphans, expire, renew
from clew.store.operations.moves import move_lane
from clew.store.operations.report import report
from clew.store.operations.retry import go_now
from clew.store.operations.schedules import Ticked, tick_due
from clew.store.operations.sessions import Adoption, adopt_session
from clew.store.operations.wakes import accept_wake
from clew.store.schema.tables import runs
from tests.store.stateful.model import OWN, AnApproval, ARun, AWake, Followed, Model, demand
from tests.store.stateful.observed import Observed, in_future
from tests.store.stateful.world import FAR_OFF, NO_FLOOD, RETRIES, ROUTE, TIMED

LONG = Patience(lease=1e6)
HELD_ELSEWHERE = "store:session-held"


@dataclass(frozen=True)
class Told:
    """What came of an operation: its answer, and the database since. `alone` when nothing else went on meanwhile."""

    answer: Any
    seen: Observed
    alone: bool


class Operation(Protocol):
    """`act` is one transaction; what a fault says is its answer too. `allow` brings the
    model to where the store must be now, or says why this answer cannot be."""

    def act(self, connection: Connection) -> Any: ...

    def allow(self, model: Model, told: Told) -> None: ...


@dataclass(frozen=True)
class Accept:
    request: WakeRequest

    def act(self, connection: Connection) -> Accepted:
        return accept_wake(connection, self.request, NO_FLOOD)

    def allow(self, model: Model, told: Told) -> None:
        answer, alone = told.answer, told.alone
        asked = self.request
        thread = thread_for(asked.agent, asked.thread)
        before = next(
            (
                wake
                for wake in model.wakes.values()
                if wake.id == asked.id or (asked.dedupe_key is not None and wake.key == asked.dedupe_key)
            ),
            None,
        )
        lane = lane_id(asked.agent, thread)
        if before is not None and before.lane != lane:
            demand(answer == "store:key-conflict", "a key of another lane was taken", answer)
            return
        demand(isinstance(answer, Accepted), "it was not accepted", answer)
        if before is not None:
            demand((answer.wake, answer.repeated) == (before.id, True), "the same request made another wake", answer)
            demand(answer.state is before.state, "a repeated request was told another state", answer, before)
            return
        demand(not answer.repeated, "a new request was taken for an old one", answer)
        state = AgentState.PAUSED if asked.agent in model.paused else AgentState.ACTIVE
        busy = model.busy(lane)
        at_door = Request(asked.agent, asked.reason, asked.origin, 0.0, state, lane_busy=busy)
        admission = admit(at_door, NO_FLOOD)
        receipt = on_admission(asked.id, admission, 0.0)
        demand(answer.state is receipt.state, "the door said otherwise", answer, receipt)
        model.lanes[lane] = (asked.agent, thread)
        entry = None if asked.said is None else model.say(thread)
        if alone:
            demand(answer.entry == entry, "the entry has another place", answer, entry)
            demand(answer.code == receipt.reason.code, "another reason", answer, receipt)
        put_wake(model, asked, lane, receipt.state, told)


def put_wake(
    model: Model, asked: WakeRequest, lane: LaneId, state: WakeState, told: Told, parked: bool = False
) -> None:
    row = told.seen.wakes.get(asked.id)
    demand(row is not None, "an accepted wake is not there", asked.id)
    assert row is not None
    scope = OWN if asked.isolated else ""
    timer = asked.reason is WakeReason.TIMER
    wake = AWake(asked.id, lane, asked.origin, asked.dedupe_key, scope, timer, row["accepted_at"], state, parked=parked)
    model.wakes[asked.id] = wake
    if state is WakeState.PENDING:
        model.queue(lane, model.runtime_of(lane), parked)


@dataclass(frozen=True)
class Claim:
    by: str
    runtimes: tuple[RuntimeId, ...]
    most: int

    def act(self, connection: Connection) -> tuple[Order, ...]:
        return claim(connection, ClaimRequest(self.by, self.runtimes, self.most, LONG))

    def allow(self, model: Model, told: Told) -> None:
        answer, seen, alone = told.answer, told.seen, told.alone
        demand(isinstance(answer, tuple), "it could not be claimed", answer)
        orders: tuple[Order, ...] = answer
        demand(len(orders) <= self.most, "more was handed out than was asked for", answer)
        if alone:
            expected = self._expected(model, seen)
            demand([order.run for order in orders] == expected, "other runs were due", orders, expected)
        for order in orders:
            self._take(model, order)
        self._park(model, seen, {order.run for order in orders})

    def _expected(self, model: Model, seen: Observed) -> list[RunId]:
        """The runs that are handed out when nobody else is there, in order."""
        taken: list[ARun] = []
        for runtime in self.runtimes:
            queue = [run for run in model.runs if model.claimable(run, runtime)]
            queue.sort(key=lambda run: (seen.runs[run.id or ""]["rank"], run.id))
            for run in queue:
                asks = model.asks_next(run.lane)
                waits = asks is not None and asks.wait is None
                if len(taken) < self.most and model.has_room(run) and model.ready(run.lane) and not waits:
                    taken.append(run)
                    run.state = RunState.CLAIMED
        for run in taken:
            run.state = RunState.QUEUED
        return [RunId(run.id or "") for run in taken]

    def _take(self, model: Model, order: Order) -> None:
        run = model.run(order.run) or model.open_run(order.lane)
        demand(run is not None and run.id in (None, order.run), "a run that is not there was handed out", order)
        assert run is not None
        run.id = order.run
        demand(model.claimable(run, order.runtime) and order.runtime in self.runtimes, "it was not due", run)
        demand(model.has_room(run), "there was no room for it", run)
        demand(order.attempt == run.attempt + 1, "the fence did not rise by one", order, run)
        wakes = model.ready(run.lane)
        demand({wake.id for wake in order.wakes} == {wake.id for wake in wakes}, "other wakes are due", order, wakes)
        scope = run.id if wakes[0].scope == OWN else wakes[0].scope
        plan = order.plan
        run.session = None
        if plan.outcome is Outcome.RESUME:
            assert plan.session is not None
            own = model.generations(run.lane, scope)
            run.session = next((each for each in own if each.generation == plan.session.generation), None)
            demand(run.session is not None, "it resumes a session that is not its own", plan.session)
        unheard = model.unheard(run.lane)
        asks = {question.run for question in order.questions}
        demand(asks == {each.id for each in unheard}, "it asks for other prompts", asks, unheard)
        demand((plan.outcome is Outcome.HOLD) == bool(asks), "a run that holds was handed out", plan)
        demand(not asks or not order.entries, "a run that asks is to tell something", order.entries)
        self._tells_what_was_not_taken(model, run, order)
        run.asks, run.prompt, run.address, run.evidence, run.in_vain = bool(asks), None, "", "", 0
        run.state, run.attempt, run.by, run.scope = RunState.CLAIMED, order.attempt, self.by, scope
        run.prompt_sent = run.tool_ran = run.reopened = run.lapsed = False
        run.hold, run.told, run.words = "", 0, None
        for wake in wakes:
            wake.state, wake.run, wake.scope = WakeState.CLAIMED, run, scope

    def _tells_what_was_not_taken(self, model: Model, run: ARun, order: Order) -> None:
        """By the agent's own store, whatever was reported: nothing that its session took is told again, and nothing
        that it did not take is called told."""
        plan = order.plan
        if plan.outcome is not Outcome.RESUME or run.session is None:
            return
        took = [
            each
            for each in model.runs
            if each.ended and each.prompt is not None and each.truth(each.attempt) in HELD_BY_AGENT
        ]
        here = [each for each in took if each.session is not None and run.session.is_also(each.session)]
        taken = max((each.told for each in here), default=0)
        again = [entry.seq for entry in order.entries if entry.seq <= taken]
        demand(not again, "what its session has taken is told again", again, taken)
        # One that is named only after its run has ended has what that run told.
        made = [each.run for each in model.sessions if run.session.is_also(each)]
        known = max((each.told for each in took if each in here or each in made), default=0)
        called = [entry for entry in plan.already_told if entry > known + 1]
        demand(not called, "what its session did not take is called told", called, known)

    def _park(self, model: Model, seen: Observed, taken: set[RunId]) -> None:
        """A run that was looked at, and whose wakes all wait for later, waits with them; one that only a person can
        let go on waits for them."""
        for run in model.runs:
            asks, found = model.asks_next(run.lane), _open_row(seen, run.lane)
            if asks is not None and asks.wait is None and any(model.claimable(run, each) for each in self.runtimes):
                for_person = (found.get("hold"), found.get("hold_code")) == (WaitsFor.PERSON.value, asks.reason.code)
                run.hold = WaitsFor.PERSON.value if for_person else run.hold
            idle = run.state is RunState.QUEUED and run.runtime in self.runtimes and not model.ready(run.lane)
            row = seen.runs.get(run.id or "")
            if idle and run.id not in taken and row is not None and in_future(seen, row):
                run.parked = True


def _open_row(seen: Observed, lane: LaneId) -> Mapping[str, Any]:
    """The lane's run that has not ended, whether or not the model knows its name yet."""
    return next((row for row in seen.runs.values() if row["lane_id"] == lane and row["ended_at"] is None), {})


@dataclass(frozen=True)
class Say:
    said: Report

    def act(self, connection: Connection) -> Reported:
        return report(connection, replace(self.said, patience=LONG))

    @property
    def events(self) -> list[RunEvent]:
        said = self.said
        happened = [
            (RunEvent.OPEN, said.opens),
            (RunEvent.REOPEN, said.reopens),
            (RunEvent.PROMPT, said.told is not None),
            (RunEvent.TOOL, said.tool_ran),
            (RunEvent.ANSWER, said.answered),
            (RunEvent.ASK, bool(said.asks)),
        ]
        return [event for event, did in happened if did] or [RunEvent.RENEW]

    def allow(self, model: Model, told: Told) -> None:
        answer = told.answer
        said = self.said
        run = model.run(said.run)
        assert run is not None
        if said.pin is not None and self._held_elsewhere(model, run):
            demand(answer == HELD_ELSEWHERE, "a session of another lane was taken", answer)
            return
        demand(not isinstance(answer, str), "the report was not taken", answer)
        refused = model.advance(run, said.attempt, self.events)
        if refused is not None:
            mine = holds(run.as_kernel(), said.attempt)
            demand(answer.held == (mine and not run.ended), "who holds it?", answer, run)
            if not mine:
                return
            if run.ended:
                self._pin(model, run, answer)
                return
            if not self._was_taken(run) and run.state is not RunState.STOPPING:
                demand(not answer.may_prompt, "a prompt that cannot be was let out", answer)
                return
            model.advance(run, said.attempt, [RunEvent.RENEW])
        elif said.told is not None:
            assert said.prompted is not None
            assert said.prompted.session is not None
            run.told, run.prompt, run.hears = said.told, said.prompted.wakes, said.prompted.hears
            run.address = said.prompted.session.cursor.native_id
        elif said.reopens:
            run.prompt = None
        demand(answer.held and answer.state is run.state, "another state", answer, run)
        prompts = said.told is not None and run.prompt_sent and run.stop is None
        demand(answer.may_prompt == prompts, "whether the prompt may go out", answer, run)
        demand(answer.stop == run.stop, "whether it must stop", answer, run)
        self._pin(model, run, answer)
        for ask in said.asks if refused is None else ():
            model.approvals.setdefault(ask.id, AnApproval(ask.id, run, said.attempt))

    def _was_taken(self, run: ARun) -> bool:
        said = self.said
        if said.reopens and (run.tool_ran or not run.reopened or (said.told is None and run.prompt_sent)):
            return False
        if self.said.told is not None:
            return run.prompt_sent and run.told == self.said.told
        if self.said.asks:
            return run.state is RunState.WAITING
        return run.state is not RunState.CLAIMED

    def _held_elsewhere(self, model: Model, run: ARun) -> bool:
        """Whether the pin would be tried at all, and meets another lane's session."""
        said = self.said
        assert said.pin is not None
        if not holds(run.as_kernel(), said.attempt):
            return False
        if not run.ended and run.state is not RunState.STOPPING and not self._was_taken(run):
            trial = replace(run)
            if model.advance(trial, said.attempt, self.events) is not None:
                return False
        return pin_is_refused(model, run, said.pin.cursor.native_id)

    def _pin(self, model: Model, run: ARun, answer: Any) -> None:
        if self.said.pin is not None:
            found = model.pin(run, self.said.pin.cursor.native_id)
            demand(answer.pinned is found, "it was pinned otherwise", answer, found)


def pin_is_refused(model: Model, run: ARun, native: NativeId) -> bool:
    newest = next(iter(model.generations(run.lane, run.scope)), None)
    if run.ended and newest is not None and newest.run is not None and newest.run.order > run.order:
        return False
    held = model.holder(run.runtime, native)
    return held is not None and (held.lane, held.scope) != (run.lane, run.scope)


def prompted_by(model: Model, run: ARun, name: str, pin: NewSession | None = None, hears: bool = True) -> Prompted:
    """The prompt of a run, in the session that it is in, or would be in. Where its agent's store cannot be asked what
    became of it, a person is."""
    native = run.session.native if run.session is not None else name
    session = pin or a_session(NativeId(native), run.agent)
    wakes = tuple(wake.id for wake in model.carried(run))
    return Prompted(Sent(PromptId(name), digest_of(name)), session, wakes, hears)


def said_of(evidence: Evidence) -> Attestation:
    reply = "read back" if evidence is Evidence.FINISHED else ""
    return Attestation(evidence, "the store says so", reply)


def heard_of(evidence: Evidence | None) -> Attestation | None:
    return None if evidence is None else said_of(evidence)


def _end(connection: Connection, said: Finish) -> Finished:
    answer = finish(connection, said)
    # Half a minute may pass while a test runs; the machine has a clock of its own.
    put_off = update(runs).where(runs.c.id == said.run, runs.c.state == "queued", runs.c.not_before > 2.0)
    connection.execute(put_off.values(not_before=FAR_OFF))
    return answer


@dataclass(frozen=True)
class End:
    said: Finish

    def act(self, connection: Connection) -> Finished:
        return _end(connection, replace(self.said, policy=RETRIES))

    def allow(self, model: Model, told: Told) -> None:
        answer, alone = told.answer, told.alone
        said, end = self.said, self.said.end
        run = model.run(said.run)
        assert run is not None
        event, outcome = _ENDS[type(end)]
        trial = replace(run)
        refused = model.advance(trial, said.attempt, [event])
        if refused is None and said.pin is not None and pin_is_refused(model, trial, said.pin.cursor.native_id):
            demand(answer == HELD_ELSEWHERE, "a session of another lane was taken", answer)
            return
        demand(not isinstance(answer, str), "the end was not taken", answer)
        if refused is not None:
            demand(answer.state is run.state, "it was told another state", answer, run)
            told_before = self._told_before(run, outcome)
            # A run that was stopped does not remember which end it met.
            demand(answer.taken == told_before or run.stop is not None, "whether it was told before", answer, run)
            if not answer.taken and run.attempt == said.attempt:
                self._hear_late(model, run)
            return
        why = "" if isinstance(end, Completed | StoreAsked) else end.why
        model.advance(run, said.attempt, [event], outcome.code, outcome.fill(why=why))
        demand(answer.taken and answer.state is run.state, "another end", answer, run)
        if run.ended and run.prompt is not None and self.heard is not None:
            run.evidence = self.heard.value
        if said.pin is not None:
            model.pin(run, said.pin.cursor.native_id, late=False)
        self._follow(model, run, answer, alone)

    @property
    def heard(self) -> Evidence | None:
        match self.said.end:
            case Completed():
                return Evidence.FINISHED
            case Failed(heard=heard) | Stopped(heard=heard):
                return None if heard is None else heard.evidence
            case _:
                return None

    def _hear_late(self, model: Model, run: ARun) -> None:
        """Too late to end the run; what is known of its prompt counts all the same."""
        heard, end = self.heard, self.said.end
        if heard is None or heard is Evidence.UNKNOWN:
            return
        waiting = model.open_run(run.lane)
        reply = bool(end.reply) if isinstance(end, Completed) else heard is Evidence.FINISHED
        followed = model.hear(run, heard, reply, waiting)
        if not followed.heard or waiting is None:
            return
        outcome = RunOutcome.GAVE_UP if followed.gave_up else RunOutcome.READ_BACK
        if waiting.state is RunState.QUEUED and not model.pending(run.lane):
            model.advance(waiting, waiting.attempt, [RunEvent.CANCEL], outcome.code)
        elif waiting.state is RunState.QUEUED and model.asks_next(run.lane) is None:
            waiting.hold, waiting.parked = "", False
        elif waiting.state is not RunState.QUEUED and not model.carried(waiting):
            model.end_asker(waiting, followed)

    def _told_before(self, run: ARun, outcome: RunOutcome) -> bool:
        """The same end told twice is taken: the first answer may have been lost."""
        end = self.said.end
        if run.attempt != self.said.attempt:
            return False
        if isinstance(end, Returned):
            return run.state is RunState.QUEUED
        if isinstance(end, Failed):
            return run.state is RunState.FAILED
        return run.outcome == outcome.code or (
            # Its reply was read back before its own end came.
            isinstance(end, Completed) and run.outcome == RunOutcome.READ_BACK.code
        )

    def _follow(self, model: Model, run: ARun, answer: Any, alone: bool) -> None:
        match self.said.end:
            case Completed() as end:
                model.let_go(run, WakeEvent.SERVE)
                seen = run.told
                if end.reply is not None:
                    entry = model.say(model.lanes[run.lane][1])
                    demand(not alone or answer.reply == entry, "the reply has another place", answer, entry)
                    seen = entry if entry == seen + 1 else seen
                model.settle_session(run, seen)
                model.happens(run.session, SessionEvent.TURN_COMPLETED)
            case Failed() as end:
                model.settle_session(run, run.told)
                if end.poisons:
                    model.happens(run.session, SessionEvent.POISONED)
                choice = model.lose(run, end.kind, end.reset_at, RunOutcome.RETRYING)
                redo = answer.retry is not None and answer.retry.redo is choice.redo
                demand(redo, "another choice", answer, choice)
            case Returned() as end:
                waits = WaitsFor.ANOTHER_TRY if model.pending(run.lane) else end.waits_for
                model.let_go(run, WakeEvent.RELEASE)
                if run.state is RunState.QUEUED:
                    run.hold, run.parked = waits.value, waits is not WaitsFor.PERSON
            case Stopped():
                model.settle_session(run, run.told)
                model.let_go(run, WakeEvent.CANCEL)
            case StoreAsked():
                raise AssertionError("a store that was asked is an operation of its own")


_ENDS: dict[type, tuple[RunEvent, RunOutcome]] = {
    Completed: (RunEvent.SUCCEED, RunOutcome.ANSWERED),
    Failed: (RunEvent.FAIL, RunOutcome.GAVE_UP),
    Returned: (RunEvent.RETURN, RunOutcome.RETURNED),
    Stopped: (RunEvent.STOPPED, RunOutcome.STOPPED),
}


@dataclass(frozen=True)
class AskStore:
    """A run was to find out what became of an earlier prompt, and says what the store answered."""

    run: RunId
    attempt: int
    answers: tuple[StoreAnswer, ...]

    def act(self, connection: Connection) -> Finished:
        return _end(connection, Finish(self.run, self.attempt, StoreAsked(self.answers), policy=RETRIES))

    def allow(self, model: Model, told: Told) -> None:
        answer = told.answer
        run = model.run(self.run)
        assert run is not None
        demand(not isinstance(answer, str), "the answer was not taken", answer)
        refused = model.advance(run, self.attempt, [RunEvent.RENEW])
        if refused is not None:
            ends = (run.stop, RunOutcome.READ_BACK.code, RunOutcome.GAVE_UP.code)
            before = run.state is RunState.QUEUED or (run.ended and run.outcome in ends)
            demand(answer.taken == (before and run.attempt == self.attempt), "whether it was told before", answer, run)
            return
        followed = Followed()
        for each in self.answers:
            about = model.run(each.run)
            if about is not None and each.prompt is not None:
                became = model.hear(about, each.prompt.evidence, bool(each.prompt.reply), run)
                followed = Followed(
                    followed.heard + became.heard, followed.gave_up or became.gave_up, followed.left or became.left
                )
        if not model.carried(run):
            model.end_asker(run, followed)
        else:
            run.tries = 0 if followed.heard and not followed.left else run.tries
            asks = model.asks_next(run.lane)
            model.advance(run, self.attempt, [RunEvent.RETURN], RunOutcome.RETURNED.code)
            model.let_go(run, WakeEvent.RELEASE)
            if asks is not None and run.state is RunState.QUEUED:
                run.parked = asks.wait is not None
                run.hold = (WaitsFor.PERSON if asks.wait is None else WaitsFor.ANOTHER_TRY).value
        demand(answer.taken and answer.state is run.state, "another end", answer, run)


@dataclass(frozen=True)
class Decide:
    """A person says what became of the prompts of a lane: the truth, which nobody else can tell."""

    lane: LaneId
    taken: bool

    def act(self, connection: Connection) -> Any:
        about = attest_by_person(connection, self.lane, self.taken)
        if about:
            go_now(connection, self.lane, ThreadId("any"))
        return about

    def allow(self, model: Model, told: Told) -> None:
        unheard, waiting = model.unheard(self.lane), model.open_run(self.lane)
        demand(told.answer == len(unheard), "how many prompts it was about", told.answer, unheard)
        for run in unheard:
            evidence = Evidence.TAKEN if self.taken else Evidence.UNSENT
            model.hear(run, evidence, reply=False, asker=None, by_person=True)
        if waiting is not None and waiting.state is RunState.QUEUED and not model.pending(self.lane):
            why = RunOutcome.BY_USER
            model.advance(waiting, waiting.attempt, [RunEvent.CANCEL], why.code, why.fill())
        elif waiting is not None and waiting.state is RunState.QUEUED and unheard:
            waiting.hold, waiting.parked = "", False
            for wake in model.pending(self.lane):
                wake.parked = False


@dataclass(frozen=True)
class CancelRun:
    run: RunId
    why: RunOutcome

    def act(self, connection: Connection) -> Any:
        return cancel_run(connection, self.run, self.why)

    def allow(self, model: Model, told: Told) -> None:
        answer = told.answer
        run = model.run(self.run)
        assert run is not None
        was_queued = run.state is RunState.QUEUED
        settlement = wakes_on(self.why)
        refused = model.advance(run, run.attempt, [RunEvent.CANCEL], self.why.code, self.why.fill())
        demand(answer.taken == (refused is None), "whether it was cancelled", answer, run)
        demand(answer.state is run.state, "another state", answer, run)
        if refused is not None:
            return
        if was_queued and settlement.wakes is WakeEvent.CANCEL:
            model.cancel_pending(run.lane)
        if run.state is RunState.STOPPING:
            run.stop = run.stop or self.why.code
        model.let_go(run, settlement.wakes)


@dataclass(frozen=True)
class CancelWake:
    wake: WakeId

    def act(self, connection: Connection) -> Any:
        return cancel_wake(connection, self.wake)

    def allow(self, model: Model, told: Told) -> None:
        answer = told.answer
        wake = model.wakes[self.wake]
        taken = wake.state is WakeState.PENDING
        if taken:
            wake.state = WakeState.CANCELLED
            model.end_idle(wake.lane, RunOutcome.BY_USER)
        demand((answer.taken, answer.state) == (taken, wake.state), "what became of the wake", answer, wake)


@dataclass(frozen=True)
class Reassign:
    thread: ThreadId
    old: AgentId
    new: AgentId

    def act(self, connection: Connection) -> int:
        return reassign(connection, self.thread, self.old, self.new)

    def allow(self, model: Model, told: Told) -> None:
        answer = told.answer
        lane = lane_id(self.old, self.thread)
        ended = 0
        if self.old != self.new:
            ended = model.cancel_pending(lane)
            model.end_idle(lane, RunOutcome.REASSIGNED)
        demand(answer == ended, "how many wakes ended", answer, ended)


@dataclass(frozen=True)
class Expire:
    def act(self, connection: Connection) -> Any:
        return expire(connection, 0.0, policy=RETRIES)

    def allow(self, model: Model, told: Told) -> None:
        answer, alone = told.answer, told.alone
        found = {each.run: each for each in answer}
        due = [run for run in model.runs if run.live and run.lapsed]
        demand(set(found) <= {run.id for run in due}, "a lease that holds was taken away", answer)
        demand(not alone or len(found) == len(due), "a lease that is over was left", answer, due)
        for run in due:
            if run.id in found:
                model.lapse(run, RunEvent.LAPSE, RunOutcome.LEASE_LOST)
                demand(found[run.id].state is run.state, "another state", answer, run)


@dataclass(frozen=True)
class Restart:
    """A daemon is started anew; some of its runs go on without it, and it says so."""

    by: str
    runtimes: tuple[RuntimeId, ...]
    held: tuple[Held, ...] = ()

    def act(self, connection: Connection) -> Any:
        return end_orphans(connection, self.by, self.runtimes, self.held, RETRIES)

    def allow(self, model: Model, told: Told) -> None:
        answer = told.answer
        mine = {(each.run, each.attempt) for each in self.held}
        orphans = [
            run
            for run in model.runs
            if run.live and run.by == self.by and run.runtime in self.runtimes and (run.id, run.attempt) not in mine
        ]
        found = {each.run: each.state for each in answer}
        # One that is ended by somebody else at the same moment is theirs.
        demand({run.id for run in orphans} == set(found), "other runs were settled", answer, orphans)
        for run in orphans:
            model.lapse(run, RunEvent.RESTART, RunOutcome.RESTARTED)
            demand(found[RunId(run.id or "")] is run.state, "another state", answer, run)


@dataclass(frozen=True)
class Renew:
    runtimes: tuple[RuntimeId, ...]
    held: tuple[Held, ...]

    def act(self, connection: Connection) -> Any:
        return renew(connection, self.runtimes, self.held, LONG)

    def allow(self, model: Model, told: Told) -> None:
        answer = told.answer
        kept, stop = set(), set()
        for each in self.held:
            run = model.run(each.run)
            assert run is not None
            if model.advance(run, each.attempt, [RunEvent.RENEW]) is None:
                kept.add(each.run)
                stop |= {each.run} if run.stop is not None else set()
        demand((answer.held, answer.stop) == (kept, stop), "what it still holds", answer, kept, stop)


@dataclass(frozen=True)
class TickAll:
    """The schedule of one lane is looked at; what it makes is the same wake, whoever looks."""

    def act(self, connection: Connection) -> tuple[Ticked, ...]:
        return tick_due(connection)

    def allow(self, model: Model, told: Told) -> None:
        answer, seen, alone = told.answer, told.seen, told.alone
        if not model.due:
            demand(answer == (), "a schedule that was not due ticked", answer)
            return
        if not alone and answer == ():
            return  # another server has it in hand
        demand(len(answer) == 1, "the schedule did not tick once", answer)
        model.due = False
        lane = lane_id(*TIMED)
        verdict = answer[0].verdict
        event = any(not wake.timer for wake in model.pending(lane))
        decision = tick(TickFacts(0.0, 1.0, event=event, route=ROUTE, lane_busy=model.busy(lane)))
        # What comes at the same moment it may see or not; a wake too many waits for the next run, one too few for the
        # next tick.
        demand(verdict is decision.verdict or not alone, "the tick went otherwise", answer, decision)
        if verdict is TickVerdict.RETRY:
            return
        asked = WakeRequest(answer[0].wake, TIMED[0], WakeReason.TIMER, Origin(OriginKind.TIMER), TIMED[1])
        state, parked = WakeState.SKIPPED, False
        if verdict is TickVerdict.WAKE:
            agent = AgentState.PAUSED if TIMED[0] in model.paused else AgentState.ACTIVE
            at_door = Request(TIMED[0], asked.reason, asked.origin, 0.0, agent, lane_busy=model.busy(lane))
            state = on_admission(asked.id, admit(at_door, NO_FLOOD), 0.0).state
            # A flood is counted by the minute; whether this is still the same one, the database knows.
            parked = in_future(seen, seen.wakes[asked.id]) and state is WakeState.PENDING
            started = sum(run.agent == TIMED[0] and run.attempt > 0 for run in model.runs)
            demand(not (parked and alone) or started >= Admission().flood_limit, "it was put off for nothing", started)
        put_wake(model, asked, lane, state, told, parked)


@dataclass(frozen=True)
class AnswerIt:
    approval: ApprovalId
    given: Answer

    def act(self, connection: Connection) -> Any:
        return answer_approval(connection, self.approval, self.given, "a person")

    def allow(self, model: Model, told: Told) -> None:
        answer = told.answer
        asked = model.approvals[self.approval]
        taken = asked.state is ApprovalState.PENDING and asked.run.live and asked.attempt == asked.run.attempt
        if taken:
            asked.state = ApprovalState.APPROVED if self.given is Answer.APPROVE else ApprovalState.DENIED
        demand(answer.taken == taken, "whether the answer counted", answer, asked)


@dataclass(frozen=True)
class Move:
    lane: LaneId
    to: RuntimeId

    def act(self, connection: Connection) -> Any:
        return move_lane(connection, self.lane, self.to, "it was asked for")

    def allow(self, model: Model, told: Told) -> None:
        answer = told.answer
        run = model.open_run(self.lane)
        model.moved[self.lane] = self.to
        went = run is not None and run.state is RunState.QUEUED
        if went and run is not None:
            run.runtime, run.parked, run.hold = self.to, run.parked and not run.hold, ""
            run.words = f"Moved to {self.to}: it was asked for"
        demand((answer.run is not None) == went, "whether a run went with it", answer, run)


@dataclass(frozen=True)
class Adopt:
    agent: AgentId
    thread: ThreadId
    runtime: RuntimeId
    native: NativeId

    def act(self, connection: Connection) -> Any:
        return adopt_session(
            connection, Adoption(self.agent, self.thread, self.runtime, a_session(self.native, self.agent))
        )

    def allow(self, model: Model, told: Told) -> None:
        answer = told.answer
        lane = lane_id(self.agent, self.thread)
        held = model.holder(self.runtime, self.native)
        if held is not None and (held.lane, held.scope) != (lane, ""):
            demand(answer == HELD_ELSEWHERE, "a session of another lane was adopted", answer)
            return
        demand(not isinstance(answer, str), "it was not adopted", answer, held)
        if lane not in model.lanes:
            model.lanes[lane], model.moved[lane] = (self.agent, self.thread), self.runtime
        demand(answer.repeated == (held is not None), "whether it was known", answer, held)
        if held is None:
            held = model.append(lane, "", self.runtime, self.native, None)
        demand(answer.generation == held.generation, "another generation", answer, held)


def a_session(native: NativeId, agent: AgentId) -> NewSession:
    return NewSession(Cursor(1, native), Directory(f"/srv/{agent}"), mode="read")


def failing(kind: FailureKind, poisons: bool = False, heard: Evidence | None = None) -> Failed:
    reset_at = FAR_OFF / 2 if kind is FailureKind.USAGE_LIMIT else None
    return Failed(kind, "it broke", reset_at, poisons, heard=heard_of(heard))
