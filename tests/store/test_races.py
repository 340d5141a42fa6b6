"""Any two operations on one lane: the one stands still before each of its statements, while the other comes past it.

Some order of the two must explain what came of it, and they must not end up waiting for one another. There are too
many pairs and points for every run: some are drawn, and CLEW_RACES says how many in each scene.
"""

import os
import random
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from typing import Any

import pytest
from sqlalchemy import URL

from clew.kernel import (
    HELD_BY_AGENT,
    HUMAN,
    Answer,
    ApprovalId,
    EntrySeq,
    Evidence,
    FailureKind,
    NativeId,
    RunId,
    RunOutcome,
    WakeId,
    WakeReason,
)
from clew.protocol.control import Held
from clew.protocol.reports import Asked, Completed, Failed, Finish, Report, Returned, Stopped
from clew.protocol.wakes import Said, WakeRequest
from clew.store.engine.postgres import PostgresDatabase
from clew.store.faults import StoreFault
from tests.store.halting import one_by_one, overtaken, two_servers
from tests.store.kit import PERSON
from tests.store.stateful import operations as ops
from tests.store.stateful.model import ARun
from tests.store.stateful.trying import Trial
from tests.store.stateful.world import BOB, DAEMONS, FAR, NEAR, TIMED

DRAWN = int(os.environ.get("CLEW_RACES", "0")) or (300 if os.environ.get("CLEW_THOROUGH") == "1" else 12)

LANE_AGENT, THREAD = TIMED
ASKED = ApprovalId("ap-1")
MOST_STATEMENTS = 9
"""Few operations have more; one that has fewer has ended when the other comes."""


# ---------------------------------------------------------------- scenes


def a_wake(trial: Trial, isolated: bool = False) -> ops.Operation:
    said = Said(PERSON, "look at this", 3)
    name = WakeId(trial.name("wk"))
    return ops.Accept(WakeRequest(name, LANE_AGENT, WakeReason.COMMENT, HUMAN, THREAD, said, isolated=isolated))


def queued(trial: Trial) -> None:
    trial.do(a_wake(trial))


def claimed(trial: Trial) -> None:
    trial.do(a_wake(trial))
    trial.do(ops.Claim("d3", DAEMONS["d3"], 1))


def claimed_while_more_comes(trial: Trial) -> None:
    claimed(trial)
    trial.do(a_wake(trial))


def running(trial: Trial) -> None:
    claimed(trial)
    run = the_run(trial)
    run.certain = Evidence.FINISHED
    pin = ops.a_session(NativeId("n-1"), LANE_AGENT)
    prompts = ops.prompted_by(trial.model, run, "p-1", pin)
    said = Report(RunId(run.id or ""), run.attempt, opens=True, told=EntrySeq(1), prompted=prompts, pin=pin)
    trial.do(ops.Say(said))


def running_while_more_comes(trial: Trial) -> None:
    running(trial)
    trial.do(a_wake(trial))


def waiting_for_an_answer(trial: Trial) -> None:
    running(trial)
    run = the_run(trial)
    trial.do(ops.Say(Report(RunId(run.id or ""), run.attempt, asks=(Asked(ASKED, "may I?"),))))


def stopping_while_more_comes(trial: Trial) -> None:
    running_while_more_comes(trial)
    trial.do(ops.CancelRun(RunId(the_run(trial).id or ""), RunOutcome.INTERRUPTED))


def lost(trial: Trial) -> None:
    """Nobody knows whether the agent took the prompt; a run waits that will ask."""
    running(trial)
    trial.do(ops.Restart("d3", DAEMONS["d3"]))


def asking(trial: Trial) -> None:
    lost(trial)
    trial.do(ops.Claim("d3", DAEMONS["d3"], 1))
    assert the_run(trial).asks


def asking_while_more_comes(trial: Trial) -> None:
    asking(trial)
    trial.do(a_wake(trial))


def asking_for_what_was_not_taken(trial: Trial) -> None:
    running(trial)
    the_run(trial).certain = Evidence.UNSENT
    trial.do(ops.Restart("d3", DAEMONS["d3"]))
    trial.do(ops.Claim("d3", DAEMONS["d3"], 1))


SCENES = (
    queued,
    claimed,
    claimed_while_more_comes,
    running,
    running_while_more_comes,
    waiting_for_an_answer,
    stopping_while_more_comes,
    lost,
    asking,
    asking_while_more_comes,
    asking_for_what_was_not_taken,
)


def the_run(trial: Trial) -> ARun:
    run = trial.model.open_run(next(lane for lane, (agent, _) in trial.model.lanes.items() if agent == LANE_AGENT))
    assert run is not None
    return run


