"""Schedules: a due one makes one wake or one receipt, however many servers tick and however long none did."""

import json
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from threading import Barrier
from typing import Any

import pytest

from clew.kernel import Origin, OriginKind, RouteKey, RouteKind, RunScope, TickVerdict, WakeReason
from clew.store.engine.dialect import read_clock
from clew.store.engine.open import open_database
from clew.store.operations.schedules import Ticked, tick_due
from clew.store.schema.tables import agents, lanes, runs, schedules, wakes
from tests.store.kit import ADA, BOB, BOBS_LANE, LANE, THREAD, Daemon

ROUTE = json.dumps(["channel", "ops"])


def now(daemon: Daemon) -> float:
    return daemon.database.read(read_clock)


def schedule(daemon: Daemon, name: str = "sc-1", ago: float = 1.0, lane: str = LANE, **values: Any) -> None:
    """A heartbeat of a minute that was due `ago` seconds ago, for a route of its own."""
    agent = ADA if lane == LANE else BOB
    if not daemon.rows(lanes, id=lane):
        daemon.add(lanes, id=lane, agent_id=agent, thread_id=THREAD)
    plain = {"every": 60.0, "route": ROUTE, "next_due": now(daemon) - ago}
    daemon.add(schedules, id=name, lane_id=lane, **{**plain, **values})


def tick(daemon: Daemon) -> tuple[Ticked, ...]:
    return daemon.write(tick_due)


def scheduled(daemon: Daemon, name: str = "sc-1") -> Any:
    (row,) = daemon.rows(schedules, id=name)
    return row


def test_a_timer_that_is_due_wakes_its_lane_and_is_due_again_a_step_later(daemon: Daemon) -> None:
    schedule(daemon)
    before = scheduled(daemon)
    (ticked,) = tick(daemon)
    assert (ticked.schedule, ticked.verdict) == ("sc-1", TickVerdict.WAKE)
    assert ticked.words == "The heartbeat is due and there may be something to do. It was due."
    assert ticked.wake is not None
    wake = daemon.wake(ticked.wake)
    assert (wake.reason, wake.origin_kind, wake.state, wake.lane_id) == ("timer", "timer", "pending", LANE)
    after = scheduled(daemon)
    assert (after.last_due, after.next_due) == (before.next_due, before.next_due + 60)
    assert tick(daemon) == ()
    order = daemon.claim_one()
    assert order.route == RouteKey(RouteKind.CHANNEL, "ops")


@pytest.mark.case("H10")
def test_a_machine_that_slept_through_forty_ticks_gets_one(daemon: Daemon) -> None:
    schedule(daemon, ago=40 * 60 + 5, last_due=now(daemon) - 41 * 60 - 5)
    (ticked,) = tick(daemon)
    assert ticked.words.endswith("One tick for the 41 that were due: 40 were missed.")
    assert len(daemon.rows(wakes)) == 1
    after = scheduled(daemon)
    assert after.last_due == pytest.approx(now(daemon) - 5, abs=5)
    assert after.next_due == pytest.approx(after.last_due + 60)
    assert tick(daemon) == ()
    assert len(daemon.claim(most=10)) == 1


@pytest.mark.case("W04")
def test_two_servers_that_find_the_same_timer_due_make_one_wake(daemon: Daemon, address: str) -> None:
    sqlite = not address.startswith("postgresql")
    other = daemon if sqlite else Daemon(open_database(address))
    try:
        for number in range(5):
            schedule(daemon, f"sc-{number}", ago=61)
            both = Barrier(2)

            def look(server: Daemon, both: Barrier = both) -> tuple[Ticked, ...]:
                both.wait(10)
                return server.write(tick_due)

            with ThreadPoolExecutor(2) as pool:
                looks = list(pool.map(look, (daemon, other)))
            assert sorted(map(len, looks)) == [0, 1]
            assert len(daemon.rows(wakes)) == number + 1
    finally:
        if not sqlite:
            other.database.close()
    (order,) = daemon.claim(most=10)
    assert len(order.wakes) == 5


@pytest.mark.case("W04")
def test_a_tick_that_is_made_again_is_the_same_wake(daemon: Daemon) -> None:
    due_at = now(daemon) - 1
    schedule(daemon, next_due=due_at)
    (first,) = tick(daemon)
    # As after a restored backup, or by somebody's hand.
    daemon.put(schedules, {"id": "sc-1"}, last_due=None, next_due=due_at)
    (again,) = tick(daemon)
    assert again.wake == first.wake
    assert len(daemon.rows(wakes)) == 1


