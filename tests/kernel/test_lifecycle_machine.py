"""Several lanes through crashes, cancels, late reports and duplicates: no wake is lost, none is served twice.

The agent has a store of its own: whether it took a prompt, and whether it came to the end of its turn, is true there
whatever was reported. Nothing that it took is sent again, and nothing that it did not take counts as told.
"""

from dataclasses import dataclass, replace
from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from clew.kernel.evidence import HELD_BY_AGENT, Evidence, Unheard, ask_next
from clew.kernel.ids import LaneId, RunId, SessionId, WakeId
from clew.kernel.lease import Heard, Patience, leased, standing
from clew.kernel.retry import Failure, FailureKind, Redo, RetryPolicy, RetryReason, retry
from clew.kernel.run import CARRYING, LIVE, RUN_ENDS, Applied, Run, RunEvent, RunOutcome, RunState, apply, wakes_on
from clew.kernel.wake import (
    HUMAN,
    WAKE_ENDS,
    Origin,
    OriginKind,
    Wake,
    WakeEvent,
    WakeReason,
    WakeState,
    advance_wake,
    coalesce,
    ready,
)

LANES = tuple(LaneId(name) for name in ("la", "lb", "lc"))
ORIGINS = (HUMAN, Origin(OriginKind.TIMER))
PATIENCE = Patience(lease=10.0, offline_after=15.0, grace=20.0)
RETRIES = RetryPolicy(max_tries=3, base=4.0, cap=16.0)

CANCELS = (RunOutcome.BY_USER, RunOutcome.REASSIGNED, RunOutcome.CLOSED, RunOutcome.INTERRUPTED)

lanes = st.sampled_from(LANES)
truths = st.sampled_from([Evidence.UNSENT, Evidence.TAKEN, Evidence.CUT_OFF, Evidence.FINISHED])
"""How far a prompt comes in truth, where its run does not come to a good end."""

Report = tuple[RunId, RunEvent, int, RunOutcome | None]


@dataclass(frozen=True)
class Prompt:
    """What an agent's store knows of a run's prompt: what it told, and how far it came."""

    lane: LaneId
    told: frozenset[WakeId]
    truth: Evidence