def operations(trial: Trial) -> dict[str, ops.Operation]:
    """Everything that could happen to the lane now."""
    run = the_run(trial)
    name = RunId(run.id or "")
    held = (Held(name, run.attempt),)
    pin = ops.a_session(NativeId("n-2"), LANE_AGENT)
    could: dict[str, ops.Operation] = {
        "accept": a_wake(trial),
        "accept alone": a_wake(trial, isolated=True),
        "claim": ops.Claim("d2", DAEMONS["d2"], 2),
        "cancel run": ops.CancelRun(name, RunOutcome.BY_USER),
        "interrupt run": ops.CancelRun(name, RunOutcome.INTERRUPTED),
        "reassign": ops.Reassign(THREAD, LANE_AGENT, BOB),
        "restart": ops.Restart("d3", DAEMONS["d3"]),
        "renew": ops.Renew((FAR,), held),
        "tick": ops.TickAll(),
        "expire": ops.Expire(),
        "move": ops.Move(run.lane, NEAR),
        "adopt": ops.Adopt(LANE_AGENT, THREAD, FAR, NativeId("n-3")),
    }
    for wake in sorted(trial.model.wakes)[-2:]:
        could[f"cancel {wake}"] = ops.CancelWake(wake)
    for earlier in trial.model.unheard(run.lane):
        could |= about_lost(earlier)
    if run.asks:
        could |= {
            "give back": ops.End(Finish(name, run.attempt, Returned("not now", "hold:later"))),
            "answer the question": trial.asking(run),
            "cannot answer": trial.asking(run, tells=False),
        }
    elif run.attempt:
        run.certain = run.certain or Evidence.FINISHED
        prompts = ops.prompted_by(trial.model, run, "p-2", pin)
        could |= {
            "report": ops.Say(Report(name, run.attempt, opens=True)),
            "prompt": ops.Say(Report(name, run.attempt, told=EntrySeq(1), prompted=prompts, pin=pin)),
            "ask": ops.Say(Report(name, run.attempt, asks=(Asked(ApprovalId("ap-2"), "and this?"),))),
            "complete": ops.End(Finish(name, run.attempt, Completed("done", 1), pin)),
            "fail": ops.End(Finish(name, run.attempt, ops.failing(FailureKind.TRANSIENT))),
            "give back": ops.End(Finish(name, run.attempt, Returned("not now", "hold:later"))),
            "stopped": ops.End(Finish(name, run.attempt, Stopped("enough"))),
        }
    if trial.model.approvals:
        could["answer"] = ops.AnswerIt(ASKED, Answer.APPROVE)
    return could


def about_lost(run: ARun) -> dict[str, ops.Operation]:
    """What may still be heard of a run that was given up: the truth, late."""
    name, truth = RunId(run.id or ""), run.truth(run.attempt)
    end: Completed | Failed = Completed("done", 1)
    if truth is not Evidence.FINISHED:
        end = ops.failing(FailureKind.CRASHED, heard=truth)
    return {
        "late end": ops.End(Finish(name, run.attempt, end)),
        "late pin": ops.Say(Report(name, run.attempt, pin=ops.a_session(NativeId("n-1"), LANE_AGENT))),
        "decide": ops.Decide(run.lane, truth in HELD_BY_AGENT),
    }


# ---------------------------------------------------------------- racing


@pytest.fixture
def deadlocks(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    return one_by_one(monkeypatch)


@pytest.fixture(scope="module")
def servers(postgres: URL) -> Iterator[list[PostgresDatabase]]:
    with two_servers(postgres) as opened:
        yield opened


def _said(answer: "Future[Any]") -> Any:
    try:
        return answer.result(60)
    except StoreFault as fault:
        return fault.code


def race(trial: Trial, first: ops.Operation, second: ops.Operation, at: int) -> None:
    """The second passes while the first stands still before that statement."""
    answers = overtaken(trial.servers, first.act, second.act, at)
    trial.explain((first, second), [_said(each) for each in answers])


def set_up(servers: list[PostgresDatabase], scene: Callable[[Trial], None], names: tuple[str, str]) -> Trial:
    trial = Trial(servers)
    scene(trial)
    if "expire" in names and the_run(trial).live:
        trial.let_lapse([the_run(trial)])
    if "tick" in names:
        trial.make_due()
    return trial


@pytest.mark.case("C35", "L03", "P19", "R01", "W07")
@pytest.mark.parametrize("scene", SCENES, ids=lambda scene: str(scene.__name__))
def test_any_two_that_meet_have_an_order(
    servers: list[PostgresDatabase], deadlocks: list[str], scene: Callable[[Trial], None]
) -> None:
    trial = Trial(servers)
    scene(trial)
    names = list(operations(trial))
    chance = random.Random(scene.__name__ if os.environ.get("CI") else None)
    for _ in range(DRAWN):
        first, second = chance.choices(names, k=2)
        at = chance.randint(1, MOST_STATEMENTS)
        trial = set_up(servers, scene, (first, second))
        could = operations(trial)
        race(trial, could[first], could[second], at)
        trial.check()
        assert not deadlocks, f"{first}, before its statement {at}, and {second} waited for one another"
    trial.finish_all()
