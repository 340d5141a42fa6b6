"""Trying operations on the store and on the model: alone, or several at the same moment."""

import copy
import itertools
import threading
from collections.abc import Sequence
from concurrent.futures import Future
from typing import Any

from sqlalchemy import Connection, update

from clew.kernel import HELD_BY_AGENT, EntrySeq, Evidence, FailureKind, RunId, RunState, Served, WakeState
from clew.protocol.reports import Completed, End, Finish, NewSession, Report, StoreAnswer
from clew.store.engine.database import Database
from clew.store.faults import StoreFault
from clew.store.schema.check import PROMISES, check
from clew.store.schema.tables import agents, runs, schedules, wakes
from tests.store.stateful import operations as ops
from tests.store.stateful.model import ARun, Disallowed, Model
from tests.store.stateful.observed import Observed, bind, compare, observe, still
from tests.store.stateful.world import AGENTS, DAEMONS, RUNTIMES, SCHEDULE, furnish

SLOW = {"file-whole", "value-type", "row-bounds", "row-once", "row-pointer", "value-json", "decision-replay"}
"""Promises that are asked once at the end of an example; all others after every step."""


class Trial:
    """The store, furnished anew, and its model. They are in step, or the trial has failed."""

    def __init__(self, servers: Sequence[Database]) -> None:
        self.servers = servers
        self.model = Model()
        self.done: list[ops.Operation] = []
        self.last: ops.Operation | None = None
        """What was done last, if it was done alone."""
        self.served: dict[str, str] = {}
        self.names = itertools.count(1)
        self.failed = False
        servers[0].write(furnish).result(30)
        self.seen = self.look()

    def look(self) -> Observed:
        return self.servers[0].read(observe)

    def name(self, prefix: str) -> str:
        return f"{prefix}-{next(self.names)}"

    # ------------------------------------------------------------ trying

    def do(self, operation: ops.Operation) -> Any:
        self.failed = True
        answer = answer_of(self.servers[0], operation)
        after = self.look()
        try:
            operation.allow(self.model, ops.Told(answer, after, alone=True))
            bind(self.model, after)
            compare(self.model, after)
        except Disallowed as why:
            raise AssertionError(f"{why}\nafter {operation}\nwhich answered {answer}") from why
        self._moved_on([operation], after)
        return answer

    def do_together(self, operations: Sequence[ops.Operation]) -> list[Any]:
        self.failed = True
        answers = at_once(self.servers, operations)
        self.explain(operations, answers)
        return answers

    def explain(self, operations: Sequence[ops.Operation], answers: Sequence[Any]) -> None:
        """Some order of them must explain what came of all."""
        self.failed = True
        after = self.look()
        reasons: list[str] = []
        for order in itertools.permutations(range(len(operations))):
            model = copy.deepcopy(self.model)
            try:
                for index in order:
                    operations[index].allow(model, ops.Told(answers[index], after, alone=False))
                bind(model, after)
                compare(model, after)
            except Disallowed as why:
                reasons.append(f"{order}: {why}")
                continue
            self.model = model
            self._moved_on(operations, after)
            return
        told = [f"{each}\n  -> {answer}" for each, answer in zip(operations, answers, strict=True)]
        raise AssertionError("\n".join(("no order explains this:", *told, *reasons)))

    def _moved_on(self, operations: Sequence[ops.Operation], after: Observed) -> None:
        still(self.seen, after)
        self.seen = after
        self.done += operations
        self.last = operations[0] if len(operations) == 1 else None
        self.failed = False

    # ------------------------------------------------------------ what the world does by itself

    def set(self, statement: Any) -> None:
        self.servers[0].write(lambda connection: connection.execute(statement).rowcount).result(30)
        self.seen = self.look()

    def let_lapse(self, lapsing: Sequence[ARun]) -> None:
        for run in lapsing:
            run.lapsed = True
        self.set(update(runs).where(runs.c.id.in_([run.id for run in lapsing])).values(lease_until=1.0))

    def make_due(self) -> None:
        """Due at an instant of its own, so that the wake it makes has a name of its own."""
        at = 1000.0 + next(self.names)
        self.set(update(schedules).where(schedules.c.id == SCHEDULE).values(last_due=None, next_due=at))
        self.model.due = True

    def let_time_pass(self) -> None:
        """Whatever was put off is due."""
        for table in (wakes, runs):
            self.set(update(table).where(table.c.not_before > 2.0).values(not_before=1.0))
        for wake in self.model.wakes.values():
            wake.parked = False
        for run in self.model.runs:
            run.parked = False

    def pause_or_go_on(self, agent: Any) -> None:
        self.model.paused ^= {agent}
        state = "paused" if agent in self.model.paused else "active"
        self.set(update(agents).where(agents.c.id == agent).values(state=state))

    def let_go_of_held(self) -> None:
        """A person looks at what waits for one."""
        self.set(update(runs).where(runs.c.state == "queued").values(hold=""))
        for run in self.model.runs:
            run.hold = "" if run.state is RunState.QUEUED else run.hold

    # ------------------------------------------------------------ what always holds

    def check(self) -> None:
        broken = self.servers[0].read(_broken)
        assert not broken, broken
        self._served_once()
        self._within_limits()
        lanes: dict[tuple[str, str], str] = {}
        for row in self.seen.sessions.values():
            assert lanes.setdefault((row["runtime_id"], row["native_id"]), row["lane_id"]) == row["lane_id"]

    def _served_once(self) -> None:
        for name, row in self.seen.wakes.items():
            if row["state"] == WakeState.SERVED.value:
                assert self.served.setdefault(name, row["run_id"]) == row["run_id"]
                run = self.seen.runs[row["run_id"]]
                assert run["state"] == RunState.SUCCEEDED.value or row["code"] == Served.READ_BACK.code
                made = self.model.run(row["run_id"])
                assert made is not None
                assert made.truth(made.attempt) is Evidence.FINISHED, "a wake is served that nobody answered"
            else:
                assert name not in self.served

    def _within_limits(self) -> None:
        live = [row for row in self.seen.runs.values() if row["lease_until"] is not None]
        for agent, (_, most) in AGENTS.items():
            assert sum(row["agent_id"] == agent for row in live) <= most
        for runtime, most in RUNTIMES.items():
            assert sum(row["runtime_id"] == runtime for row in live) <= most
        assert len({row["lane_id"] for row in live}) == len(live)

    def finish_all(self) -> None:
        """Everything is let run to its end: every wake gets one, and every run is final."""
        for agent in list(self.model.paused):
            self.pause_or_go_on(agent)
        for _ in range(10 * len(self.model.wakes) + 10):
            if all(run.ended for run in self.model.runs):
                break
            self.let_time_pass()
            self.let_go_of_held()
            self.let_a_person_decide()
            for by, mine in DAEMONS.items():
                self.do(ops.Claim(by, mine, 4))
            for run in [run for run in self.model.runs if run.live]:
                self._end(run)
        assert all(run.ended for run in self.model.runs)
        ends = {WakeState.SERVED, WakeState.SKIPPED, WakeState.CANCELLED}
        assert {wake.state for wake in self.model.wakes.values()} <= ends
        self.check()
        assert self.servers[0].read(check) == ()

    def _end(self, run: ARun) -> None:
        name = RunId(run.id or "")
        if run.asks:
            self.do(self.asking(run))
            return
        if run.state is RunState.CLAIMED:
            self.do(ops.Say(Report(name, run.attempt, opens=True)))
        if run.state is RunState.OPENING:
            head = EntrySeq(self.model.entries.get(self.model.lanes[run.lane][1], 0))
            prompted = ops.prompted_by(self.model, run, self.name("p"))
            self.do(ops.Say(Report(name, run.attempt, told=head, prompted=prompted)))
        self.do(self.ending(run))

    def ending(self, run: ARun, pin: NewSession | None = None) -> ops.End:
        """How the run ends in truth, and its daemon has asked."""
        truth = run.truth(run.attempt)
        end: End = Completed("done", 1)
        if truth is not Evidence.FINISHED:
            end = ops.failing(FailureKind.CRASHED, heard=truth)
        return ops.End(Finish(RunId(run.id or ""), run.attempt, end, pin))

    def asking(self, run: ARun, tells: bool = True, attempt: int | None = None) -> ops.AskStore:
        """What the store says of all that the run asks for; or that it cannot tell."""
        answers = tuple(
            StoreAnswer(RunId(each.id or ""), ops.said_of(each.truth(each.attempt) if tells else Evidence.UNKNOWN))
            for each in self.model.unheard(run.lane)
        )
        return ops.AskStore(RunId(run.id or ""), run.attempt if attempt is None else attempt, answers)

    def let_a_person_decide(self) -> None:
        for lane in sorted(self.model.lanes):
            asks, run = self.model.asks_next(lane), self.model.open_run(lane)
            if asks is not None and asks.wait is None and run is not None and run.state is RunState.QUEUED:
                (about,) = self.model.unheard(lane)
                self.do(ops.Decide(lane, about.truth(about.attempt) in HELD_BY_AGENT))


def _broken(connection: Connection) -> dict[str, list[str]]:
    asked = {promise.name: list(promise.broken(connection)) for promise in PROMISES if promise.name not in SLOW}
    return {name: rows for name, rows in asked.items() if rows}


def answer_of(database: Database, operation: ops.Operation) -> Any:
    """What a fault says is an answer too."""
    try:
        return database.write(operation.act).result(60)
    except StoreFault as fault:
        return fault.code


def at_once(servers: Sequence[Database], operations: Sequence[ops.Operation]) -> list[Any]:
    """All of them from threads of their own, each on the next server, let go together."""
    gate = threading.Barrier(len(operations))
    answers: list[Future[Any]] = [Future() for _ in operations]

    def act(index: int) -> None:
        try:
            gate.wait(30)
            answers[index].set_result(answer_of(servers[index % len(servers)], operations[index]))
        except BaseException as fault:  # noqa: BLE001 - whoever waits for the answer shall hear of it
            answers[index].set_exception(fault)

    actors = [threading.Thread(target=act, args=(index,)) for index in range(len(operations))]
    for actor in actors:
        actor.start()
    for actor in actors:
        actor.join(120)
    return [answer.result(0) for answer in answers]
