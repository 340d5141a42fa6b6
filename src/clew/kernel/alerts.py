"""Alerts: which replies of a heartbeat are delivered. Empty replies and repeats are not."""

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass

from clew.kernel.ids import Instant, RouteKey
from clew.kernel.reason import Reason

NOTHING_TO_REPORT = "nothing to report"
"""The agent is told to answer this when there is nothing. A reply that adds anything to it is delivered."""

REPEAT_AFTER = 24 * 60 * 60.0
DECORATION = " .!*_`\"'"


class AlertReason(Reason):
    DELIVERED = "alert:delivered", "It is delivered."
    SILENT = "alert:silent", "The agent said nothing, so nothing is delivered."
    ACKNOWLEDGED = "alert:acknowledged", "The agent has nothing to report, so nothing is delivered."
    DUPLICATE = (
        "alert:duplicate",
        "The same alert was delivered {minutes:.0f} min ago; it is repeated {hours:g} h after that.",
    )


@dataclass(frozen=True, slots=True)
class Delivered:
    """An alert that went out earlier."""

    route: RouteKey
    digest: str
    at: Instant


@dataclass(frozen=True, slots=True)
class AlertDecision:
    """The answer. If the reply is delivered, store `digest` with the route to recognise a repeat."""

    reason: AlertReason
    words: str
    digest: str

    @property
    def deliver(self) -> bool:
        return self.reason is AlertReason.DELIVERED

    @property
    def moves_idle_clock(self) -> bool:
        """Only a delivered reply counts as activity in the thread."""
        return self.deliver


def judge_reply(reply: str, route: RouteKey, earlier: Iterable[Delivered], now: Instant) -> AlertDecision:
    """Deliver a heartbeat's reply unless it is empty, or the same text went to this route within 24 h."""
    digest = alert_digest(reply)
    said = _normalised(reply)
    if not said:
        return AlertDecision(AlertReason.SILENT, AlertReason.SILENT.fill(), digest)
    if said.strip(DECORATION) == NOTHING_TO_REPORT:
        return AlertDecision(AlertReason.ACKNOWLEDGED, AlertReason.ACKNOWLEDGED.fill(), digest)
    same = [each.at for each in earlier if each.route == route and each.digest == digest]
    latest = max(same, default=None)
    if latest is None or latest + REPEAT_AFTER <= now:
        return AlertDecision(AlertReason.DELIVERED, AlertReason.DELIVERED.fill(), digest)
    words = AlertReason.DUPLICATE.fill(minutes=(now - latest) / 60, hours=REPEAT_AFTER / 3600)
    return AlertDecision(AlertReason.DUPLICATE, words, digest)


def alert_digest(text: str) -> str:
    """Equal for texts that differ only in case and white space. A changed number makes another alert."""
    return hashlib.sha256(_normalised(text).encode(errors="surrogatepass")).hexdigest()


def _normalised(text: str) -> str:
    return " ".join(text.casefold().split())
