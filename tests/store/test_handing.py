"""A wake that comes while a daemon waits for it is claimed as it is accepted, and handed over; or nothing is lost."""

import threading
from concurrent.futures import Future
from functools import partial
from typing import Any

import psycopg
import pytest

from clew.kernel import ThreadId, WakeId, WakeState
from clew.protocol.orders import ClaimRequest
from clew.protocol.wakes import Accepted, WakeRequest
from clew.store import claim as claiming
from clew.store.accept import Accepting, accept_wake
from clew.store.agents import change_agent
from clew.store.moving import move_lane
from clew.store.reading.names import agent_named
from clew.store.standing import Orders, Standby, Waiting
from clew.store.statement import POSTGRESQL
from clew.store.tables import agents, runs, threads
from clew.store.wire import Wire
from tests.store.kit import ADA, BOB, ELSEWHERE, LANE, RUNTIME, THREAD, Daemon, bodies
from tests.store.kit import request as a_wake
from tests.store.test_together import left_by

HERE = ClaimRequest("daemon-1", (RUNTIME,), 4)
on_postgresql = pytest.mark.parametrize("address", [POSTGRESQL], indirect=True)


@pytest.fixture(autouse=True)
def known(request: pytest.FixtureRequest) -> None:
    """Where their agents work is known from what they did before."""
    if "daemon" not in request.fixturenames:
        return
    daemon: Daemon = request.getfixturevalue("daemon")
    daemon.make_room()
    for agent in (ADA, BOB):
        daemon.accept(agent=agent)
        daemon.serve(f"n-{agent}")


def asked_in(daemon: Daemon, name: str, **changes: Any) -> WakeRequest:
    daemon.add(threads, id=name, kind="issue", created_at=0.0)
    return a_wake(thread=ThreadId(name), **changes)


def accept(daemon: Daemon, asked: WakeRequest) -> Accepted:
    return daemon.database.do(Accepting(asked))


def answered(daemon: Daemon, standby: Standby) -> Orders:
    return daemon.database.withdraw(standby).result(30)


def handed(daemon: Daemon, asked: WakeRequest) -> tuple[Accepted, Orders]:
    """What becomes of it while a daemon waits."""
    standby = daemon.database.stand_by(HERE)
    return accept(daemon, asked), answered(daemon, standby)


@on_postgresql
@pytest.mark.case("W01", "R01")
def test_what_is_handed_over_is_what_would_have_been_claimed(daemon: Daemon) -> None:
    asked, other = asked_in(daemon, "t-1"), asked_in(daemon, "t-2")
    said, (order,) = handed(daemon, asked)
    told = daemon.write(partial(accept_wake, request=other))
    (claimed,) = daemon.claim()
    assert (said.state, said.entry, said.code, said.words) == (told.state, told.entry, told.code, told.words)
    assert [wake.id for wake in order.wakes] == [asked.id]
    assert (order.attempt, order.plan.outcome, order.plan.reason) == (1, claimed.plan.outcome, claimed.plan.reason)
    assert bodies(order) == bodies(claimed)
    assert left_by(daemon, "t-1") == left_by(daemon, "t-2")
    daemon.prompt(order, "n-1")
    assert daemon.finish(order).taken
    assert daemon.wake(asked.id).state == "served"


@on_postgresql
def test_a_session_is_gone_on_with(daemon: Daemon) -> None:
    said, (order,) = handed(daemon, a_wake())
    assert said.state is WakeState.PENDING
    assert order.plan.native_id == f"n-{ADA}"


@on_postgresql
def test_nobody_is_told_of_a_run_that_was_handed_over_as_if_it_waited(daemon: Daemon) -> None:
    hints = daemon.database.subscribe()
    _, (order,) = handed(daemon, a_wake())
    heard = hints.wait(5) | hints.wait(0.2)
    assert f"thread:{THREAD}" in heard
    assert f"run:{order.run}" in heard
    assert not any(topic.startswith("queue:") for topic in heard)


@on_postgresql
def test_each_that_waits_is_handed_one(daemon: Daemon) -> None:
    waiting = [daemon.database.stand_by(HERE) for _ in range(2)]
    asked = [asked_in(daemon, f"t-{number}") for number in range(3)]
    for each in asked:
        accept(daemon, each)
    got = [wake.id for each in waiting for order in answered(daemon, each) for wake in order.wakes]
    assert got == [each.id for each in asked[:2]]
    assert [wake.id for order in daemon.claim(most=5) for wake in order.wakes] == [asked[2].id]


@on_postgresql
def test_the_head_of_the_queue_is_handed_over_and_not_the_last_who_came(daemon: Daemon) -> None:
    first = daemon.write(partial(accept_wake, request=asked_in(daemon, "t-1", priority=1)))
    said, (order,) = handed(daemon, asked_in(daemon, "t-2"))
    assert [wake.id for wake in order.wakes] == [first.wake]
    (left,) = daemon.claim(most=5)
    assert [wake.id for wake in left.wakes] == [said.wake]


def paused(daemon: Daemon) -> None:
    daemon.put(agents, {"id": ADA}, state="paused")


def busy(daemon: Daemon) -> None:
    daemon.say("do it")
    daemon.prompt(daemon.claim_one(), "n-2")