@pytest.mark.case("W15", "H11")
def test_a_tick_that_wakes_nobody_leaves_a_receipt_that_says_why(daemon: Daemon) -> None:
    due_at = now(daemon) - 1
    schedule(daemon, route=None, next_due=due_at)
    (ticked,) = tick(daemon)
    assert ticked.verdict is TickVerdict.SKIP
    assert ticked.wake is not None
    wake = daemon.wake(ticked.wake)
    assert (wake.state, wake.code) == ("skipped", "skipped:no-route")
    assert wake.words == "No event is pending, and there is no route for a reply. It was due."
    assert daemon.rows(runs) == []
    # Made again it is the same receipt, and stops no other timer.
    daemon.put(schedules, {"id": "sc-1"}, last_due=None, next_due=due_at)
    schedule(daemon, "sc-2")
    assert [each.verdict for each in tick(daemon)] == [TickVerdict.SKIP, TickVerdict.WAKE]
    assert len(daemon.rows(wakes)) == 2


@pytest.mark.case("W15")
@pytest.mark.parametrize("code", ["skipped:nothing-to-check", "skipped:quiet-hours"])
def test_a_tick_with_nothing_to_do_is_skipped_with_the_reason(daemon: Daemon, code: str) -> None:
    around = [datetime.fromtimestamp(now(daemon) + hours * 3600, UTC) for hours in (-1, 1)]
    settings = {
        "skipped:nothing-to-check": {"checklist": "# Only a heading\n- [ ]"},
        "skipped:quiet-hours": {"quiet": [f"{each:%H:%M:%S}" for each in around]},
    }[code]
    schedule(daemon, settings=json.dumps(settings))
    (ticked,) = tick(daemon)
    assert ticked.wake is not None
    assert daemon.wake(ticked.wake).code == code
    assert daemon.claim() == ()


@pytest.mark.case("W15")
def test_a_busy_lane_skips_a_plain_tick_and_an_event_is_tried_again(daemon: Daemon) -> None:
    schedule(daemon)
    daemon.say("one")
    order = daemon.claim_one()
    (ticked,) = tick(daemon)
    assert ticked.wake is not None
    assert daemon.wake(ticked.wake).code == "skipped:lane-busy"
    daemon.say("two")
    daemon.put(schedules, {"id": "sc-1"}, next_due=now(daemon) - 1, last_due=now(daemon) - 61)
    before = scheduled(daemon).last_due
    (ticked,) = tick(daemon)
    assert (ticked.verdict, ticked.wake) == (TickVerdict.RETRY, None)
    after = scheduled(daemon)
    assert (after.last_due, after.next_due) == (before, pytest.approx(now(daemon) + 30, abs=5))
    # When the lane is free, the tick that was put off comes.
    daemon.prompt(order, "n-1")
    daemon.finish(order)
    daemon.put(schedules, {"id": "sc-1"}, next_due=now(daemon) - 1)
    assert [each.verdict for each in tick(daemon)] == [TickVerdict.WAKE]


def test_a_tick_that_nobody_served_yet_is_no_event_for_the_next(daemon: Daemon) -> None:
    schedule(daemon)
    tick(daemon)
    daemon.put(schedules, {"id": "sc-1"}, route=None, next_due=now(daemon) - 1, last_due=now(daemon) - 61)
    (ticked,) = tick(daemon)
    assert ticked.wake is not None
    assert daemon.wake(ticked.wake).code == "skipped:no-route"


def test_an_event_that_waits_passes_an_empty_checklist(daemon: Daemon) -> None:
    schedule(daemon, settings='{"checklist": ""}')
    daemon.accept(reason=WakeReason.EVENT, origin=Origin(OriginKind.OUTSIDE))
    (ticked,) = tick(daemon)
    assert ticked.verdict is TickVerdict.WAKE


@pytest.mark.case("W15")
def test_a_paused_agent_is_not_woken_and_the_receipt_says_so(daemon: Daemon) -> None:
    schedule(daemon)
    daemon.put(agents, {"id": ADA}, state="paused")
    (ticked,) = tick(daemon)
    assert ticked.wake is not None
    wake = daemon.wake(ticked.wake)
    assert (wake.state, wake.code) == ("skipped", "refused:agent-paused")


