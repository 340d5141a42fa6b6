"""What could be done next: operations drawn by chance, with an eye to where the model is."""

import random
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from clew.kernel import (
    HUMAN,
    ApprovalId,
    EntrySeq,
    FailureKind,
    Freshness,
    LaneId,
    NativeId,
    Origin,
    OriginKind,
    RunId,
    RunOutcome,
    RunState,
    RuntimeId,
    WaitsFor,
    WakeId,
    WakeReason,
)
from clew.wire.ends import Completed, End, Finish, Returned, Stopped
from clew.wire.reports import Asked, NewSession, Report
from clew.wire.runtimes import Held
from clew.wire.wakes import Said, WakeRequest
from tests.store.kit import PERSON
from tests.store.stateful import operations as ops
from tests.store.stateful.model import ARun
from tests.store.stateful.trying import Trial
from tests.store.stateful.world import ADA, AGENTS, BOB, DAEMONS, RUNTIMES, THREADS

ORIGINS = (HUMAN, HUMAN, Origin(OriginKind.OUTSIDE), Origin(OriginKind.AGENT, BOB, 1), Origin(OriginKind.AGENT, ADA, 9))
REASONS = (WakeReason.COMMENT, WakeReason.MENTION, WakeReason.ASSIGNMENT, WakeReason.EVENT)
CANCELS = (RunOutcome.BY_USER, RunOutcome.REASSIGNED, RunOutcome.CLOSED, RunOutcome.INTERRUPTED)


