"""Schedules: strictly later due times, and one tick for all that were slept through."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clew.kernel.schedule import COUNT_CAP, Every, Tick, TickReason, due

HOURLY = Every(3600)


@pytest.mark.parametrize(
    ("after", "expected"),
    [(0.0, 3600.0), (-0.5, 0.0), (-3600.0, 0.0), (3599.999, 3600.0), (3600.0, 7200.0), (3600.001, 7200.0)],
)
def test_the_next_due_time_is_strictly_later(after: float, expected: float) -> None:
    assert HOURLY.next_after(after) == expected


def test_due_times_are_counted_from_the_anchor() -> None:
    assert Every(60, anchor=7.0).next_after(67.0) == 127.0
    assert Every(60, anchor=7.0).next_after(66.0) == 67.0
    assert Every(60, anchor=1_000.0).next_after(0.0) == 40.0


@given(st.floats(1, 1e6), st.floats(1.6e9, 2e9), st.floats(1.6e9, 2e9))
def test_no_due_time_is_passed_over_and_none_comes_twice(seconds: float, anchor: float, after: float) -> None:
    every = Every(seconds, anchor)
    first = every.next_after(after)
    assert first is not None
    assert after < first <= after + seconds + 1e-3
    second = every.next_after(first)
    assert second is not None
    assert second - first == pytest.approx(seconds, abs=1e-3)


@given(st.integers(1, 10**7), st.floats(1, 1e5), st.floats(1.6e9, 2e9))
def test_the_due_time_after_one_is_exactly_the_following_one(steps: int, seconds: float, anchor: float) -> None:
    assert Every(seconds, anchor).next_after(anchor + steps * seconds) == anchor + (steps + 1) * seconds


def test_a_division_that_rounds_up_does_not_pass_over_a_due_time() -> None:
    seconds, steps = 1159.2536981170122, 111_554
    just_before = math.nextafter(steps * seconds, 0)
    assert just_before / seconds == steps
    assert Every(seconds).next_after(just_before) == steps * seconds


def test_a_division_that_rounds_down_does_not_repeat_a_due_time() -> None:
    every, steps = Every(189.2, 1811051765.7449594), 229_409
    at = every.anchor + steps * every.seconds
    assert (at - every.anchor) / every.seconds < steps
    assert every.next_after(at) == every.anchor + (steps + 1) * every.seconds


@pytest.mark.case("H12")
def test_an_interval_of_zero_is_never_due() -> None:
    assert Every(0).next_after(5.0) is None
    assert due(Every(0).next_after, 0.0, 1e9) is None


@pytest.mark.parametrize("seconds", [-1.0, 0.5, 0.999, float("nan")])
def test_an_interval_is_zero_or_at_least_a_second(seconds: float) -> None:
    with pytest.raises(ValueError, match=rf"^an interval must be 0 \(never\) or at least 1 second \(got {seconds}\)$"):
        Every(seconds)


def test_an_interval_of_one_second_is_allowed() -> None:
    assert Every(1).next_after(5.0) == 6.0


def test_nothing_is_due_before_its_instant() -> None:
    assert due(HOURLY.next_after, 3600.0, 7199.999) is None
    assert due(HOURLY.next_after, 3600.0, 7200.0) == Tick(7200.0, 1, TickReason.ON_TIME)


def test_a_tick_on_time_stands_for_itself() -> None:
    tick = due(HOURLY.next_after, 0.0, 3600.0)
    assert tick is not None
    assert (tick.missed, tick.words, tick.reason.code) == (0, "It was due.", "tick:on-time")


@pytest.mark.case("H10")
def test_a_machine_that_slept_through_forty_ticks_gets_one_that_says_so() -> None:
    tick = due(HOURLY.next_after, 0.0, 40 * 3600.0 + 1)
    assert tick == Tick(40 * 3600.0, 40, TickReason.CATCH_UP)
    assert tick.missed == 39
    assert tick.words == "One tick for the 40 that were due: 39 were missed."
    assert tick.reason.code == "tick:catch-up"
    assert due(HOURLY.next_after, tick.due, 40 * 3600.0 + 1) is None


@pytest.mark.case("H10")
def test_two_due_ticks_are_already_a_catch_up() -> None:
    assert due(HOURLY.next_after, 0.0, 7200.0) == Tick(7200.0, 2, TickReason.CATCH_UP)


@pytest.mark.case("H10")
def test_the_count_is_bounded_and_the_rest_is_let_go() -> None:
    assert COUNT_CAP == 10_000
    now = COUNT_CAP + 1.5
    tick = due(Every(1).next_after, 0.0, now)
    assert tick == Tick(now, 10_000, TickReason.CATCH_UP_MANY)
    assert tick.words == "One tick for at least 10000 that were due: too many to count."
    assert tick.reason.code == "tick:catch-up-many"
    assert due(Every(1).next_after, tick.due, now) is None


@pytest.mark.case("H10")
def test_exactly_as_many_as_the_cap_are_still_counted() -> None:
    assert due(Every(1).next_after, 0.0, 3.5, cap=3) == Tick(3.0, 3, TickReason.CATCH_UP)
    assert due(Every(1).next_after, 0.0, 4.0, cap=3) == Tick(4.0, 3, TickReason.CATCH_UP_MANY)


@pytest.mark.case("H10")
def test_any_schedule_will_do_also_one_that_ends() -> None:
    times = [10.0, 25.0, 26.0]

    def next_after(at: float) -> float | None:
        return next((each for each in times if each > at), None)

    assert due(next_after, 0.0, 9.0) is None
    assert due(next_after, 0.0, 25.0) == Tick(25.0, 2, TickReason.CATCH_UP)
    assert due(next_after, 25.0, 1e9) == Tick(26.0, 1, TickReason.ON_TIME)
    assert due(next_after, 26.0, 1e9) is None


def test_a_schedule_that_does_not_move_on_is_refused() -> None:
    with pytest.raises(ValueError, match=r"^a schedule must advance: its next due time is not after the last one$"):
        due(lambda at: at, 5.0, 10.0)


@given(st.integers(1, 500), st.integers(0, 499), st.integers(1, 90))
def test_a_tick_counts_every_due_time_once(seconds: int, into: int, slept: int) -> None:
    now = float(slept * seconds + into % seconds)
    tick = due(Every(seconds).next_after, 0.0, now)
    assert tick is not None
    assert (tick.stands_for, tick.due) == (slept, slept * seconds)


def test_a_time_beyond_what_a_number_can_tell_apart_has_no_next() -> None:
    assert Every(1).next_after(1e17) is None
