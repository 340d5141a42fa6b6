"""A server in memory that does only what the kernel says. The store must come to the same, whatever it is told.

Beside it stand the agents' own stores: what became of a prompt is true there, whatever was reported of it.
"""

import random
from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import count

from clew.kernel import (
    HELD_BY_AGENT,
    LIVE,
    RUN_ENDS,
    AgentId,
    ApprovalId,
    ApprovalState,
    EntrySeq,
    Evidence,
    Failure,
    FailureKind,
    LaneId,
    Origin,
    PinReason,
    RetryChoice,
    Run,
    RunEvent,
    RunId,
    RunOutcome,
    RunRefusal,
    RunState,
    RuntimeId,
    SessionEvent,
    SessionState,
    ThreadId,
    Unheard,
    WaitsFor,
    Wake,
    WakeEvent,
    WakeId,
    WakeReason,
    WakeState,
    advance_session,
    apply,
    ask_next,
    lane_id,
    ready,
    retry,
    wakes_on,
)
from clew.kernel.evidence import AskNext
from clew.kernel.wake import advance_wake
from tests.store.stateful.world import AGENTS, RETRIES, RUNTIMES, TIMED

OWN = "own"

TRUTHS = (
    *[Evidence.FINISHED] * 4,
    *[Evidence.CUT_OFF] * 2,
    Evidence.TAKEN,
    *[Evidence.UNSENT] * 2,
)


class Disallowed(Exception):
    """The store answered what the model does not allow."""


def demand(holds: bool, words: str, *facts: object) -> None:
    if not holds:
        raise Disallowed(" ".join((words, *map(repr, facts))))


@dataclass
class AWake:
    id: WakeId
    lane: LaneId
    origin: Origin
    key: str | None
    scope: str
    timer: bool
    at: float
    """When it was accepted: the database's word, which orders it among the others."""
    state: WakeState = WakeState.PENDING
    run: "ARun | None" = None
    began: bool = False
    parked: bool = False


@dataclass(repr=False)
class ARun:
    order: int
    lane: LaneId
    agent: AgentId
    runtime: RuntimeId
    id: RunId | None = None
    """None until the store was seen to name it."""
    state: RunState = RunState.QUEUED
    attempt: int = 0
    prompt_sent: bool = False
    tool_ran: bool = False
    reopened: bool = False
    told: int = 0
    stop: str | None = None
    outcome: str | None = None
    words: str | None = None
    tries: int = 0
    hold: str = ""
    parked: bool = False
    lapsed: bool = False
    by: str | None = None
    session: "ASession | None" = None
    """What it has pinned, or resumed."""
    scope: str = ""
    asked: int = 0
    prompt: tuple[WakeId, ...] | None = None
    """The wakes of the prompt that was to go out."""
    address: str = ""
    """The session that it was to go to."""
    hears: bool = True
    evidence: str = ""
    in_vain: int = 0
    salt: int = 0
    certain: Evidence | None = None
    """The truth, where it is not left to chance."""
    asks: bool = False
    """Whether it is only to find out what became of an earlier prompt."""

    def __repr__(self) -> str:
        return f"{self.id} {self.state} #{self.attempt} of {self.agent}"

    def truth(self, attempt: int) -> Evidence:
        """What the agent's own store holds of the prompt of an attempt. Nobody who is not asked tells."""
        return self.certain or random.Random(f"{self.salt}/{self.order}/{attempt}").choice(TRUTHS)

    @property
    def known(self) -> Evidence:
        return Evidence(self.evidence or Evidence.UNKNOWN) if self.prompt_sent else Evidence.UNSENT

    @property
    def unheard(self) -> bool:
        return self.ended and self.prompt is not None and self.evidence in ("", Evidence.UNKNOWN.value)

    @property
    def live(self) -> bool:
        return self.state in LIVE

    @property
    def ended(self) -> bool:
        return self.state in RUN_ENDS

    def as_kernel(self) -> Run:
        return Run(
            RunId(self.id or ""),
            self.lane,
            self.state,
            self.attempt,
            prompt_sent=self.prompt_sent,
            tool_ran=self.tool_ran,
            reopened=self.reopened,
        )


