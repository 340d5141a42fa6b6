"""What could be done next: operations drawn by chance, with an eye to where the model is."""

import random
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from clew.kernel import (
    HELD_BY_AGENT,
    HUMAN,
    ApprovalId,
    EntrySeq,
    Evidence,
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
from clew.protocol.control import Held
from clew.protocol.reports import Asked, Completed, End, Finish, NewSession, Report, Returned, Stopped
from clew.protocol.wakes import Said, WakeRequest
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
        """What a daemon says while a run goes: nothing that is not so in the agent's own store."""
        attempt, pin = self.attempt(run), self.pin(run)
        said = Report(RunId(run.id or ""), attempt, pin=pin)
        if run.asks:
            return ops.Say(replace(said, pin=None))
        prompts = self.prompting(run, pin)
        asks = {"asks": (Asked(ApprovalId(self.trial.name("ap")), "may I?"),)}
        works = run.truth(attempt) in (Evidence.CUT_OFF, Evidence.FINISHED)
        likely: dict[RunState, list[dict[str, Any]]] = {
            RunState.CLAIMED: [{"opens": True}, {"opens": True, **prompts}],
            RunState.OPENING: [prompts, {**prompts, "tool_ran": works}],
            RunState.RUNNING: [{"tool_ran": works}, asks if works else {}, {}],
            RunState.WAITING: [{"answered": True}, {"tool_ran": works}, asks if works else {}],
        }
        anything: list[dict[str, Any]] = [{"opens": True}, prompts, {"answered": True}, {}]
        if works:
            anything += [asks, {**prompts, **asks}]
        if run.truth(attempt) is Evidence.UNSENT:
            anything += [{"reopens": True}, {"reopens": True, **prompts}]
        return ops.Say(replace(said, **self.chance.choice([*likely.get(run.state, []) * 2, *anything])))

    def prompting(self, run: ARun, pin: NewSession | None = None) -> dict[str, Any]:
        """A prompt that is about to go out, with all that the journal holds."""
        model = self.trial.model
        head = EntrySeq(model.entries.get(model.lanes[run.lane][1], 0))
        return {"told": head, "prompted": ops.prompted_by(model, run, self.trial.name("p"), pin, not self.yes(5))}

    def end(self, run: ARun) -> ops.Operation:
        if run.asks and not self.yes(4):
            return self.ask_store(run)
        attempt = self.attempt(run)
        kinds = list(FailureKind)
        ends: list[End] = [
            ops.failing(self.chance.choice(kinds), poisons=self.yes(), heard=self.heard(run, attempt)),
            Returned("not now", "hold:later", self.chance.choice(list(WaitsFor))),
            Stopped("enough", heard=ops.heard_of(self.heard(run, attempt))),
        ]
        likely = [ends[1]] if run.state in (RunState.CLAIMED, RunState.OPENING) else []
        if run.truth(attempt) is Evidence.FINISHED and not run.asks:
            likely += [Completed("done" if self.yes() else None, 1)] * 2
        return ops.End(Finish(RunId(run.id or ""), attempt, self.chance.choice([*ends, *likely]), self.pin(run)))

    def heard(self, run: ARun, attempt: int) -> Evidence | None:
        """What the agent's own store says of the prompt, where it can be asked, and is."""
        return self.chance.choice([run.truth(attempt)] * 3 + [Evidence.UNKNOWN, None])

    def complete(self, run: ARun) -> ops.Operation:
        """As its agent has come to the end of its turn, or not."""
        return self.trial.ending(run, self.pin(run))

    def ask_store(self, run: ARun) -> ops.Operation:
        return self.trial.asking(run, tells=not self.yes(4), attempt=self.attempt(run))

    def decide(self) -> ops.Operation | None:
        """A person looks at what became of a prompt, and says so."""
        unheard = [run for run in self.trial.model.runs if run.unheard and not self.trial.model.busy(run.lane)]
        if not unheard:
            return None
        run = self.chance.choice(unheard)
        return ops.Decide(run.lane, run.truth(run.attempt) in HELD_BY_AGENT)

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
