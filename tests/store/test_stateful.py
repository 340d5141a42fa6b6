"""The store against a model of it: whatever comes, in whatever order, and several things at the same moment.

Every operation has an answer that the model allows, and leaves the database as the model says. Operations that come
together have some order in which the model allows all of their answers. CLEW_STATEFUL says how many examples are tried.
"""

import os
import random
import uuid
from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, note, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule, run_state_machine_as_test
from sqlalchemy import URL, Engine, create_engine
from sqlalchemy.pool import NullPool

from clew.kernel import Answer, RunState
from clew.protocol.reports import Report
from clew.store.engine.database import Database
from clew.store.engine.open import open_database
from clew.store.schema.version import upgrade
from tests.store.conftest import DATABASES
from tests.store.stateful import operations as ops
from tests.store.stateful.drawing import Drawing
from tests.store.stateful.observed import untouched
from tests.store.stateful.trying import Trial
from tests.store.stateful.world import AGENTS

EXAMPLES = int(os.environ.get("CLEW_STATEFUL", "0")) or (400 if os.environ.get("CLEW_THOROUGH") == "1" else 12)
STEPS = 30
PHASES = [phase for phase in Phase if phase is not Phase.shrink or os.environ.get("CLEW_SHRINK") == "1"]
"""To find a smaller example takes minutes, and what depends on the moment has none: CLEW_SHRINK=1 asks for it."""

# One number for all that a step draws: what is there to be chosen from depends on what came of the last moment, and
# an example must stay an example whatever came of it.
CHANCES = st.integers(0, 2**32 - 1)


@pytest.fixture(scope="module", params=DATABASES)
def servers(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[Database]]:
    """One server on a SQLite file, or three on one PostgreSQL; each example finds it furnished anew."""
    with ExitStack() as ends:
        if request.param == "sqlite":
            address, number = str(tmp_path_factory.mktemp("stateful") / "clew.db"), 1
        else:
            url: URL = request.getfixturevalue("postgres")
            name, number = f"clew_{uuid.uuid4().hex}", 3
            admin = create_engine(url, isolation_level="AUTOCOMMIT", poolclass=NullPool)
            with admin.connect() as connection:
                connection.exec_driver_sql(f"CREATE DATABASE {name}")
            ends.callback(_drop, admin, name)
            address = url.set(database=name).render_as_string(hide_password=False)
        opened = [open_database(address) for _ in range(number)]
        for database in opened:
            ends.callback(database.close)
        opened[0].write(upgrade).result(60)
        yield opened


def _drop(admin: Engine, name: str) -> None:
    with admin.connect() as connection:
        connection.exec_driver_sql(f"DROP DATABASE {name} WITH (FORCE)")


