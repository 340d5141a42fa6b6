"""Alerts: nothing to report is not delivered, the same alert only once a day."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clew.kernel.alerts import NOTHING_TO_REPORT, AlertReason, Delivered, alert_digest, judge_reply
from clew.kernel.ids import RouteKey, RouteKind

pytestmark = pytest.mark.case("H09")

ROUTE = RouteKey(RouteKind.CHANNEL, "ops")
OTHER = RouteKey(RouteKind.CHANNEL, "dev")
DAY = 86_400.0
NOW = 10 * DAY
ALERT = "The build is red: 3 tests fail."


def told(at: float, route: RouteKey = ROUTE, text: str = ALERT) -> Delivered:
    return Delivered(route, alert_digest(text), at)


@pytest.mark.parametrize(
    "reply",
    [
        "nothing to report",
        "Nothing to report.",
        "  NOTHING  to\nreport!\n",
        "**Nothing to report**",
        "_nothing to report_",
        "`nothing to report`",
        '"Nothing to report."',
        "'nothing to report'",
    ],
)
def test_nothing_to_report_is_not_delivered_and_leaves_the_idle_clock(reply: str) -> None:
    decision = judge_reply(reply, ROUTE, [], NOW)
    assert decision.reason is AlertReason.ACKNOWLEDGED
    assert decision.words == "The agent has nothing to report, so nothing is delivered."
    assert decision.digest == alert_digest(reply)
    assert not decision.deliver
    assert not decision.moves_idle_clock


@pytest.mark.parametrize(
    "reply",
    [
        "Nothing to report, except that the build is red.",
        "I have nothing to report",
        "nothing to report?",
        "nothing",
        "...",
        ALERT,
    ],
)
def test_a_reply_that_adds_anything_is_delivered(reply: str) -> None:
    decision = judge_reply(reply, ROUTE, [], NOW)
    assert decision.reason is AlertReason.DELIVERED
    assert decision.words == "It is delivered."
    assert decision.deliver
    assert decision.moves_idle_clock
    assert decision.digest == alert_digest(reply)


@pytest.mark.parametrize("reply", ["", " \n\t "])
def test_an_empty_reply_is_not_delivered(reply: str) -> None:
    decision = judge_reply(reply, ROUTE, [], NOW)
    assert decision.reason is AlertReason.SILENT
    assert decision.words == "The agent said nothing, so nothing is delivered."
    assert decision.digest == alert_digest("")
    assert not decision.moves_idle_clock


@pytest.mark.parametrize(
    ("age", "reason"),
    [
        (0.0, AlertReason.DUPLICATE),
        (DAY - 0.001, AlertReason.DUPLICATE),
        (DAY, AlertReason.DELIVERED),
        (DAY + 1, AlertReason.DELIVERED),
    ],
)
def test_the_same_alert_is_told_again_after_exactly_a_day(age: float, reason: AlertReason) -> None:
    decision = judge_reply(ALERT, ROUTE, [told(NOW - age)], NOW)
    assert decision.reason is reason
    assert decision.moves_idle_clock is (reason is AlertReason.DELIVERED)


def test_a_duplicate_says_since_when() -> None:
    decision = judge_reply(ALERT, ROUTE, [told(NOW - 5400), told(NOW - 7200), told(NOW - 2 * DAY)], NOW)
    assert decision.words == "The same alert was delivered 90 min ago; it is repeated 24 h after that."
    assert decision.digest == alert_digest(ALERT)


def test_case_and_white_space_do_not_make_another_alert() -> None:
    assert judge_reply("the BUILD is red:\n 3 tests  fail.", ROUTE, [told(NOW)], NOW).reason is AlertReason.DUPLICATE


def test_another_number_or_another_route_does() -> None:
    assert judge_reply("The build is red: 4 tests fail.", ROUTE, [told(NOW)], NOW).deliver
    assert judge_reply(ALERT, OTHER, [told(NOW)], NOW).deliver
    assert judge_reply(ALERT, ROUTE, [told(NOW, OTHER), told(NOW, text="else")], NOW).deliver


def test_an_acknowledgement_is_named_before_a_duplicate() -> None:
    assert (
        judge_reply(NOTHING_TO_REPORT, ROUTE, [told(NOW, text=NOTHING_TO_REPORT)], NOW).reason
        is AlertReason.ACKNOWLEDGED
    )


def test_a_digest_never_changes_between_versions() -> None:
    assert alert_digest("  The Build\nis red ") == "6ffa9fbd82036704048b898c3f343bc01c239f8f7948fc8185564cbccd278a1d"
    assert alert_digest("a\udcff") != alert_digest("a\udcfe")


@given(st.text(), st.text())
def test_words_run_together_are_another_alert(left: str, right: str) -> None:
    apart, together = f"a{left} {right}b", f"a{left}{right}b"
    same = apart.casefold().split() == together.casefold().split()
    assert (alert_digest(apart) == alert_digest(together)) is same


def test_the_codes_are_these() -> None:
    assert [reason.code for reason in AlertReason] == [
        "alert:delivered",
        "alert:silent",
        "alert:acknowledged",
        "alert:duplicate",
    ]
