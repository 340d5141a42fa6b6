"""What a message was foretold to do, compared with what it did: the notices of `clew why`."""

from collections.abc import Mapping, Sequence

from clew.kernel import USES_EARLIER_SESSION, Outcome
from clew.protocol.preview import Foretold, read_foretold
from clew.protocol.views import WakeView
from clew.protocol.why_views import DecisionView, SteerView
from clew.store.engine.database import Transaction
from clew.store.queries.sessions import session_name

STEERED = "steered"

_FORETOLD: Mapping[str, str] = {
    Outcome.RESUME: "continue {session}",
    Outcome.FORK: "continue in a copy of {session}",
    Outcome.TRANSFER: "move {session} and continue it",
    Outcome.RESEED: "start a new session with the thread's history",
    Outcome.BLANK: "start a new conversation",
    STEERED: "be told during the turn that was going",
}
"""The previews that a decision can contradict. That a message waits or is held first contradicts none."""


def notices_of(
    tx: Transaction, wakes: Sequence[WakeView], decisions: Sequence[DecisionView], steered: Sequence[SteerView]
) -> tuple[str, ...]:
    """For each wake whose sender was shown something else than what was done."""
    found = (_notice(tx, wake, decisions, steered) for wake in wakes if wake.preview is not None)
    return tuple(dict.fromkeys(notice for notice in found if notice))


def _notice(
    tx: Transaction, wake: WakeView, decisions: Sequence[DecisionView], steered: Sequence[SteerView]
) -> str | None:
    told = read_foretold(wake.preview or "")
    words = None if told is None else _FORETOLD.get(told.outcome)
    if told is None or words is None or wake.run is None:
        return None
    happened = _happened(tx, told, wake, decisions, steered)
    if happened is None:
        return None
    known = None if told.session is None else session_name(tx, told.session)
    session = "an earlier session" if known is None else f"session {known.number}"
    return f"When it was sent, it was to {words.format(session=session)}; meanwhile that changed. {happened}"


def _happened(
    tx: Transaction, told: Foretold, wake: WakeView, decisions: Sequence[DecisionView], steered: Sequence[SteerView]
) -> str | None:
    """What was done instead, in a sentence; None if it came out as it was foretold, or nothing was done yet."""
    if any(wake.id in steer.wakes and steer.taken for steer in steered):
        return None if told.outcome == STEERED else f"{wake.run} told its agent during the turn."
    last = next((each for each in reversed(decisions) if each.outcome != Outcome.HOLD), None)
    if last is None or (told.outcome == last.outcome and _same_session(tx, told, last)):
        return None
    return last.words


def _same_session(tx: Transaction, told: Foretold, decision: DecisionView) -> bool:
    if decision.outcome not in USES_EARLIER_SESSION or told.session == decision.session:
        return True
    one, other = (None if each is None else session_name(tx, each) for each in (told.session, decision.session))
    return one is not None and other is not None and one.native == other.native