def full(daemon: Daemon) -> None:
    daemon.put(agents, {"id": ADA}, max_live=0)


def moved(daemon: Daemon) -> None:
    daemon.write(lambda connection: move_lane(connection, LANE, ELSEWHERE, "to have it there"))


def moved_with_its_agent(daemon: Daemon) -> None:
    daemon.write(lambda connection: change_agent(connection, agent_named(connection, ADA), {"runtime_id": ELSEWHERE}))


@on_postgresql
@pytest.mark.parametrize("before", [paused, busy, full, moved, moved_with_its_agent])
def test_what_cannot_be_claimed_here_is_accepted_and_waits(daemon: Daemon, before: Any) -> None:
    before(daemon)
    hints = daemon.database.subscribe()
    said, orders = handed(daemon, a_wake())
    assert orders == ()
    assert daemon.wake(said.wake).state == said.state.value
    if before in (full, moved, moved_with_its_agent):
        (run,) = daemon.rows(runs, state="queued")
        assert f"queue:{run.runtime_id}" in hints.wait(5)
    # It was learnt from: a daemon of the new place is handed the next.
    if before is moved_with_its_agent:
        standby = daemon.database.stand_by(ClaimRequest("daemon-2", (ELSEWHERE,), 4))
        next_one = accept(daemon, asked_in(daemon, "t-1"))
        got = {wake.id for order in answered(daemon, standby) for wake in order.wakes}
        assert got <= {said.wake, next_one.wake}
        assert got


@on_postgresql
def test_a_claim_that_fails_takes_no_wake_along(daemon: Daemon, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*_: object) -> Any:
        raise psycopg.OperationalError("no answer")

    standby = daemon.database.stand_by(HERE)
    with monkeypatch.context() as patch:
        patch.setattr(claiming, "take", fails)
        said = accept(daemon, a_wake())
    assert answered(daemon, standby) == ()
    assert [wake.id for wake in daemon.claim_one().wakes] == [said.wake]


@on_postgresql
@pytest.mark.case("W03")
def test_an_answer_that_is_lost_with_the_connection_is_one_wake_and_its_run_comes_back(
    daemon: Daemon, monkeypatch: pytest.MonkeyPatch
) -> None:
    commits, asked = Wire.commit, a_wake()
    lost: list[Wire] = []

    def commit(wire: Wire) -> None:
        commits(wire)
        if not lost:
            lost.append(wire)
            raise psycopg.OperationalError("the connection was lost")

    standby = daemon.database.stand_by(HERE)
    with monkeypatch.context() as patch:
        patch.setattr(Wire, "commit", commit)
        said = accept(daemon, asked)
    # It was committed, and nobody was told: as with any claim whose answer is lost, its lease brings it back.
    assert answered(daemon, standby) == ()
    assert (said.wake, said.repeated, daemon.wake(asked.id).state) == (asked.id, True, "claimed")
    (run,) = daemon.rows(runs, state="claimed")
    assert run.claimed_by == HERE.by


@pytest.mark.case("W01")
def test_who_waits_no_more_is_handed_nothing(daemon: Daemon) -> None:
    standby = daemon.database.stand_by(HERE)
    assert answered(daemon, standby) == ()
    said = accept(daemon, a_wake())
    assert [wake.id for wake in daemon.claim_one().wakes] == [said.wake]
    assert answered(daemon, standby) == ()


def test_many_wakes_for_many_daemons_that_wait_are_each_claimed_once(daemon: Daemon) -> None:
    asked = [asked_in(daemon, f"t-{number}", agent=(ADA, BOB)[number % 2]) for number in range(40)]
    got: list[WakeId] = []
    done = threading.Event()

    def works() -> None:
        while not done.is_set():
            orders: Orders = daemon.claim(most=2)
            if not orders:
                standby = daemon.database.stand_by(HERE)
                done.wait(0.005)
                orders = answered(daemon, standby)
            got.extend(wake.id for order in orders for wake in order.wakes)

    workers = [threading.Thread(target=works) for _ in range(4)]
    for worker in workers:
        worker.start()
    for each in asked:
        accept(daemon, each)
        done.wait(0.002)
    for _ in range(500):
        if len(got) >= len(asked):
            break
        done.wait(0.02)
    done.set()
    for worker in workers:
        worker.join()
    assert sorted(got) == sorted(each.id for each in asked)


def test_it_is_answered_once_whatever_happens() -> None:
    waiting = Waiting()
    waiting.learn(ADA, RUNTIME)
    standby = waiting.stand_by(HERE)
    taken = waiting.take(ADA)
    assert taken == (standby, RUNTIME)
    assert waiting.take(ADA) is None
    answer: Future[Orders] = waiting.withdraw(standby)
    # Whoever took it has not said anything yet; nobody can call that off.
    assert not answer.done()
    assert not answer.cancel()
    standby.orders.set_result(())
    assert waiting.withdraw(standby).result(0) == ()


def test_only_who_waits_for_that_runtime_is_taken() -> None:
    waiting = Waiting()
    waiting.stand_by(ClaimRequest("daemon-2", (ELSEWHERE,), 1))
    assert waiting.take(ADA) is None
    waiting.learn(ADA, RUNTIME)
    assert waiting.take(ADA) is None
