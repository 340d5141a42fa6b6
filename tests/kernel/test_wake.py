"""Wakes: coalescing, parking, and the one end of each."""

from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clew.kernel.ids import AgentId, EntrySeq, LaneId, RouteKey, RouteKind, RunId, WakeId
from clew.kernel.wake import (
    HUMAN,
    WAKE_ENDS,
    WAKE_TABLE,
    Demand,
    Freshness,
    Origin,
    OriginKind,
    ResetPolicy,
    Wake,
    WakeEnd,
    WakeEvent,
    WakeReason,
    WakeState,
    advance_wake,
    arrival,
    coalesce,
    is_due,
    ready,
)

LANE = LaneId("lane")
CLEW = Origin(OriginKind.CLEW)
ROUTE_A = RouteKey(RouteKind.THREAD, "a")
ROUTE_B = RouteKey(RouteKind.THREAD, "b")
ROUTE_C = RouteKey(RouteKind.THREAD, "c")


def comment(name: str, at: float, *entries: int) -> Wake:
    return Wake(
        WakeId(name), LANE, WakeReason.COMMENT, accepted_at=at, entries=tuple(EntrySeq(each) for each in entries)
    )


@pytest.mark.case("W01")
def test_three_comments_during_a_run_become_one_demand_in_order() -> None:
    demand = coalesce([comment("w3", 3, 30), comment("w1", 1, 10), comment("w2", 2, 20)])
    assert demand == Demand(
        wakes=(WakeId("w1"), WakeId("w2"), WakeId("w3")),
        reasons=(WakeReason.COMMENT,),
        entries=(EntrySeq(10), EntrySeq(20), EntrySeq(30)),
        fresh_asked_by=None,
        resume_run=None,
        priority=0,
        route=None,
    )


@pytest.mark.case("W01")
def test_wakes_of_the_same_instant_are_ordered_by_what_was_said_first_and_an_entry_comes_once() -> None:
    demand = coalesce([comment("a", 1, 9, 8), comment("b", 1, 8, 7), comment("d", 1), comment("c", 1)])
    assert demand.wakes == ("c", "d", "b", "a")
    assert demand.entries == (7, 8, 9)
    assert arrival(comment("b", 1.5)) == (1.5, (), "b")


@pytest.mark.case("W01")
@given(st.lists(st.tuples(st.floats(0, 9), st.sets(st.integers(1, 20))), min_size=1), st.randoms())
def test_a_demand_is_the_same_however_its_wakes_are_listed(parts: list[tuple[float, set[int]]], dice: object) -> None:
    wakes = [comment(f"w{number:03}", at, *entries) for number, (at, entries) in enumerate(parts)]
    shuffled = list(wakes)
    dice.shuffle(shuffled)  # type: ignore[attr-defined]
    demand = coalesce(shuffled)
    assert demand == coalesce(wakes)
    assert sorted(demand.wakes) == [wake.id for wake in wakes]
    assert demand.entries == tuple(sorted(set().union(*(entries for _, entries in parts))))


def test_reasons_are_listed_once_each_in_order_of_arrival() -> None:
    def wake(name: str, at: float, reason: WakeReason) -> Wake:
        return Wake(WakeId(name), LANE, reason, accepted_at=at)

    demand = coalesce([wake("c", 3, WakeReason.CHAT), wake("a", 1, WakeReason.MENTION), wake("b", 2, WakeReason.CHAT)])
    assert demand.reasons == (WakeReason.MENTION, WakeReason.CHAT)


@pytest.mark.case("W02")
@pytest.mark.parametrize("place", [0, 1, 2])
def test_one_wish_for_a_fresh_start_makes_the_whole_demand_fresh(place: int) -> None:
    wakes = [
        Wake(
            WakeId(f"w{number}"),
            LANE,
            WakeReason.COMMENT,
            accepted_at=number,
            freshness=Freshness.FRESH if number == place else Freshness.FOLLOW_POLICY,
        )
        for number in range(3)
    ]
    assert coalesce(wakes).fresh_asked_by == f"w{place}"


@pytest.mark.case("W02")
def test_the_first_who_asked_for_a_fresh_start_is_named() -> None:
    wakes = [
        Wake(WakeId(name), LANE, WakeReason.COMMENT, accepted_at=at, freshness=Freshness.FRESH)
        for name, at in (("late", 2.0), ("early", 1.0))
    ]
    assert coalesce(wakes).fresh_asked_by == "early"


def test_the_latest_wishes_and_the_highest_priority_count() -> None:
    wakes = [
        Wake(WakeId("a"), LANE, WakeReason.COMMENT, accepted_at=1, priority=5, resume_run=RunId("r1"), route=ROUTE_A),
        Wake(WakeId("b"), LANE, WakeReason.COMMENT, accepted_at=2, priority=1, resume_run=RunId("r2"), route=ROUTE_B),
        Wake(WakeId("c"), LANE, WakeReason.COMMENT, accepted_at=3, resume_run=RunId("r3"), route=ROUTE_C),
        Wake(WakeId("d"), LANE, WakeReason.COMMENT, accepted_at=4, priority=-1),
    ]
    demand = coalesce(wakes)
    assert (demand.resume_run, demand.route, demand.priority) == ("r3", ROUTE_C, 5)


def test_nothing_cannot_be_coalesced() -> None:
    with pytest.raises(ValueError, match=r"^there is nothing to coalesce: a demand needs at least one wake$"):
        coalesce([])


