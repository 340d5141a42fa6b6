"""The claim: a queued run is handed out once, decided, with everything that its agent must be told."""

import uuid
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import pytest

from clew.kernel import (
    Freshness,
    Outcome,
    PermissionMode,
    RouteKey,
    RouteKind,
    ThreadId,
    WakeReason,
)
from clew.protocol.orders import Order
from clew.protocol.reports import Completed
from clew.store.engine.database import Database
from clew.store.engine.dialect import read_clock
from clew.store.engine.open import open_database
from clew.store.schema.check import check
from clew.store.schema.tables import (
    agents,
    lanes,
    runs,
    runtimes,
    threads,
    wakes,
)
from clew.store.schema.version import upgrade
from tests.store.kit import (
    ADA,
    BOB,
    LANE,
    OTHER_LANE,
    OTHER_THREAD,
    RUNTIME,
    THREAD,
    TRANSIENT,
    Daemon,
    bodies,
    furnish,
    in_project,
    numbers,
)


def claimed_by(daemon: Daemon, order: Order) -> list[str]:
    """The wakes that a run carries, in the order they came."""
    assert [wake.id for wake in order.wakes] == [row.id for row in daemon.rows(wakes, "accepted_at", run_id=order.run)]
    return [row.state for row in daemon.rows(wakes, run_id=order.run)]


# ---------------------------------------------------------------- what is carried and told


def test_an_order_holds_all_that_is_needed_to_serve_it(daemon: Daemon) -> None:
    route = RouteKey(RouteKind.WEBHOOK, "https://example.invalid/")
    accepted = daemon.say("look", route=route)
    order = daemon.claim_one()
    assert (order.lane, order.thread.id, order.agent.id, order.runtime) == (LANE, THREAD, ADA, RUNTIME)
    assert (order.attempt, order.route) == (1, route)
    assert [wake.id for wake in order.wakes] == [accepted.wake]
    assert bodies(order) == ["look"]
    assert order.plan.workspace is not None
    assert order.plan.workspace.directory.path == "/srv/ada"
    run, wake = daemon.run(order.run), daemon.wake(accepted.wake)
    assert (run.state, run.attempt, run.claimed_by, run.session_id) == ("claimed", 1, "daemon-1", order.session)
    assert run.lease_until == order.lease_until
    assert (wake.state, wake.run_id, wake.code) == ("claimed", order.run, "carried:by-run")
    assert wake.words == f"Taken by run {order.run}."


@pytest.mark.parametrize("chooses", [True, False])
def test_a_new_session_gets_an_id_where_its_agent_takes_one(daemon: Daemon, chooses: bool) -> None:
    daemon.put_capability("choose_id", chooses)
    daemon.say("one")
    given = daemon.claim_one().plan.native_id
    assert (given is not None) is chooses
    assert given is None or str(uuid.UUID(given)) == given


@pytest.mark.case("W01")
def test_what_is_said_during_a_run_is_carried_by_one_run_after_it_in_order(daemon: Daemon) -> None:
    daemon.say("zero")
    first = daemon.claim_one()
    daemon.prompt(first, "n-1")
    for text_ in ("one", "two", "three"):
        assert daemon.say(text_).code == "accepted:queued"
    assert daemon.claim() == ()
    daemon.finish(first)
    (second,) = daemon.claim(most=10)
    assert second.run != first.run
    assert [wake.entries for wake in second.wakes] == [(2,), (3,), (4,)]
    # The reply came after the three; the agent was told none of them yet.
    assert bodies(second) == ["one", "two", "three", "done"]
    assert claimed_by(daemon, second) == ["claimed"] * 3
    daemon.prompt(second)
    daemon.finish(second)
    assert {row.state for row in daemon.rows(wakes)} == {"served"}
    assert daemon.claim() == ()


@pytest.mark.case("W02")
@pytest.mark.parametrize("at", [0, 1, 2])
def test_one_wake_that_demands_a_fresh_start_makes_the_whole_run_fresh(daemon: Daemon, at: int) -> None:
    daemon.say("zero")
    daemon.serve("n-1")
    kinds = [Freshness.FRESH if at == number else Freshness.FOLLOW_POLICY for number in range(3)]
    for kind in kinds:
        daemon.accept(freshness=kind)
    order = daemon.claim_one()
    assert (order.plan.outcome, order.plan.reason.code) == (Outcome.BLANK, "reset:demanded")
    assert order.plan.words == "New conversation, as asked for."
    assert len(order.wakes) == 3


@pytest.mark.case("C31", "X01")
def test_the_run_after_another_resumes_its_session_and_is_told_only_what_is_new(daemon: Daemon) -> None:
    daemon.say("one")
    first = daemon.serve("n-1")
    daemon.say("two")
    second = daemon.claim_one()
    assert (second.plan.outcome, second.plan.reason.code) == (Outcome.RESUME, "session:fits")
    assert (second.session, second.plan.native_id) == (first.session, "n-1")
    assert bodies(second) == ["two"]
    daemon.prompt(second)
    # Said while it works: it is not told before its next turn.
    daemon.say("three")
    daemon.finish(second, Completed("answer to two"))
    third = daemon.claim_one()
    assert third.session == first.session
    assert bodies(third) == ["three", "answer to two"]


