"""Pace: no progress stretches the interval up to a cap, and says so."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clew.kernel.schedule import Every, Pace, PacePolicy, PaceReason, idle_ticks, pace

pytestmark = pytest.mark.case("H13")

HOURLY = Every(3600, anchor=5.0)
POLICY = PacePolicy()


def test_progress_starts_the_count_anew() -> None:
    assert idle_ticks(0, progress=False) == 1
    assert idle_ticks(4, progress=False) == 5
    assert idle_ticks(4, progress=True) == 0


def test_with_progress_the_pace_is_as_set() -> None:
    expected = Pace(HOURLY, PaceReason.AS_SET, "The next tick comes after 3600 s, as set.")
    assert pace(HOURLY, 0, 7_205.0, POLICY) == expected


def test_each_tick_without_progress_doubles_the_interval_from_the_last_one() -> None:
    assert (POLICY.factor, POLICY.cap) == (2.0, 86_400.0)
    once = pace(HOURLY, 1, 7_205.0, POLICY)
    assert once == Pace(
        Every(7200, 7_205.0),
        PaceReason.STRETCHED,
        "Ticks in a row without progress: 1. The next comes after 7200 s, not 3600 s.",
    )
    assert once.schedule.next_after(7_205.0) == 14_405.0
    assert pace(HOURLY, 4, 0.0, POLICY).schedule.seconds == 16 * 3600
    assert pace(HOURLY, 2, 0.0, PacePolicy(factor=1.5)).schedule.seconds == 8100


def test_the_interval_is_stretched_up_to_the_cap() -> None:
    assert pace(HOURLY, 5, 9.0, POLICY) == Pace(
        Every(86_400, 9.0),
        PaceReason.CAPPED,
        "Ticks in a row without progress: 5. The next comes after 86400 s, the longest allowed.",
    )


@pytest.mark.parametrize(
    ("cap", "reason", "seconds"),
    [(7201.0, PaceReason.STRETCHED, 7200), (7200.0, PaceReason.CAPPED, 7200), (7199.0, PaceReason.CAPPED, 7199)],
)
def test_the_cap_is_reached_exactly(cap: float, reason: PaceReason, seconds: float) -> None:
    paced = pace(HOURLY, 1, 0.0, PacePolicy(cap=cap))
    assert (paced.reason, paced.schedule.seconds) == (reason, seconds)


@pytest.mark.parametrize("cap", [3600.0, 60.0])
def test_an_interval_that_is_not_below_the_cap_is_left_alone(cap: float) -> None:
    assert pace(HOURLY, 3, 0.0, PacePolicy(cap=cap)) == pace(HOURLY, 0, 0.0, POLICY)


def test_an_interval_of_zero_stays_never() -> None:
    assert pace(Every(0), 3, 0.0, POLICY) == Pace(Every(0), PaceReason.AS_SET, "The next tick comes after 0 s, as set.")


def test_a_long_idle_time_does_not_overflow() -> None:
    assert pace(Every(1), 1_000_000, 0.0, POLICY).schedule.seconds == 86_400


@pytest.mark.parametrize("factor", [1.0, 0.5, 0.0])
def test_a_factor_that_does_not_stretch_is_refused(factor: float) -> None:
    with pytest.raises(ValueError, match=rf"^the factor of a pace must be above 1 \(got {factor}\)$"):
        PacePolicy(factor=factor)


def test_the_codes_are_these() -> None:
    assert [reason.code for reason in PaceReason] == ["pace:as-set", "pace:stretched", "pace:capped"]


@given(st.integers(1, 200_000), st.integers(0, 60))
def test_more_idle_ticks_never_come_sooner_and_none_exceeds_the_cap(seconds: int, idle: int) -> None:
    here = pace(Every(seconds), idle, 0.0, POLICY).schedule.seconds
    after = pace(Every(seconds), idle + 1, 0.0, POLICY).schedule.seconds
    assert seconds <= here <= after <= max(seconds, POLICY.cap)


def test_a_very_long_idle_time_costs_nothing() -> None:
    assert pace(Every(60), 10**12, 0.0, PacePolicy()).reason is PaceReason.CAPPED
