"""Quiet hours: start inclusive, end exclusive, over midnight, and across both changes of the clock."""

from datetime import UTC, datetime, time, timedelta, timezone, tzinfo
from zoneinfo import ZoneInfo

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from clew.kernel.heartbeat import QuietHours, quiet_until

pytestmark = pytest.mark.case("H07")

BERLIN = ZoneInfo("Europe/Berlin")
NEW_YORK = ZoneInfo("America/New_York")
APIA = ZoneInfo("Pacific/Apia")
LORD_HOWE = ZoneInfo("Australia/Lord_Howe")


def utc(text: str) -> float:
    return datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp()


def local(text: str, zone: ZoneInfo, fold: int = 0) -> float:
    return datetime.fromisoformat(text).replace(tzinfo=zone, fold=fold).timestamp()


DAYTIME = QuietHours(time(9), time(17), UTC)
NIGHT = QuietHours(time(22), time(7), UTC)


@pytest.mark.parametrize(
    ("clock", "until"),
    [
        ("2026-03-04T08:59:59", None),
        ("2026-03-04T09:00:00", "2026-03-04T17:00:00"),
        ("2026-03-04T16:59:59.999", "2026-03-04T17:00:00"),
        ("2026-03-04T17:00:00", None),
        ("2026-03-04T23:00:00", None),
    ],
)
def test_start_is_inclusive_and_end_exclusive(clock: str, until: str | None) -> None:
    assert quiet_until(DAYTIME, utc(clock)) == (None if until is None else utc(until))
    assert DAYTIME.covers(utc(clock)) is (until is not None)


@pytest.mark.parametrize(
    ("clock", "until"),
    [
        ("2026-03-04T21:59:59.999", None),
        ("2026-03-04T22:00:00", "2026-03-05T07:00:00"),
        ("2026-03-04T23:59:59", "2026-03-05T07:00:00"),
        ("2026-03-05T00:00:00", "2026-03-05T07:00:00"),
        ("2026-03-05T06:59:59", "2026-03-05T07:00:00"),
        ("2026-03-05T07:00:00", None),
        ("2026-03-05T12:00:00", None),
    ],
)
def test_they_may_wrap_midnight(clock: str, until: str | None) -> None:
    assert quiet_until(NIGHT, utc(clock)) == (None if until is None else utc(until))


def test_minutes_and_seconds_count() -> None:
    hours = QuietHours(time(9, 10, 11), time(9, 12, 13), UTC)
    assert quiet_until(hours, utc("2026-03-04T09:10:10.9")) is None
    assert quiet_until(hours, utc("2026-03-04T09:10:11")) == utc("2026-03-04T09:12:13")
    assert quiet_until(hours, utc("2026-03-04T09:12:12")) == utc("2026-03-04T09:12:13")


@pytest.mark.parametrize("clock", [time(0), time(9), time(23, 59)])
def test_equal_start_and_end_mean_never_quiet(clock: time) -> None:
    hours = QuietHours(clock, clock, UTC)
    for minute in range(0, 24 * 60, 7):
        assert not hours.covers(utc("2026-03-04T00:00:00") + minute * 60)
    assert quiet_until(hours, utc("2026-03-04T09:00:00")) is None


def test_they_are_those_of_the_agents_zone() -> None:
    tokyo = QuietHours(time(22), time(7), timezone(timedelta(hours=9)))
    assert quiet_until(tokyo, utc("2026-03-04T13:00:00")) == utc("2026-03-04T22:00:00")
    assert quiet_until(tokyo, utc("2026-03-04T12:59:59")) is None
    assert quiet_until(tokyo, utc("2026-03-04T22:00:00")) is None


def test_the_night_the_clock_goes_forward_is_an_hour_shorter() -> None:
    hours = QuietHours(time(22), time(7), BERLIN)
    start = local("2026-03-28T22:00:00", BERLIN)
    ends = quiet_until(hours, start)
    assert ends == local("2026-03-29T07:00:00", BERLIN)
    assert ends - start == 8 * 3600


def test_the_night_the_clock_goes_back_is_an_hour_longer() -> None:
    hours = QuietHours(time(22), time(7), BERLIN)
    start = local("2026-10-24T22:00:00", BERLIN)
    ends = quiet_until(hours, start)
    assert ends == local("2026-10-25T07:00:00", BERLIN)
    assert ends - start == 10 * 3600


def test_an_end_in_the_hour_that_is_jumped_over_is_the_jump() -> None:
    hours = QuietHours(time(22), time(2, 30), NEW_YORK)
    jump = utc("2026-03-08T07:00:00")
    assert quiet_until(hours, jump - 1) == jump
    assert quiet_until(hours, jump - 3 * 3600) == jump
    assert quiet_until(hours, jump) is None