class Lifecycle(RuleBasedStateMachine):
    """A server in memory that only does what the kernel says, with daemons that crash and repeat themselves."""

    def __init__(self) -> None:
        super().__init__()
        self.now = 0.0
        self.wakes: dict[WakeId, Wake] = {}
        self.states: dict[WakeId, WakeState] = {}
        self.runs: dict[RunId, Run] = {}
        self.carried: dict[RunId, tuple[WakeId, ...]] = {}
        self.ever_carried: dict[RunId, set[WakeId]] = {}
        self.heard: dict[RunId, float] = {}
        self.served_by: dict[WakeId, RunId] = {}
        self.ended_as: dict[RunId, RunState] = {}
        self.fences: dict[RunId, int] = {}
        self.prompts: dict[RunId, Prompt] = {}
        """In truth. Only whoever asks the store may look."""
        self.evidence: dict[RunId, Evidence] = {}
        """What is known of them."""
        self.asked: dict[RunId, int] = {}
        self.seen: dict[LaneId, set[WakeId]] = {lane: set() for lane in LANES}
        """What the lane's session has seen, by evidence."""
        self.forgotten: set[RunId] = set()
        """Prompts to sessions that are no longer the lane's."""
        self.tries: dict[LaneId, int] = {}
        self.sent: list[Report] = []

    @initialize()
    def one_wake_waits(self) -> None:
        self.accept(LANES[0], HUMAN, None)

    # What the kernel decides is written here, in one place, as the server's transactions would.

    def _advance(self, wake: WakeId, event: WakeEvent, run: RunId) -> None:
        then = advance_wake(self.states[wake], event)
        assert then is not None, (self.states[wake], event)
        self.states[wake] = then
        if then is WakeState.SERVED:
            assert wake not in self.served_by
            assert wake in self.ever_carried[run]
            self.served_by[wake] = run

    def _apply(
        self,
        run_id: RunId,
        event: RunEvent,
        attempt: int,
        outcome: RunOutcome | None = None,
        until: float | None = None,
    ) -> Applied:
        before = self.runs[run_id]
        applied = apply(before, event, attempt, until)
        self.runs[run_id] = applied.run
        if applied.refused:
            assert applied.run is before
        if applied.settles:
            assert outcome is not None
            for wake in self.carried.pop(run_id):
                self._advance(wake, wakes_on(outcome).wakes, run_id)
        if event not in (RunEvent.CLAIM, RunEvent.CANCEL, RunEvent.LAPSE, RunEvent.RESTART):
            self.sent.append((run_id, event, attempt, outcome))
        return applied

    def _queue_next(self, lane: LaneId) -> None:
        """One run waits in the queue of a lane that has pending wakes and no other run."""
        open_runs = [run for run in self.runs.values() if run.lane == lane and run.state not in RUN_ENDS]
        pending = [wake for wake in self.wakes.values() if wake.lane == lane and self._is(wake, WakeState.PENDING)]
        if pending and not open_runs:
            run_id = RunId(f"r{len(self.runs)}")
            self.runs[run_id] = Run(run_id, lane)
            self.ever_carried[run_id] = set()

    def _is(self, wake: Wake, state: WakeState) -> bool:
        return self.states[wake.id] is state

    def _fail(self, run: Run, kind: FailureKind, crash: RunOutcome | None, heard: bool = False) -> None:
        """Ask the kernel what follows, then settle the run: given back, failed for now, or given up. `heard` is whether
        the agent's store was asked before the run ended."""
        evidence = self._hear(run.id, heard) if run.prompt_sent else Evidence.UNSENT
        failure = Failure(kind, "it broke.", evidence, run.session is not None or evidence in HELD_BY_AGENT)
        self.tries[run.lane] = self.tries.get(run.lane, 0) + 1
        choice = retry(failure, self.tries[run.lane], RETRIES, self.now, 0.5)
        carried = self.carried.get(run.id, ())
        outcome = (crash or RunOutcome.RETRYING) if choice.redo else RunOutcome.GAVE_UP
        self._apply(run.id, wakes_on(outcome).run, run.attempt, outcome)
        if choice.redo is Redo.CONTINUE and carried:
            assert self.seen[run.lane] >= self.prompts[run.id].told
        if choice.reason is RetryReason.NEW_SESSION and evidence is Evidence.UNSENT:
            self._forget_session(run.lane)
        if choice.at is not None:
            for wake in carried:
                self.wakes[wake] = replace(self.wakes[wake], not_before=choice.at)
        else:
            self.tries[run.lane] = 0

    def _hear(self, run: RunId, answers: bool) -> Evidence:
        """What is known of a prompt from now on. What the lane's own session holds of it counts as seen there."""
        truth = self.prompts[run].truth if answers else Evidence.UNKNOWN
        self.evidence[run] = truth
        if truth in HELD_BY_AGENT and run not in self.forgotten:
            self.seen[self.prompts[run].lane] |= self.prompts[run].told
        return truth

    def _unheard(self, lane: LaneId) -> list[Unheard]:
        return [
            Unheard(run, asked=self.asked.get(run, 0))
            for run, prompt in self.prompts.items()
            if prompt.lane == lane
            and self.runs[run].state in RUN_ENDS
            and self.evidence.get(run) in (None, Evidence.UNKNOWN)
        ]

    def _ask_store(self, run: Run, answers: bool) -> None:
        """A run that was claimed while it is not known what became of an earlier prompt: it sends nothing."""
        for each in self._unheard(run.lane):
            if self._hear(each.run, answers) is Evidence.UNKNOWN:
                self.asked[each.run] = each.asked + 1
            elif self.evidence[each.run] is Evidence.FINISHED:
                mine = [wake for wake in self.carried[run.id] if wake in self.ever_carried[each.run]]
                for wake in mine:
                    self._advance(wake, WakeEvent.SERVE, each.run)
                self.carried[run.id] = tuple(wake for wake in self.carried[run.id] if wake not in mine)
        outcome = RunOutcome.RETURNED if self.carried[run.id] else RunOutcome.READ_BACK
        self._apply(run.id, wakes_on(outcome).run, run.attempt, outcome)
        if self.runs[run.id].state in RUN_ENDS:
            self.tries[run.lane] = 0
            self._queue_next(run.lane)

    def _forget_session(self, lane: LaneId) -> None:
        """The lane's next session starts anew, so it may be told what the last one was told."""
        self.seen[lane] = set()
        self.forgotten |= {run for run, prompt in self.prompts.items() if prompt.lane == lane}

    def _in(self, *states: RunState) -> list[Run]:
        return [run for run in self.runs.values() if run.state in states]

    def _some(self, pick: st.DataObject, *states: RunState) -> Run:
        return pick.draw(st.sampled_from(self._in(*states)))

    @rule(lane=lanes, origin=st.sampled_from(ORIGINS), delay=st.sampled_from([None, None, None, 10]))
    def accept(self, lane: LaneId, origin: Origin, delay: int | None) -> None:
        wake_id = WakeId(f"w{len(self.wakes)}")
        not_before = None if delay is None else self.now + delay
        self.wakes[wake_id] = Wake(wake_id, lane, WakeReason.COMMENT, origin, self.now, not_before=not_before)
        self.states[wake_id] = WakeState.PENDING
        self._queue_next(lane)

    @rule(seconds=st.sampled_from([1, 10, 40]))
    def time_passes(self, seconds: int) -> None:
        self.now += seconds

    @precondition(lambda self: self._in(RunState.QUEUED))
    @rule(pick=st.data(), steps=st.integers(0, 2), pinned=st.booleans(), truth=truths)
    def claim(self, pick: st.DataObject, steps: int, pinned: bool, truth: Evidence) -> None:
        """The claim, and at once what often follows it, so that the later states are reached often as well."""
        run_id = self._some(pick, RunState.QUEUED).id
        self._claim(self.runs[run_id])
        if self._unheard(self.runs[run_id].lane):
            return
        if steps > 0 and self.runs[run_id].state is RunState.CLAIMED:
            self._open(self.runs[run_id])
        if steps > 1 and self.runs[run_id].state is RunState.OPENING:
            self._prompt(self.runs[run_id], pinned, truth)

    @precondition(lambda self: self._asking())
    @rule(pick=st.data(), answers=st.booleans())
    def the_store_is_asked(self, pick: st.DataObject, answers: bool) -> None:
        self._ask_store(pick.draw(st.sampled_from(self._asking())), answers)

    def _asking(self) -> list[Run]:
        return [run for run in self._in(RunState.CLAIMED) if self._unheard(run.lane)]

    def _claim(self, run: Run) -> None:
        pending = [wake for wake in self.wakes.values() if wake.lane == run.lane and self._is(wake, WakeState.PENDING)]
        taken = ready(pending, self.now)
        if not taken:
            return
        demand = coalesce(taken)
        assert not self._apply(run.id, RunEvent.CLAIM, run.attempt, until=leased(self.now, PATIENCE)).refused
        for wake in demand.wakes:
            self.ever_carried[run.id].add(wake)
            self._advance(wake, WakeEvent.CLAIM, run.id)
        self.carried[run.id] = demand.wakes
        self.heard[run.id] = self.now

    def _to_open(self) -> list[Run]:
        return [run for run in self._in(RunState.CLAIMED) if not self._unheard(run.lane)]

    @precondition(lambda self: self._to_open())
    @rule(pick=st.data())
    def open(self, pick: st.DataObject) -> None:
        self._open(pick.draw(st.sampled_from(self._to_open())))

    def _open(self, run: Run) -> None:
        assert ask_next(self._unheard(run.lane)) is None
        self._apply(run.id, RunEvent.OPEN, run.attempt, until=leased(self.now, PATIENCE))
        self.heard[run.id] = self.now

    @precondition(lambda self: self._in(RunState.OPENING))
    @rule(pick=st.data(), pinned=st.booleans(), truth=truths)
    def prompt(self, pick: st.DataObject, pinned: bool, truth: Evidence) -> None:
        self._prompt(self._some(pick, RunState.OPENING), pinned, truth)

    def _prompt(self, run: Run, pinned: bool, truth: Evidence) -> None:
        """It tells what the session has not seen. How far it comes is the agent's own affair."""
        assert not run.prompt_sent
        self._apply(run.id, RunEvent.PROMPT, run.attempt)
        unseen = frozenset(self.carried[run.id]) - self.seen[run.lane]
        taken = [
            prompt.told
            for other, prompt in self.prompts.items()
            if prompt.truth in HELD_BY_AGENT and other not in self.forgotten and prompt.lane == run.lane
        ]
        assert unseen.isdisjoint(frozenset().union(*taken)), "a prompt that an agent has taken is sent again"
        self.prompts[run.id] = Prompt(run.lane, unseen, truth)
        if pinned:
            self.runs[run.id] = replace(self.runs[run.id], session=SessionId(f"s-{run.lane}"))

    @precondition(lambda self: self._in(RunState.RUNNING, RunState.WAITING))
    @rule(pick=st.data(), event=st.sampled_from([RunEvent.TOOL, RunEvent.ASK, RunEvent.ANSWER]))
    def work(self, pick: st.DataObject, event: RunEvent) -> None:
        run = self._some(pick, RunState.RUNNING, RunState.WAITING)
        self._apply(run.id, event, run.attempt)

    @precondition(lambda self: self._in(*LIVE))
    @rule(pick=st.data())
    def renew(self, pick: st.DataObject) -> None:
        run = self._some(pick, *sorted(LIVE))
        assert run.lease_until is not None
        self._apply(run.id, RunEvent.RENEW, run.attempt, until=leased(self.now, PATIENCE))
        self.heard[run.id] = self.now

    @precondition(lambda self: self._in(RunState.RUNNING, RunState.WAITING))
    @rule(pick=st.data())
    def complete(self, pick: st.DataObject) -> None:
        self._complete(self._some(pick, RunState.RUNNING, RunState.WAITING))

    def _complete(self, run: Run) -> None:
        self.prompts[run.id] = replace(self.prompts[run.id], truth=Evidence.FINISHED)
        self._hear(run.id, answers=True)
        self._apply(run.id, RunEvent.SUCCEED, run.attempt, RunOutcome.ANSWERED)
        self.tries[run.lane] = 0
        self._queue_next(run.lane)

    @precondition(lambda self: self._in(*CARRYING))
    @rule(pick=st.data(), kind=st.sampled_from(FailureKind), heard=st.booleans())
    def agent_fails(self, pick: st.DataObject, kind: FailureKind, heard: bool) -> None:
        run = self._some(pick, *sorted(CARRYING))
        self._fail(run, kind, None, heard)
        self._queue_next(run.lane)

    @precondition(lambda self: self._in(RunState.CLAIMED, RunState.OPENING))
    @rule(pick=st.data())
    def claim_is_given_back(self, pick: st.DataObject) -> None:
        run = self._some(pick, RunState.CLAIMED, RunState.OPENING)
        self._apply(run.id, RunEvent.RETURN, run.attempt, RunOutcome.RETURNED)
        assert self.runs[run.id].state is RunState.QUEUED

    @precondition(lambda self: self._in(*LIVE))
    @rule(pick=st.data())
    def daemon_restarts(self, pick: st.DataObject) -> None:
        run = self._some(pick, *sorted(LIVE))
        self._fail(run, FailureKind.INTERRUPTED, RunOutcome.RESTARTED)
        assert self.runs[run.id].state in RUN_ENDS | {RunState.QUEUED}
        self._queue_next(run.lane)

    @precondition(lambda self: self._in(*LIVE))
    @rule(pick=st.data())
    def leases_are_swept(self, pick: st.DataObject) -> None:
        run = self._some(pick, *sorted(LIVE))
        assert run.lease_until is not None
        opened = run.state is not RunState.CLAIMED
        if not standing(run.lease_until, opened, Heard(self.heard[run.id]), self.now, PATIENCE).kept:
            self._fail(run, FailureKind.INTERRUPTED, RunOutcome.LEASE_LOST)
            assert self.runs[run.id].state in RUN_ENDS | {RunState.QUEUED}
            self._queue_next(run.lane)

    @precondition(lambda self: self._in(*LIVE))
    @rule(pick=st.data(), outcome=st.sampled_from(CANCELS))
    def cancel(self, pick: st.DataObject, outcome: RunOutcome) -> None:
        self._cancel(self._some(pick, *sorted(LIVE)), outcome)

    @precondition(lambda self: len(self._in(*RUN_ENDS, RunState.QUEUED)) > 2)
    @rule(pick=st.data(), outcome=st.sampled_from(CANCELS))
    def cancel_early_or_late(self, pick: st.DataObject, outcome: RunOutcome) -> None:
        self._cancel(self._some(pick, *sorted(RUN_ENDS), RunState.QUEUED), outcome)

    def _cancel(self, run: Run, outcome: RunOutcome) -> None:
        self._apply(run.id, RunEvent.CANCEL, run.attempt, outcome)
        if run.state is RunState.QUEUED and wakes_on(outcome).wakes is WakeEvent.CANCEL:
            for wake in self.wakes.values():
                if wake.lane == run.lane and self._is(wake, WakeState.PENDING):
                    self._advance(wake.id, WakeEvent.CANCEL, run.id)
        self._queue_next(run.lane)

    @precondition(lambda self: self._in(RunState.STOPPING))
    @rule(
        pick=st.data(),
        event=st.sampled_from([RunEvent.STOPPED, RunEvent.SUCCEED, RunEvent.FAIL]),
        heard=st.booleans(),
    )
    def stopped(self, pick: st.DataObject, event: RunEvent, heard: bool) -> None:
        self._stopped(self._some(pick, RunState.STOPPING), event, heard)

    def _stopped(self, run: Run, event: RunEvent, heard: bool) -> None:
        if run.prompt_sent:
            self._hear(run.id, heard)
        applied = self._apply(run.id, event, run.attempt)
        assert applied.run.state is RunState.CANCELLED
        self._queue_next(run.lane)

    @precondition(lambda self: self.sent)
    @rule(pick=st.data())
    def an_end_is_reported_again(self, pick: st.DataObject) -> None:
        """The daemon's outbox repeats itself: nothing that has ended, or has another holder, is touched."""
        run_id, event, attempt, outcome = pick.draw(st.sampled_from(self.sent))
        run = self.runs[run_id]
        if run.attempt != attempt or run.state in RUN_ENDS or run.state is RunState.QUEUED:
            states = dict(self.states)
            applied = self._apply(run_id, event, attempt, outcome, until=self.now)
            assert applied.refused
            assert applied.run is run
            assert states == self.states

    @precondition(lambda self: any(run.attempt for run in self.runs.values()))
    @rule(pick=st.data(), event=st.sampled_from(RunEvent))
    def an_old_attempt_reports(self, pick: st.DataObject, event: RunEvent) -> None:
        run = pick.draw(st.sampled_from([run for run in self.runs.values() if run.attempt]))
        old = pick.draw(st.integers(0, run.attempt - 1))
        applied = self._apply(run.id, event, old, RunOutcome.ANSWERED, until=self.now)
        assert applied.refused
        assert applied.run is run

    @invariant()
    def one_live_run_per_lane(self) -> None:
        for lane in LANES:
            of_lane = [run for run in self.runs.values() if run.lane == lane]
            assert sum(run.state in LIVE for run in of_lane) <= 1
            assert sum(run.state not in RUN_ENDS for run in of_lane) <= 1

    @invariant()
    def every_wake_is_in_one_state_and_in_at_most_one_run(self) -> None:
        assert set(self.states) == set(self.wakes)
        held = [wake for wakes in self.carried.values() for wake in wakes]
        assert len(held) == len(set(held))
        assert set(held) == {wake for wake, state in self.states.items() if state is WakeState.CLAIMED}
        assert set(self.carried) == {run.id for run in self.runs.values() if run.state in CARRYING}

    @invariant()
    def a_wake_is_served_once_by_a_run_that_carried_it(self) -> None:
        assert set(self.served_by) == {wake for wake, state in self.states.items() if state is WakeState.SERVED}
        for wake, run in self.served_by.items():
            assert wake in self.ever_carried[run]
            assert self.prompts[run].truth is Evidence.FINISHED

    @invariant()
    def what_a_session_has_seen_is_what_it_took(self) -> None:
        for lane in LANES:
            took = [
                prompt.told
                for run, prompt in self.prompts.items()
                if prompt.lane == lane and prompt.truth in HELD_BY_AGENT and run not in self.forgotten
            ]
            assert self.seen[lane] <= frozenset().union(*took), "what was not taken is called told"

    @invariant()
    def ends_stay_and_fences_only_rise(self) -> None:
        for run in self.runs.values():
            assert run.attempt >= self.fences.get(run.id, 0)
            self.fences[run.id] = run.attempt
            assert self.ended_as.get(run.id, run.state) is run.state
            if run.state in RUN_ENDS:
                self.ended_as[run.id] = run.state

    @invariant()
    def pending_wakes_have_a_run_to_come(self) -> None:
        waiting = {wake.lane for wake in self.wakes.values() if self._is(wake, WakeState.PENDING)}
        assert waiting <= {run.lane for run in self.runs.values() if run.state not in RUN_ENDS}

    def teardown(self) -> None:
        """Everything that is left is let run to its end: every wake gets one, and every run is final."""
        for _ in range(4 * (len(self.wakes) + len(self.runs)) + 4):
            self.now += 100.0
            for run in list(self.runs.values()):
                match run.state:
                    case RunState.QUEUED:
                        self._claim(run)
                    case RunState.CLAIMED if self._unheard(run.lane):
                        self._ask_store(run, answers=True)
                    case RunState.CLAIMED:
                        self._open(run)
                    case RunState.OPENING:
                        self._prompt(run, pinned=True, truth=Evidence.FINISHED)
                    case RunState.RUNNING | RunState.WAITING:
                        self._complete(run)
                    case RunState.STOPPING:
                        self._stopped(run, RunEvent.STOPPED, heard=True)
                    case _:
                        pass
        assert set(self.states.values()) <= WAKE_ENDS
        assert {run.state for run in self.runs.values()} <= RUN_ENDS
        self.one_live_run_per_lane()
        self.every_wake_is_in_one_state_and_in_at_most_one_run()
        self.a_wake_is_served_once_by_a_run_that_carried_it()
        self.ends_stay_and_fences_only_rise()
        self.what_a_session_has_seen_is_what_it_took()


Lifecycle.TestCase.settings = settings(stateful_step_count=80)
TestLifecycle: Any = pytest.mark.case("C35", "L01", "L03", "P09", "P19", "R03", "W07", "W08")(Lifecycle.TestCase)
