"""Heartbeats: the tick's rules in their order, and scopes that differ while the route stays."""

from dataclasses import replace
from datetime import UTC, time
from itertools import product

import pytest

from clew.kernel.heartbeat import HeartbeatReason, QuietHours, TickDecision, TickFacts, TickVerdict, tick
from clew.kernel.ids import LaneId, LaneScope, RouteKey, RouteKind, RunId, RunScope, WakeId, isolated
from clew.kernel.wake import Origin, OriginKind, Wake, WakeEnd, WakeReason, coalesce

NOON = 12 * 3600.0
ROUTE = RouteKey(RouteKind.CHANNEL, "ops")
LANE = LaneId("lane")
QUIET_NOW = QuietHours(time(11), time(13), UTC)
QUIET_LATER = QuietHours(time(13), time(14), UTC)
PLAIN = TickFacts(NOON, interval=3600, route=ROUTE)
EVENT = replace(PLAIN, event=True)


def skipped(end: WakeEnd) -> TickDecision:
    return TickDecision(TickVerdict.SKIP, end, end.fill(), None)


def test_a_due_heartbeat_wakes_its_lane() -> None:
    assert tick(PLAIN) == TickDecision(
        TickVerdict.WAKE, HeartbeatReason.DUE, "The heartbeat is due and there may be something to do."
    )
    assert tick(EVENT) == TickDecision(TickVerdict.WAKE, HeartbeatReason.EVENT, "An event waits for the agent.")
    assert [reason.code for reason in HeartbeatReason] == [
        "heartbeat:due",
        "heartbeat:event",
        "heartbeat:after-quiet",
        "heartbeat:lane-busy",
    ]


@pytest.mark.case("H12")
@pytest.mark.parametrize(("enabled", "interval"), [(False, 3600.0), (True, 0.0), (False, 0.0), (True, -1.0)])
def test_a_heartbeat_that_is_off_has_no_ticks_but_owned_events_still_run(enabled: bool, interval: float) -> None:
    assert tick(replace(PLAIN, enabled=enabled, interval=interval)) == skipped(WakeEnd.DISABLED)
    assert tick(replace(EVENT, enabled=enabled, interval=interval)).verdict is TickVerdict.WAKE


@pytest.mark.case("H12")
def test_the_shortest_interval_is_on() -> None:
    assert tick(replace(PLAIN, interval=1)).verdict is TickVerdict.WAKE


@pytest.mark.case("H11")
def test_without_a_route_only_an_event_asks_a_model() -> None:
    assert tick(replace(PLAIN, route=None)) == skipped(WakeEnd.NO_ROUTE)
    assert WakeEnd.NO_ROUTE.code == "skipped:no-route"
    assert tick(replace(EVENT, route=None)).verdict is TickVerdict.WAKE


@pytest.mark.case("H06")
def test_an_empty_checklist_is_skipped_and_an_absent_one_runs() -> None:
    assert tick(replace(PLAIN, checklist="# Checks\n- \n")) == skipped(WakeEnd.NOTHING_TO_CHECK)
    assert WakeEnd.NOTHING_TO_CHECK.code == "skipped:nothing-to-check"
    assert tick(replace(PLAIN, checklist=None)).verdict is TickVerdict.WAKE
    assert tick(replace(PLAIN, checklist="- the mail")).verdict is TickVerdict.WAKE
    assert tick(replace(EVENT, checklist="")).verdict is TickVerdict.WAKE


@pytest.mark.case("H07")
def test_quiet_hours_skip_a_tick_and_put_an_event_off_until_they_end() -> None:
    assert tick(replace(PLAIN, quiet=QUIET_NOW)) == skipped(WakeEnd.QUIET_HOURS)
    assert tick(replace(EVENT, quiet=QUIET_NOW)) == TickDecision(
        TickVerdict.RETRY,
        HeartbeatReason.QUIET,
        "These are the agent's quiet hours; the event waits until they end.",
        13 * 3600.0,
    )
    assert tick(replace(PLAIN, quiet=QUIET_LATER)).verdict is TickVerdict.WAKE


@pytest.mark.case("H08")
def test_a_busy_lane_lets_a_plain_tick_go_and_tries_an_event_again() -> None:
    assert tick(replace(PLAIN, lane_busy=True)) == skipped(WakeEnd.LANE_BUSY)
    assert tick(replace(EVENT, lane_busy=True)) == TickDecision(
        TickVerdict.RETRY,
        HeartbeatReason.BUSY,
        "The lane is busy; the event is tried again in 30 s.",
        NOON + 30,
    )
    assert tick(replace(EVENT, lane_busy=True, retry_seconds=2.5)).words.endswith("again in 2.5 s.")
    assert tick(replace(EVENT, lane_busy=True, retry_seconds=2.5)).retry_at == NOON + 2.5


@pytest.mark.case("H06", "H07", "H08", "H11", "H12")
@pytest.mark.parametrize("stops", list(product((False, True), repeat=5)))
def test_the_first_rule_that_speaks_decides(stops: tuple[bool, ...]) -> None:
    off, no_route, empty, quiet, busy = stops
    facts = TickFacts(
        NOON,
        interval=3600,
        enabled=not off,
        route=None if no_route else ROUTE,
        checklist="" if empty else None,
        quiet=QUIET_NOW if quiet else None,
        lane_busy=busy,
    )
    ends = (
        WakeEnd.DISABLED,
        WakeEnd.NO_ROUTE,
        WakeEnd.NOTHING_TO_CHECK,
        WakeEnd.QUIET_HOURS,
        WakeEnd.LANE_BUSY,
    )
    expected = next((end for end, stop in zip(ends, stops, strict=True) if stop), HeartbeatReason.DUE)
    assert tick(facts).reason is expected
    put_off = HeartbeatReason.QUIET if quiet else HeartbeatReason.BUSY if busy else HeartbeatReason.EVENT
    assert tick(replace(facts, event=True)).reason is put_off


@pytest.mark.case("H01", "H02")
def test_isolated_ticks_share_the_route_and_never_a_scope() -> None:
    runs = [RunId(f"r{number}") for number in range(1_000)]
    scopes = {isolated(LaneScope(LANE), run) for run in runs}
    assert scopes == {RunScope(LANE, run) for run in runs}
    assert len(scopes) == len(runs)
    ticks = [
        Wake(WakeId(f"w{number}"), LANE, WakeReason.TIMER, Origin(OriginKind.TIMER), number, route=ROUTE)
        for number in range(3)
    ]
    assert {coalesce([each]).route for each in ticks} == {ROUTE}
    assert coalesce(ticks).route == ROUTE


@pytest.mark.case("H04")
def test_isolating_a_heartbeats_scope_again_changes_nothing() -> None:
    scope = isolated(LaneScope(LANE), RunId("r1"))
    assert isolated(scope, RunId("r2")) == scope == RunScope(LANE, RunId("r1"))