def test_a_start_in_the_hour_that_is_jumped_over_is_the_jump() -> None:
    hours = QuietHours(time(2, 30), time(6), NEW_YORK)
    jump = utc("2026-03-08T07:00:00")
    assert quiet_until(hours, jump - 1) is None
    assert quiet_until(hours, jump) == local("2026-03-08T06:00:00", NEW_YORK)


def test_hours_that_are_all_jumped_over_never_come() -> None:
    hours = QuietHours(time(2), time(3), NEW_YORK)
    jump = utc("2026-03-08T07:00:00")
    assert not any(hours.covers(jump + minute * 60) for minute in range(-120, 120))
    assert hours.covers(jump + 23 * 3600)


def test_an_hour_that_comes_twice_is_quiet_both_times() -> None:
    hours = QuietHours(time(1), time(2), NEW_YORK)
    first, second = (local("2026-11-01T01:30:00", NEW_YORK, fold) for fold in (0, 1))
    assert second - first == 3600
    ends = local("2026-11-01T02:00:00", NEW_YORK)
    assert quiet_until(hours, first) == quiet_until(hours, second) == ends
    assert quiet_until(hours, first - 1801) is None
    assert ends - (first - 1800) == 2 * 3600


def test_an_end_within_the_doubled_hour_comes_twice() -> None:
    hours = QuietHours(time(22), time(1, 30), NEW_YORK)
    first, second = (local("2026-11-01T01:30:00", NEW_YORK, fold) for fold in (0, 1))
    assert quiet_until(hours, first - 1) == first
    assert quiet_until(hours, first) is None
    assert quiet_until(hours, first + 1800) == second
    assert quiet_until(hours, second) is None


def test_a_day_that_is_skipped_altogether_is_skipped() -> None:
    hours = QuietHours(time(22), time(7), APIA)
    assert quiet_until(hours, local("2011-12-29T23:00:00", APIA)) == local("2011-12-31T07:00:00", APIA)


@pytest.mark.parametrize(
    ("start", "end"),
    [
        (time(9, 0, 0, 1), time(10)),
        (time(9), time(10, 0, 0, 1)),
        (time(9, tzinfo=UTC), time(10)),
        (time(9), time(10, tzinfo=UTC)),
    ],
)
def test_the_times_are_whole_seconds_of_the_wall_clock(start: time, end: time) -> None:
    with pytest.raises(ValueError, match=r"^quiet hours must start and end on a whole second, without a time zone"):
        QuietHours(start, end, UTC)


class Counted(tzinfo):
    """New York's zone, counting how often it is asked."""

    def __init__(self) -> None:
        self.asked = 0

    def fromutc(self, moment: datetime) -> datetime:
        self.asked += 1
        return moment.replace(tzinfo=UTC).astimezone(NEW_YORK).replace(tzinfo=self)

    def utcoffset(self, moment: datetime | None) -> timedelta | None:
        return None if moment is None else moment.replace(tzinfo=NEW_YORK).utcoffset()

    def dst(self, moment: datetime | None) -> timedelta | None:
        return None if moment is None else moment.replace(tzinfo=NEW_YORK).dst()

    def tzname(self, moment: datetime | None) -> str | None:
        return None if moment is None else moment.replace(tzinfo=NEW_YORK).tzname()


def test_the_end_is_found_without_walking_there_second_by_second() -> None:
    zone = Counted()
    start = local("2026-10-31T22:00:00", NEW_YORK)
    assert quiet_until(QuietHours(time(22), time(7), zone), start) == local("2026-11-01T07:00:00", NEW_YORK)
    assert zone.asked < 60


CLOCKS = st.times().map(lambda shown: shown.replace(microsecond=0, second=0))
CHANGES = (
    (BERLIN, "2026-03-29T01:00:00"),
    (BERLIN, "2026-10-25T01:00:00"),
    (NEW_YORK, "2026-03-08T07:00:00"),
    (NEW_YORK, "2026-11-01T06:00:00"),
    (LORD_HOWE, "2026-04-04T15:00:00"),
    (LORD_HOWE, "2026-10-03T15:30:00"),
)


@given(CLOCKS, CLOCKS, st.sampled_from(CHANGES), st.integers(-30 * 60, 30 * 60))
@example(time(22), time(2, 30), CHANGES[2], -60)
def test_it_is_quiet_until_the_end_and_not_at_it(
    start: time, end: time, change: tuple[ZoneInfo, str], minutes: int
) -> None:
    zone, at = change
    hours = QuietHours(start, end, zone)
    now = utc(at) + minutes * 60
    ends = quiet_until(hours, now)
    if ends is None:
        assert not hours.covers(now)
        return
    assert not hours.covers(ends)
    assert hours.covers(ends - 1)
    assert all(hours.covers(now + step * 60) for step in range(int(ends - now) // 60))