class Drawing:
    def __init__(self, trial: Trial, chance: random.Random) -> None:
        self.trial = trial
        self.chance = chance

    def yes(self, of: int = 2) -> bool:
        return self.chance.randrange(of) == 0

    # ------------------------------------------------------------ runs

    def runs(self, *states: RunState) -> list[ARun]:
        return [run for run in self.trial.model.runs if run.state in states]

    @property
    def live(self) -> list[ARun]:
        return [run for run in self.trial.model.runs if run.live]

    @property
    def claimed_once(self) -> list[ARun]:
        return [run for run in self.trial.model.runs if run.attempt > 0]

    # ------------------------------------------------------------ operations

    def accept(self, lane: LaneId | None = None) -> ops.Operation:
        agent, thread = self.chance.choice([(agent, thread) for agent in AGENTS for thread in (*THREADS, None)])
        if lane is not None:
            agent, thread = self.trial.model.lanes[lane]
        return ops.Accept(
            WakeRequest(
                WakeId(self.trial.name("wk")),
                agent,
                self.chance.choice(REASONS),
                self.chance.choice(ORIGINS),
                thread,
                said=Said(PERSON, "look at this", 3) if self.yes() else None,
                freshness=Freshness.FRESH if self.yes(6) else Freshness.FOLLOW_POLICY,
                priority=self.chance.choice((0, 0, 1, 5)),
                dedupe_key=self.chance.choice((None, None, None, "k1", "k2")),
                isolated=self.yes(5),
            )
        )

    def claim(self, runtime: RuntimeId | None = None) -> ops.Claim:
        by = self.chance.choice([by for by, mine in DAEMONS.items() if runtime is None or runtime in mine])
        return ops.Claim(by, DAEMONS[by], self.chance.randint(1, 3))

    def report(self, run: ARun) -> ops.Operation:
        head = EntrySeq(self.trial.model.entries.get(self.trial.model.lanes[run.lane][1], 0))
        plain = Report(RunId(run.id or ""), self.attempt(run), pin=self.pin(run))
        asked = (Asked(ApprovalId(self.trial.name("ap")), "may I?"),)
        likely: dict[RunState, list[dict[str, Any]]] = {
            RunState.CLAIMED: [{"opens": True}, {"opens": True, "told": head}],
            RunState.OPENING: [{"told": head}, {"told": head, "tool_ran": True}, {"reopens": True}],
            RunState.RUNNING: [{"tool_ran": True}, {"asks": asked}, {"reopens": True}, {}],
            RunState.WAITING: [{"answered": True}, {"tool_ran": True}, {"asks": asked}],
        }
        anything: list[dict[str, Any]] = [
            {"opens": True},
            {"told": head},
            {"asks": asked},
            {"told": head, "asks": asked},
            {"answered": True},
            {},
        ]
        return ops.Say(replace(plain, **self.chance.choice([*likely.get(run.state, []) * 2, *anything])))

    def end(self, run: ARun) -> ops.Operation:
        ends: list[End] = [
            Completed("done" if self.yes() else None, 1),
            ops.failing(self.chance.choice(list(FailureKind)), poisons=self.yes()),
            Returned("not now", "hold:later", self.chance.choice(list(WaitsFor))),
            Stopped("enough"),
        ]
        before_prompt = run.state in (RunState.CLAIMED, RunState.OPENING)
        end = self.chance.choice([*ends, ends[2 if before_prompt else 0]])
        return ops.End(Finish(RunId(run.id or ""), self.attempt(run), end, self.pin(run)))

    def complete(self, run: ARun) -> ops.Operation:
        return ops.End(Finish(RunId(run.id or ""), run.attempt, Completed("done", 1), self.pin(run)))

    def cancel(self, run: ARun) -> ops.Operation:
        return ops.CancelRun(RunId(run.id or ""), self.chance.choice(CANCELS))

    def restart(self) -> ops.Operation:
        by = self.chance.choice(list(DAEMONS))
        held = [run for run in self.live if run.by == by and self.yes(3)]
        return ops.Restart(by, DAEMONS[by], tuple(Held(RunId(run.id or ""), run.attempt) for run in held))

    def renew(self) -> ops.Operation:
        held = [Held(RunId(run.id or ""), self.attempt(run)) for run in self.claimed_once if self.yes(3)]
        return ops.Renew(tuple(RUNTIMES), tuple(held))

    def reassign(self) -> ops.Operation:
        return ops.Reassign(self.chance.choice(THREADS), *self.chance.choices(list(AGENTS), k=2))

    def move(self, lane: LaneId | None = None) -> ops.Operation:
        return ops.Move(lane or self.chance.choice(sorted(self.trial.model.lanes)), self.chance.choice(list(RUNTIMES)))

    def adopt(self) -> ops.Operation:
        known = [NativeId(each.native) for each in self.trial.model.sessions]
        agent = self.chance.choice(list(AGENTS))
        native = self.chance.choice([NativeId(self.trial.name("n")), *known[-3:]])
        return ops.Adopt(agent, self.chance.choice(THREADS), AGENTS[agent][0], native)

    def pin(self, run: ARun) -> NewSession | None:
        """Mostly a new session; now and then one that is known, to this lane or to another."""
        known = [each.native for each in self.trial.model.sessions if each.runtime == run.runtime]
        native = self.chance.choice([self.trial.name("n"), *known[-2:]])
        return ops.a_session(NativeId(native), run.agent) if self.yes() else None

    def attempt(self, run: ARun) -> int:
        """Mostly the one that holds the run; now and then one that lost it."""
        return run.attempt - 1 if run.attempt > 1 and self.yes(4) else run.attempt

    # ------------------------------------------------------------ several at once

    def about(self, run: ARun) -> list[ops.Operation]:
        """A few operations that all touch one lane."""
        agent, thread = self.trial.model.lanes[run.lane]
        could: list[Callable[[], ops.Operation]] = [
            lambda: self.accept(run.lane),
            lambda: self.claim(run.runtime),
            lambda: self.cancel(run),
            ops.Expire,
            self.restart,
            lambda: ops.Reassign(thread, agent, BOB if agent != BOB else ADA),
            lambda: self.move(run.lane),
        ]
        if run.attempt > 0:
            could += [lambda: self.end(run), lambda: self.end(run), lambda: self.report(run)]
        waiting = sorted(wake.id for wake in self.trial.model.pending(run.lane))
        if waiting:
            could += [lambda: ops.CancelWake(self.chance.choice(waiting))] * 2
        return self.some(could)

    def anywhere(self) -> list[ops.Operation]:
        could: list[Callable[[], ops.Operation]] = [self.accept, self.claim, self.claim, self.restart, self.adopt]
        could += [ops.TickAll] * (3 if self.trial.model.due else 1)
        if self.live:
            could += [lambda: self.end(self.chance.choice(self.live))] * 2
            could += [lambda: self.report(self.chance.choice(self.live))]
        return self.some(could)

    def some(self, could: Sequence[Callable[[], ops.Operation]]) -> list[ops.Operation]:
        """Two to four; now and then one of them twice, as when an answer was lost."""
        told: set[RunId] = set()
        kept: list[ops.Operation] = []
        for operation in (self.chance.choice(could)() for _ in range(self.chance.randint(2, 4))):
            if isinstance(operation, ops.Say):
                # A daemon says one thing of a run at a time.
                if operation.said.run in told:
                    continue
                told.add(operation.said.run)
            kept.append(operation)
        return [*kept, kept[0]] if len(kept) < 4 and self.yes(4) else kept