@pytest.mark.case("X01")
def test_what_others_said_meanwhile_is_told_too(daemon: Daemon) -> None:
    daemon.say("to ada")
    daemon.serve("n-ada")
    daemon.say("to bob", agent=BOB)
    assert bodies(daemon.serve("n-bob")) == ["to ada", "done", "to bob"]
    daemon.say("to ada again")
    order = daemon.claim_one()
    assert order.agent.id == ADA
    assert numbers(order) == [3, 4, 5]
    assert [entry.facts.author.agent for entry in order.entries] == [None, BOB, None]
    assert order.plan.act_on == (5,)


@pytest.mark.case("L02")
def test_what_was_accepted_before_a_crash_is_handed_out_once_after_it(address: str) -> None:
    with opened(address) as database:
        database.write(upgrade).result(30)
        database.write(furnish).result(30)
        accepted = Daemon(database).say("remember me")
    with opened(address) as database:
        restarted = Daemon(database)
        order = restarted.claim_one()
        assert [wake.id for wake in order.wakes] == [accepted.wake]
        assert bodies(order) == ["remember me"]
        assert restarted.claim(most=10) == ()
        assert database.read(check) == ()


def test_the_runs_of_a_paused_agent_wait_until_it_goes_on(daemon: Daemon) -> None:
    daemon.accept()
    daemon.put(agents, {"id": ADA}, state="paused")
    assert daemon.claim() == ()
    daemon.put(agents, {"id": ADA}, state="active")
    assert len(daemon.claim()) == 1


# ---------------------------------------------------------------- where it works


def test_a_lane_of_a_project_gets_a_workspace_of_its_own_and_keeps_it(daemon: Daemon) -> None:
    in_project(daemon)
    daemon.accept()
    daemon.accept(agent=BOB)
    mine, bobs = daemon.serve("n-1"), daemon.serve("n-2")
    places = [order.plan.workspace.directory.path for order in (mine, bobs) if order.plan.workspace is not None]
    assert places == ["/srv/work/maze/issue-ada", "/srv/work/maze/issue-bob"]
    assert daemon.lane().workspace_id == mine.plan.workspace.id  # type: ignore[union-attr]
    daemon.accept()
    assert daemon.claim_one().plan.place.reason.code == "place:remembered"


@pytest.mark.case("D02")
def test_a_lane_that_forgot_its_place_gets_the_projects_workspace_back(daemon: Daemon) -> None:
    in_project(daemon)
    daemon.accept()
    first = daemon.serve("n-1")
    daemon.put(lanes, {"id": LANE}, workspace_id=None)
    daemon.accept(reason=WakeReason.TIMER)
    order = daemon.claim_one()
    assert order.plan.workspace == first.plan.workspace
    assert order.plan.place.reason.code == "place:recovered"
    assert daemon.lane().workspace_id == first.plan.workspace.id  # type: ignore[union-attr]


@pytest.mark.case("A02")
@pytest.mark.parametrize(
    ("limit", "mode"), [(None, PermissionMode.FULL), ("edit", PermissionMode.EDIT), ("all", PermissionMode.READ)]
)
def test_a_limit_with_an_unknown_name_is_the_strictest(daemon: Daemon, limit: str | None, mode: PermissionMode) -> None:
    daemon.put(agents, {"id": ADA}, mode="full")
    daemon.put(threads, {"id": THREAD}, mode_limit=limit)
    daemon.accept()
    assert daemon.claim_one().plan.mode is mode


def test_a_workspace_that_cannot_be_made_holds_the_run_for_a_person(daemon: Daemon) -> None:
    in_project(daemon, machine="server")
    daemon.accept()
    daemon.accept(thread=OTHER_THREAD)
    assert daemon.claim_one().lane == OTHER_LANE
    (run,) = daemon.rows(runs, state="queued")
    assert (run.lane_id, run.hold, run.hold_code) == (LANE, "person", "place:cannot-make")
    assert run.words.endswith("its source is a directory on machine server.")


def test_a_run_that_has_no_wake_is_put_off_and_stands_before_no_other(daemon: Daemon) -> None:
    daemon.accept()
    daemon.accept(agent=BOB, priority=-1)
    daemon.put(wakes, {"lane_id": LANE}, state="cancelled", ended_at=1.0)
    assert daemon.claim_one().agent.id == BOB
    (run,) = daemon.rows(runs, lane_id=LANE)
    assert run.not_before > daemon.database.read(read_clock)
    daemon.put(wakes, {"lane_id": LANE}, state="pending", ended_at=None)


# ---------------------------------------------------------------- who goes first, and how many