def test_wakes_of_two_lanes_cannot_be_coalesced() -> None:
    other = Wake(WakeId("x"), LaneId("other"), WakeReason.COMMENT)
    with pytest.raises(
        ValueError, match=r"^wakes of different lanes cannot be coalesced: each lane has its own conversation$"
    ):
        coalesce([comment("w", 1), other])


@pytest.mark.case("W05")
def test_a_human_takes_a_parked_retry_along() -> None:
    retry = Wake(WakeId("retry"), LANE, WakeReason.RETRY, CLEW, accepted_at=1, not_before=100)
    person = Wake(WakeId("person"), LANE, WakeReason.COMMENT, HUMAN, accepted_at=2)
    assert ready([retry], 50) == ()
    assert ready([person, retry], 50) == (retry, person)


@pytest.mark.case("W05")
def test_only_a_person_who_is_due_takes_parked_wakes_along() -> None:
    retry = Wake(WakeId("retry"), LANE, WakeReason.RETRY, CLEW, accepted_at=1, not_before=100)
    timer = Wake(WakeId("timer"), LANE, WakeReason.TIMER, Origin(OriginKind.TIMER), accepted_at=2)
    later = Wake(WakeId("later"), LANE, WakeReason.COMMENT, HUMAN, accepted_at=3, not_before=60)
    assert ready([retry, timer, later], 59.999) == (timer,)
    assert ready([retry, timer, later], 60) == (retry, timer, later)


@pytest.mark.parametrize(("not_before", "expected"), [(None, True), (10.0, True), (10.001, False), (9.0, True)])
def test_a_wake_is_due_from_its_very_instant(not_before: float | None, expected: bool) -> None:
    assert is_due(Wake(WakeId("w"), LANE, WakeReason.RETRY, not_before=not_before), 10.0) is expected


@pytest.mark.case("W07")
def test_the_table_is_exactly_this() -> None:
    moves = {
        ("pending", "claim"): "claimed",
        ("pending", "skip"): "skipped",
        ("pending", "cancel"): "cancelled",
        ("claimed", "release"): "pending",
        ("claimed", "serve"): "served",
        ("claimed", "cancel"): "cancelled",
    }
    for state, event in product(WakeState, WakeEvent):
        assert advance_wake(state, event) == moves.get((state.value, event.value))
    assert len(WAKE_TABLE) == len(moves)


@pytest.mark.case("W07")
def test_ends_are_final_and_every_other_state_leads_to_each_end() -> None:
    assert {WakeState.SERVED, WakeState.SKIPPED, WakeState.CANCELLED} == WAKE_ENDS
    for state, event in product(WAKE_ENDS, WakeEvent):
        assert advance_wake(state, event) is None
    for start in set(WakeState) - WAKE_ENDS:
        reached = {start}
        for _ in WakeState:
            reached |= {after for (state, _event), after in WAKE_TABLE.items() if state in reached}
        assert reached >= WAKE_ENDS


@pytest.mark.case("W07")
@given(st.lists(st.sampled_from(WakeEvent)))
def test_whatever_happens_a_wake_ends_at_most_once(events: list[WakeEvent]) -> None:
    state, ends = WakeState.PENDING, 0
    for event in events:
        after = advance_wake(state, event)
        if after is not None:
            state = after
            ends += state in WAKE_ENDS
    assert ends == (state in WAKE_ENDS)


@pytest.mark.case("W15")
def test_every_end_says_its_state_and_a_sentence() -> None:
    ends = {
        WakeEnd.DUPLICATE: "skipped:duplicate",
        WakeEnd.SELF: "skipped:self",
        WakeEnd.PING_PONG: "skipped:ping-pong",
        WakeEnd.NOTHING_TO_CHECK: "skipped:nothing-to-check",
        WakeEnd.NO_ROUTE: "skipped:no-route",
        WakeEnd.QUIET_HOURS: "skipped:quiet-hours",
        WakeEnd.LANE_BUSY: "skipped:lane-busy",
        WakeEnd.DISABLED: "skipped:disabled",
        WakeEnd.OVERLAP: "skipped:overlap",
        WakeEnd.REASSIGNED: "cancelled:reassigned",
        WakeEnd.CLOSED: "cancelled:closed",
        WakeEnd.BY_USER: "cancelled:by-user",
        WakeEnd.TAKEN_BACK: "cancelled:taken-back",
        WakeEnd.GAVE_UP: "cancelled:gave-up",
    }
    assert {end: end.code for end in WakeEnd} == ends
    for end in WakeEnd:
        assert end.fill(depth=1, limit=1, why="it failed.").endswith(".")
    assert WakeEnd.PING_PONG.fill(depth=7, limit=6) == "Agents have woken one another 7 times in a row; the limit is 6."
    assert WakeEnd.GAVE_UP.fill(why="no.") == "Given up: no."


def test_an_assignment_resets_by_itself_and_nothing_else_does() -> None:
    assert [reason for reason in WakeReason if ResetPolicy().resets(reason)] == [WakeReason.ASSIGNMENT]
    assert not ResetPolicy(frozenset()).resets(WakeReason.ASSIGNMENT)


def test_a_wake_is_a_persons_and_follows_the_policy_unless_it_says_otherwise() -> None:
    wake = Wake(WakeId("w"), LANE, WakeReason.CHAT)
    assert wake.origin == Origin(OriginKind.HUMAN, None, 0) == HUMAN
    assert wake.freshness is Freshness.FOLLOW_POLICY
    assert (wake.accepted_at, wake.entries, wake.priority) == (0.0, (), 0)
    assert (wake.resume_run, wake.not_before, wake.route) == (None, None, None)
    assert Origin(OriginKind.AGENT, AgentId("a")).depth == 0