@dataclass
class ASession:
    lane: LaneId
    scope: str
    generation: int
    runtime: RuntimeId
    native: str
    run: ARun | None
    state: SessionState = SessionState.HEALTHY
    superseded: bool = False
    seen: int = 0
    cut_off: bool = False

    def is_also(self, other: "ASession") -> bool:
        return (self.native, self.runtime) == (other.native, other.runtime)

    def took(self, evidence: Evidence, seen: int) -> None:
        if evidence in HELD_BY_AGENT:
            self.seen, self.cut_off = max(self.seen, seen), evidence is Evidence.CUT_OFF


@dataclass(frozen=True)
class Followed:
    """What followed from what stores said."""

    heard: int = 0
    gave_up: bool = False
    left: bool = False


@dataclass
class AnApproval:
    id: ApprovalId
    run: ARun
    attempt: int
    state: ApprovalState = ApprovalState.PENDING


@dataclass
class Model:
    wakes: dict[WakeId, AWake] = field(default_factory=dict)
    runs: list[ARun] = field(default_factory=list)
    sessions: list[ASession] = field(default_factory=list)
    approvals: dict[ApprovalId, AnApproval] = field(default_factory=dict)
    entries: dict[ThreadId, int] = field(default_factory=dict)
    lanes: dict[LaneId, tuple[AgentId, ThreadId]] = field(default_factory=lambda: {lane_id(*TIMED): TIMED})
    moved: dict[LaneId, RuntimeId] = field(default_factory=dict)
    paused: set[AgentId] = field(default_factory=set)
    due: bool = False
    """Whether the schedule is due."""
    salt: int = 0
    """Another one for each example, so that the agents' stores hold something else in each."""
    numbers: "count[int]" = field(default_factory=count)

    # ------------------------------------------------------------ looking

    def run(self, name: str) -> ARun | None:
        return next((run for run in self.runs if run.id == name), None)

    def open_run(self, lane: LaneId) -> ARun | None:
        return next((run for run in self.runs if run.lane == lane and not run.ended), None)

    def pending(self, lane: LaneId) -> list[AWake]:
        return [wake for wake in self.wakes.values() if wake.lane == lane and wake.state is WakeState.PENDING]

    def carried(self, run: ARun) -> list[AWake]:
        return [wake for wake in self.wakes.values() if wake.run is run and wake.state is WakeState.CLAIMED]

    def runtime_of(self, lane: LaneId) -> RuntimeId:
        return self.moved.get(lane, AGENTS[self.lanes[lane][0]][0])

    def busy(self, lane: LaneId) -> bool:
        run = self.open_run(lane)
        return run is not None and run.live

    def ready(self, lane: LaneId) -> list[AWake]:
        """What a run of the lane would take now: the due wakes of one scope, that of the first."""
        kernel = {
            wake.id: Wake(
                wake.id, lane, WakeReason.COMMENT, wake.origin, wake.at, not_before=2.0 if wake.parked else None
            )
            for wake in self.pending(lane)
        }
        due = [self.wakes[wake.id] for wake in ready(kernel.values(), now=1.0)]
        return [wake for wake in due if wake.scope == due[0].scope]

    def claimable(self, run: ARun, runtime: RuntimeId) -> bool:
        return (
            run.state is RunState.QUEUED
            and run.hold != "person"
            and not run.parked
            and run.runtime == runtime
            and run.agent not in self.paused
        )

    def has_room(self, run: ARun) -> bool:
        live = [each for each in self.runs if each.live]
        of_agent = sum(each.agent == run.agent for each in live)
        of_runtime = sum(each.runtime == run.runtime for each in live)
        return of_agent < AGENTS[run.agent][1] and of_runtime < RUNTIMES[run.runtime]

    # ------------------------------------------------------------ changing

    def say(self, thread: ThreadId) -> EntrySeq:
        self.entries[thread] = self.entries.get(thread, 0) + 1
        return EntrySeq(self.entries[thread])

    def queue(self, lane: LaneId, runtime: RuntimeId, parked: bool = False, tries: int = 0) -> None:
        run = self.open_run(lane)
        if run is None:
            agent = self.lanes[lane][0]
            number = next(self.numbers)
            self.runs.append(ARun(number, lane, agent, runtime, parked=parked, tries=tries, salt=self.salt))
        elif run.state is RunState.QUEUED:
            run.parked, run.hold = run.parked and parked, ""
            run.runtime, run.tries = self.moved.get(lane, run.runtime), min(run.tries, tries)

    def advance(
        self, run: ARun, attempt: int, events: Iterable[RunEvent], outcome: str | None = None, words: str | None = None
    ) -> RunRefusal | None:
        """The run after the events, or untouched with the reason."""
        after = run.as_kernel()
        for event in events:
            applied = apply(after, event, attempt, lease_until=1.0)
            if applied.refused is not None:
                return applied.refused
            after = applied.run
            run.asked += event is RunEvent.ASK
        run.state = after.state
        run.prompt_sent, run.tool_ran, run.reopened = after.prompt_sent, after.tool_ran, after.reopened
        run.outcome = (run.stop or outcome) if run.ended else None
        run.words = words or run.words
        run.lapsed = False
        return None

    def let_go(self, run: ARun, event: WakeEvent, parked: bool = False, tries: int = 0) -> None:
        """The run's wakes are served, pending again or cancelled; whatever is pending then has a run to come."""
        for wake in self.carried(run):
            after = advance_wake(wake.state, event)
            assert after is not None
            wake.state = after
            if event is WakeEvent.RELEASE:
                wake.run, wake.parked, wake.began = None, parked, wake.began or run.session is not None
        for approval in self.approvals.values():
            if approval.run is run and approval.state is ApprovalState.PENDING:
                approval.state = ApprovalState.STALE
        if run.ended:
            self.queue_pending(run, tries)
        elif run.state is RunState.QUEUED:
            run.runtime = self.next_runtime(run)

    def next_runtime(self, run: ARun) -> RuntimeId:
        """Where what waits is taken up after the run."""
        began = run.lane not in self.moved and any(wake.began for wake in self.pending(run.lane))
        return run.runtime if began else self.runtime_of(run.lane)

    def queue_pending(self, run: ARun, tries: int) -> None:
        waiting = self.pending(run.lane)
        if waiting:
            self.queue(run.lane, self.next_runtime(run), all(wake.parked for wake in waiting), tries)

    def cancel_pending(self, lane: LaneId) -> int:
        waiting = self.pending(lane)
        for wake in waiting:
            wake.state = WakeState.CANCELLED
        return len(waiting)

    def end_idle(self, lane: LaneId, why: RunOutcome) -> None:
        """A queued run whose last wake is gone ends too."""
        run = self.open_run(lane)
        if run is not None and run.state is RunState.QUEUED and not self.pending(lane):
            self.advance(run, run.attempt, [RunEvent.CANCEL], why.code, why.fill())

    def lose(self, run: ARun, kind: FailureKind, reset_at: float | None, again: RunOutcome) -> RetryChoice:
        """What follows a failure, once the run has ended."""
        failure = Failure(
            kind,
            "",
            run.known,
            run.session is not None,
            tool_ran=run.tool_ran,
            reopened=run.reopened,
            reset_at=reset_at,
        )
        choice = retry(failure, run.tries + 1, RETRIES, 0.0, 0.5)
        outcome = RunOutcome.GAVE_UP if choice.redo is None else again
        if run.state is not RunState.CANCELLED:
            run.outcome = outcome.code
        if choice.redo is None:
            self.let_go(run, WakeEvent.CANCEL)
        else:
            self.let_go(run, WakeEvent.RELEASE, bool(choice.wait), 0 if run.stop else run.tries + 1)
        return choice

    def lapse(self, run: ARun, event: RunEvent, why: RunOutcome) -> None:
        """Its daemon is silent or was started anew."""
        refused = self.advance(run, run.attempt, [event], why.code)
        demand(refused is None, "it could not be settled", run, refused)
        if run.state is RunState.LOST:
            self.lose(run, FailureKind.INTERRUPTED, None, why)
        else:
            self.let_go(run, WakeEvent.RELEASE)
        if run.state is RunState.QUEUED and run.attempt >= RETRIES.max_tries:
            run.hold = WaitsFor.PERSON.value
        elif run.state is RunState.QUEUED and run.attempt > 1:
            run.hold, run.parked = WaitsFor.ANOTHER_TRY.value, True

    # ------------------------------------------------------------ what became of a prompt

    def unheard(self, lane: LaneId) -> list[ARun]:
        return [run for run in self.runs if run.lane == lane and run.unheard]

    def asks_next(self, lane: LaneId) -> AskNext | None:
        return ask_next([Unheard(RunId(run.id or ""), run.hears, run.in_vain) for run in self.unheard(lane)])

    def settle_session(self, run: ARun, seen: int) -> None:
        """The end of a run, for its session. One that took its prompt is there, whoever came to say so."""
        if run.known in HELD_BY_AGENT and run.session is None and run.address:
            self.pin(run, run.address)
        if run.session is not None and run.prompt_sent:
            run.session.took(run.known, seen)

    def hear(self, run: ARun, evidence: Evidence, reply: bool, asker: ARun | None, by_person: bool = False) -> Followed:
        """What a store says of a run that has ended, with all that follows."""
        if not run.unheard:
            return Followed()
        if run.tool_ran and evidence in (Evidence.UNSENT, Evidence.TAKEN):
            evidence = Evidence.CUT_OFF
        run.evidence = evidence.value
        if evidence is Evidence.UNKNOWN:
            run.in_vain += 1
            return Followed(1, left=True)
        waiting = [wake for wake in self._told_by(run) if self._is_open(wake, asker)]
        if evidence is Evidence.FINISHED:
            entry = self.say(self.lanes[run.lane][1]) if reply else None
            self.settle_session(run, entry if entry == run.told + 1 and entry is not None else run.told)
            for wake in waiting:
                wake.state, wake.run = WakeState.SERVED, run
            self.happens(run.session, SessionEvent.TURN_COMPLETED)
            return Followed(1)
        self.settle_session(run, run.told)
        for wake in waiting:
            wake.began = wake.began or (evidence in HELD_BY_AGENT and run.session is not None)
        tries = 1 if asker is None or by_person else max(1, asker.tries)
        failure = Failure(FailureKind.INTERRUPTED, "", evidence, run.session is not None)
        if retry(failure, tries, RETRIES, 0.0, 0.0).redo is not None:
            return Followed(1, left=True)
        for wake in waiting:
            wake.state, wake.run = WakeState.CANCELLED, run
        return Followed(1, gave_up=bool(waiting))

    def _told_by(self, run: ARun) -> list[AWake]:
        return [self.wakes[wake] for wake in run.prompt or ()]

    def _is_open(self, wake: AWake, asker: ARun | None) -> bool:
        carried = asker is not None and wake.state is WakeState.CLAIMED and wake.run is asker
        return wake.state is WakeState.PENDING or carried

    def end_asker(self, run: ARun, followed: Followed) -> None:
        """A run that was to ask, and has nothing left to do."""
        outcome = RunOutcome.GAVE_UP if followed.gave_up else RunOutcome.READ_BACK
        self.advance(run, run.attempt, [wakes_on(outcome).run], outcome.code)
        self.let_go(run, WakeEvent.SERVE)

    def happens(self, session: ASession | None, event: SessionEvent) -> None:
        if session is not None:
            session.state = advance_session(session.state, event) or session.state

    def generations(self, lane: LaneId, scope: str) -> list[ASession]:
        """Of that lane and scope, the newest first."""
        own = [session for session in self.sessions if (session.lane, session.scope) == (lane, scope)]
        return sorted(own, key=lambda session: -session.generation)

    def holder(self, runtime: RuntimeId, native: str) -> ASession | None:
        found = [s for s in self.sessions if (s.runtime, s.native) == (runtime, native) and not s.superseded]
        demand(len(found) < 2, "a session has two holders", found)
        return found[0] if found else None

    def pin(self, run: ARun, native: str, late: bool | None = None) -> PinReason | None:
        """What a pin makes of the lane's generations; None when another lane has that session. A run that has ended
        stays in the session that it ended in."""
        late = run.ended if late is None else late
        newest = next(iter(self.generations(run.lane, run.scope)), None)
        if late and newest is not None and newest.run is not None and newest.run.order > run.order:
            return PinReason.LATE
        held = self.holder(run.runtime, native)
        if held is not None and (held.lane, held.scope) != (run.lane, run.scope):
            return None
        stays = late and run.session is not None
        if held is not None and held is newest:
            run.session = run.session if stays else held
            return PinReason.SAME
        new = self.append(run.lane, run.scope, run.runtime, native, run)
        if held is not None:
            held.superseded, new.state = True, held.state
            new.seen, new.cut_off = held.seen, held.cut_off
        if late:
            new.took(run.known, run.told)
        run.session = run.session if stays else new
        return PinReason.FIRST if new.generation == 1 else PinReason.NEW_GENERATION

    def append(self, lane: LaneId, scope: str, runtime: RuntimeId, native: str, run: ARun | None) -> ASession:
        new = ASession(lane, scope, len(self.generations(lane, scope)) + 1, runtime, native, run)
        self.sessions.append(new)
        return new