@pytest.mark.case("R12")
def test_what_waits_gains_rank_until_it_goes_before_urgent_work(daemon: Daemon) -> None:
    daemon.accept(priority=0)
    daemon.accept(thread=OTHER_THREAD, priority=2)
    (low,) = daemon.rows(runs, lane_id=LANE)
    (high,) = daemon.rows(runs, lane_id=OTHER_LANE)
    assert (low.queued_at - low.rank, high.queued_at - high.rank) == (0, 600)
    assert daemon.claim_one().lane == OTHER_LANE
    # Ten minutes are worth two steps of priority: what has waited for eleven goes before what is new.
    daemon.put(runs, {"id": low.id}, rank=low.rank - 660)
    daemon.accept(agent=BOB, thread=OTHER_THREAD, priority=2)
    daemon.put(agents, max_live=2)
    assert daemon.claim_one().lane == LANE


@pytest.mark.case("R12")
def test_what_comes_back_keeps_the_rank_of_the_first_wake_it_is_for(daemon: Daemon) -> None:
    daemon.accept()
    order = daemon.serve("n-1", TRANSIENT)
    (wake,) = daemon.rows(wakes)
    (again,) = daemon.rows(runs, state="queued")
    assert again.id != order.run
    assert again.rank == pytest.approx(wake.accepted_at)
    assert again.queued_at > again.rank


def test_an_agent_that_is_full_does_not_stand_before_the_others(daemon: Daemon) -> None:
    threads_ = [ThreadId(f"t-{number}") for number in range(5)]
    for thread in threads_:
        daemon.add(threads, id=thread, kind="issue", created_at=0.0)
        daemon.accept(thread=thread)
    daemon.accept(agent=BOB)
    orders = daemon.claim(most=2)
    assert [order.agent.id for order in orders] == [ADA, BOB]
    assert daemon.claim(most=2) == ()


@pytest.mark.case("R01")
def test_many_daemons_that_claim_at_once_get_every_run_once_and_keep_to_the_limits(daemon: Daemon) -> None:
    many_lanes(daemon, agents_=4, threads_=5, agent_limit=2, runtime_limit=5)
    with ThreadPoolExecutor(8) as pool:
        claims = list(pool.map(lambda number: Daemon(daemon.database, by=f"d-{number}").claim(most=2), range(16)))
    orders = [order for each in claims for order in each]
    assert len({order.run for order in orders}) == len(orders) == 5
    assert len(daemon.rows(runs, state="claimed")) == 5
    live = [row.agent_id for row in daemon.rows(runs, state="claimed")]
    assert max(live.count(agent) for agent in live) <= 2


@pytest.mark.case("R01", "W07")
def test_many_daemons_serve_a_queue_to_its_end_and_every_wake_once(daemon: Daemon) -> None:
    many_lanes(daemon, agents_=4, threads_=4, agent_limit=2, runtime_limit=3)
    over: list[str] = []

    def work(number: int) -> list[Order]:
        mine = Daemon(daemon.database, by=f"d-{number}")
        served: list[Order] = []
        while daemon.rows(runs, ended_at=None):
            for order in mine.claim():
                over.extend(too_many(daemon, agent=2, runtime=3))
                mine.prompt(order, f"n-{order.lane}")
                mine.finish(order)
                served.append(order)
        return served

    with ThreadPoolExecutor(6) as pool:
        served = [order for each in pool.map(work, range(6)) for order in each]
    assert over == []
    assert len({order.lane for order in served}) == len(served) == 16
    assert {row.state for row in daemon.rows(wakes)} == {"served"}


def many_lanes(daemon: Daemon, agents_: int, threads_: int, agent_limit: int, runtime_limit: int) -> None:
    daemon.put(runtimes, {"id": RUNTIME}, max_live=runtime_limit)
    for number in range(agents_):
        home = {"provider": "loom", "runtime_id": RUNTIME, "home": "/srv/home", "max_live": agent_limit}
        daemon.add(agents, id=f"a-{number}", name=f"a-{number}", **home)
    for number in range(threads_):
        daemon.add(threads, id=f"t-{number}", kind="issue", created_at=0.0)
        for agent in range(agents_):
            daemon.accept(agent=f"a-{agent}", thread=f"t-{number}")


def too_many(daemon: Daemon, agent: int, runtime: int) -> list[str]:
    live = [row for row in daemon.rows(runs) if row.lease_until is not None]
    by_agent = [row.agent_id for row in live]
    by_lane = [row.lane_id for row in live]
    over = [each for each in set(by_agent) if by_agent.count(each) > agent]
    over += [each for each in set(by_lane) if by_lane.count(each) > 1]
    return over + ([f"{len(live)} on the runtime"] if len(live) > runtime else [])


# ---------------------------------------------------------------- what these tests share


@contextmanager
def opened(address: str) -> Iterator[Database]:
    database = open_database(address)
    try:
        yield database
    finally:
        database.close()