@pytest.mark.case("H01")
def test_an_isolated_timer_runs_in_a_scope_of_its_own_each_time(daemon: Daemon) -> None:
    schedule(daemon, isolated=1)
    scopes = []
    for number in range(2):
        daemon.put(schedules, {"id": "sc-1"}, next_due=now(daemon) - 1, last_due=now(daemon) - 61)
        tick(daemon)
        order = daemon.serve(f"n-{number}")
        scopes.append(order.plan.situation.scope)
        assert scopes[-1] == RunScope(LANE, order.run)
    assert scopes[0] != scopes[1]


def test_a_cron_line_is_due_by_the_clock_of_its_zone(daemon: Daemon) -> None:
    start = 1_700_000_000.0  # 2023-11-14 22:13:20 UTC, half past three in the morning in Kolkata
    schedule(daemon, every=None, cron="0 9 * * *", zone="Asia/Kolkata", last_due=start, next_due=start + 1)
    (ticked,) = tick(daemon)
    assert ticked.verdict is TickVerdict.WAKE
    assert (scheduled(daemon).last_due - 3.5 * 3600) % 86_400 == 0
    assert scheduled(daemon).next_due > now(daemon)


def test_ticks_without_progress_come_less_often(daemon: Daemon) -> None:
    last = now(daemon) - 61
    schedule(daemon, idle_ticks=2, last_due=last, next_due=last + 60)
    (ticked,) = tick(daemon)
    assert (ticked.verdict, ticked.words) == (None, "It was not due after all.")
    assert scheduled(daemon).next_due == pytest.approx(last + 240)
    assert daemon.rows(wakes) == []


def test_a_timer_that_never_comes_again_is_switched_off(daemon: Daemon) -> None:
    schedule(daemon, every=0.0)
    tick(daemon)
    after = scheduled(daemon)
    assert (after.enabled, after.next_due) == (0, None)
    assert tick(daemon) == ()


@pytest.mark.case("S11")
@pytest.mark.parametrize(
    "broken",
    [
        {"settings": "{not json"},
        {"settings": "[]"},
        {"settings": '{"checklist": 5}'},
        {"settings": '{"quiet": ["25:00", "6"]}'},
        {"settings": '{"quiet": "always"}'},
        {"every": 0.5},
        {"every": None, "cron": "every full moon"},
        {"zone": "Atlantis/Capital"},
        {"zone": "Europe"},
        {"route": '["pigeon", "post"]'},
        {"every": None, "cron": "* * * * *", "last_due": 1e300},
    ],
)
def test_a_timer_that_cannot_be_read_says_so_and_stops_no_other(daemon: Daemon, broken: dict[str, Any]) -> None:
    schedule(daemon, "sc-1", ago=5, **broken)
    schedule(daemon, "sc-2")
    one, two = tick(daemon)
    assert (one.verdict, two.verdict) == (None, TickVerdict.WAKE)
    assert one.words.startswith("The row sc-1 of schedules cannot be read (its rhythm")
    after = scheduled(daemon)
    assert after.fault == one.words
    assert after.next_due == pytest.approx(now(daemon) + 300, abs=5)
    # Mended, it goes on and complains no more.
    whole = {"settings": "{}", "every": 60.0, "cron": None, "zone": "UTC", "route": ROUTE, "last_due": None}
    daemon.put(schedules, {"id": "sc-1"}, next_due=now(daemon) - 1, **whole)
    assert [each.verdict for each in tick(daemon)] == [TickVerdict.WAKE]
    assert scheduled(daemon).fault is None


@pytest.mark.case("S11")
def test_a_lane_that_cannot_be_read_stops_no_other_timer(daemon: Daemon) -> None:
    schedule(daemon, "sc-1", ago=5)
    schedule(daemon, "sc-2", lane=BOBS_LANE)
    daemon.put(lanes, {"id": LANE}, overlap="whatever")
    one, two = tick(daemon)
    assert (one.verdict, two.verdict) == (None, TickVerdict.WAKE)
    assert f"The row {LANE} of lanes cannot be read (overlap)" in one.words
    daemon.put(lanes, {"id": LANE}, overlap="queue")