class Store(RuleBasedStateMachine):
    def __init__(self, servers: list[Database]) -> None:
        super().__init__()
        self.trial = Trial(servers)

    def do(self, operation: ops.Operation) -> Any:
        answer = self.trial.do(operation)
        note(f"{operation} -> {answer}")
        return answer

    def draw(self, chance: int) -> Drawing:
        return Drawing(self.trial, random.Random(chance))

    # ------------------------------------------------------------ one thing at a time

    @initialize(chance=CHANCES)
    def one_wake_waits(self, chance: int) -> None:
        self.trial.model.salt = chance
        self.do(self.draw(chance).accept())

    @rule(chance=CHANCES)
    def accept(self, chance: int) -> None:
        self.do(self.draw(chance).accept())

    @rule(chance=CHANCES, goes_on=st.integers(0, 7))
    def claim(self, chance: int, goes_on: int) -> None:
        """The claim, and at once what often follows it, so that the later states are reached often."""
        draw = self.draw(chance)
        for order in self.do(draw.claim()):
            run = self.trial.model.run(order.run)
            assert run is not None
            if order.questions:
                if goes_on > 1:
                    self.do(draw.ask_store(run))
                continue
            if goes_on > 1:
                self.do(ops.Say(Report(order.run, order.attempt, opens=True, pin=draw.pin(run))))
            if goes_on > 2:
                pin = draw.pin(run)
                self.do(ops.Say(Report(order.run, order.attempt, pin=pin, **draw.prompting(run, pin))))
            if goes_on > 6:
                # Whoever had it in hand is gone, at the moment that matters.
                self.trial.let_lapse([run])
                self.do(ops.Expire())

    @rule(chance=CHANCES)
    def report(self, chance: int) -> None:
        draw = self.draw(chance)
        if draw.live:
            self.do(draw.report(draw.chance.choice(draw.live)))

    @rule(chance=CHANCES)
    def report_late(self, chance: int) -> None:
        draw = self.draw(chance)
        if draw.claimed_once:
            self.do(draw.report(draw.chance.choice(draw.claimed_once)))

    @rule(chance=CHANCES)
    def finish(self, chance: int) -> None:
        draw = self.draw(chance)
        if draw.live:
            self.do(draw.end(draw.chance.choice(draw.live)))

    @rule(chance=CHANCES)
    def complete(self, chance: int) -> None:
        draw = self.draw(chance)
        if goes := draw.runs(RunState.RUNNING, RunState.WAITING):
            self.do(draw.complete(draw.chance.choice(goes)))

    @rule(chance=CHANCES)
    def a_turn_is_lost_and_asked_for(self, chance: int) -> None:
        """One that goes is lost; where none does, one is begun for it."""
        draw = self.draw(chance)
        if not draw.runs(RunState.RUNNING, RunState.WAITING):
            self.claim(chance, goes_on=3)
        for lost in draw.runs(RunState.RUNNING, RunState.WAITING)[:1]:
            self.trial.let_lapse([lost])
            self.do(ops.Expire())
            self.trial.let_time_pass()
            for order in self.do(draw.claim(lost.runtime)):
                run = self.trial.model.run(order.run)
                if order.questions and run is not None:
                    self.do(draw.ask_store(run))

    @rule(chance=CHANCES)
    def the_store_is_asked(self, chance: int) -> None:
        draw = self.draw(chance)
        if asks := [run for run in draw.live if run.asks]:
            self.do(draw.ask_store(draw.chance.choice(asks)))

    @rule(chance=CHANCES)
    def a_person_decides(self, chance: int) -> None:
        decides = self.draw(chance).decide()
        if decides is not None:
            self.do(decides)

    @rule(chance=CHANCES)
    def cancel(self, chance: int) -> None:
        draw = self.draw(chance)
        if self.trial.model.runs:
            self.do(draw.cancel(draw.chance.choice(self.trial.model.runs)))

    @rule(chance=CHANCES)
    def cancel_a_wake(self, chance: int) -> None:
        self.do(ops.CancelWake(self.draw(chance).chance.choice(sorted(self.trial.model.wakes))))

    @rule(chance=CHANCES)
    def reassign(self, chance: int) -> None:
        self.do(self.draw(chance).reassign())

    @rule(chance=CHANCES)
    def leases_lapse(self, chance: int) -> None:
        draw = self.draw(chance)
        self.trial.let_lapse([run for run in draw.live if draw.yes()])
        self.do(ops.Expire())

    @rule(chance=CHANCES)
    def daemon_restarts(self, chance: int) -> None:
        self.do(self.draw(chance).restart())

    @rule(chance=CHANCES)
    def renew(self, chance: int) -> None:
        self.do(self.draw(chance).renew())

    @rule()
    def tick(self) -> None:
        self.trial.make_due()
        self.do(ops.TickAll())

    @rule()
    def time_passes(self) -> None:
        self.trial.let_time_pass()

    @rule(agent=st.sampled_from(list(AGENTS)))
    def an_agent_is_paused_or_goes_on(self, agent: Any) -> None:
        self.trial.pause_or_go_on(agent)

    @rule(chance=CHANCES, given=st.sampled_from(list(Answer)))
    def answer(self, chance: int, given: Answer) -> None:
        if self.trial.model.approvals:
            asked = self.draw(chance).chance.choice(sorted(self.trial.model.approvals))
            self.do(ops.AnswerIt(asked, given))

    @rule(chance=CHANCES)
    def move(self, chance: int) -> None:
        self.do(self.draw(chance).move())

    @rule(chance=CHANCES)
    def adopt(self, chance: int) -> None:
        self.do(self.draw(chance).adopt())

    # ------------------------------------------------------------ again, and together

    @rule(chance=CHANCES)
    def anything_is_told_again(self, chance: int) -> None:
        self.do(self.draw(chance).chance.choice(self.trial.done))

    @rule()
    def the_last_is_told_again(self) -> None:
        """Its answer was lost. Nothing has changed since but a lease."""
        last, before = self.trial.last, self.trial.seen
        if last is not None and not isinstance(last, (ops.Claim, ops.CancelRun, ops.Restart, ops.Decide)):
            self.do(last)
            untouched(before, self.trial.seen)

    @rule(chance=CHANCES)
    def much_happens_to_one_lane(self, chance: int) -> None:
        draw = self.draw(chance)
        there = self.trial.model.runs
        if there:
            run = draw.chance.choice([run for run in there if not run.ended] or there)
            if run.live and draw.yes():
                self.trial.let_lapse([run])
            self.do_together(draw.about(run))

    @rule(chance=CHANCES)
    def much_happens_at_once(self, chance: int) -> None:
        draw = self.draw(chance)
        if draw.yes():
            self.trial.make_due()
        self.do_together(draw.anywhere())

    def do_together(self, operations: list[ops.Operation]) -> None:
        answers = self.trial.do_together(operations)
        note("\n".join(f"{each} -> {answer}" for each, answer in zip(operations, answers, strict=True)))

    # ------------------------------------------------------------ what always holds

    @invariant()
    def every_promise_holds(self) -> None:
        self.trial.check()

    def teardown(self) -> None:
        if not self.trial.failed:
            self.trial.finish_all()


@pytest.mark.case("C35", "L01", "L02", "L03", "P19", "P20", "P21", "R01", "R03", "R05", "S03", "W04", "W07", "W08")
def test_the_store_does_what_the_model_says(servers: list[Database]) -> None:
    run_state_machine_as_test(
        lambda: Store(servers),  # type: ignore[arg-type]  # it is only ever called
        settings=settings(
            max_examples=EXAMPLES,
            stateful_step_count=STEPS,
            suppress_health_check=list(HealthCheck),
            phases=PHASES,
            report_multiple_bugs=False,
        ),
    )
