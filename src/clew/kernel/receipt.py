"""Receipts: what happened to a wake and why, also when nothing ran."""

from collections.abc import Mapping
from dataclasses import dataclass

from clew.kernel.admission import Admission, AdmissionVerdict
from clew.kernel.ids import Instant, WakeId
from clew.kernel.reason import Reason
from clew.kernel.wake import WakeEnd, WakeState


class Carried(Reason):
    BY_RUN = "carried:by-run", "Taken by run {run}."
    STEERING = "carried:steering", "Run {run} is telling its agent during the current turn."
    STEERED = "carried:steered", "Run {run} told its agent during the turn."


class Served(Reason):
    BY_RUN = "served:by-run", "Run {run} served it."
    READ_BACK = "served:read-back", "Run {run} served it; the reply was read from the agent's own store afterwards."


@dataclass(frozen=True, slots=True)
class Receipt:
    """One line of a wake's record: its state since `at`, and why."""

    wake: WakeId
    state: WakeState
    reason: Reason
    words: str
    at: Instant


CANCELLING = frozenset({WakeEnd.REASSIGNED, WakeEnd.CLOSED, WakeEnd.BY_USER, WakeEnd.GAVE_UP})
"""The ends after a wake was accepted; all others are skips."""

ADMITTED: Mapping[AdmissionVerdict, WakeState] = {
    AdmissionVerdict.ACCEPT: WakeState.PENDING,
    AdmissionVerdict.DEFER: WakeState.PENDING,
    AdmissionVerdict.SKIP: WakeState.SKIPPED,
    AdmissionVerdict.REFUSE: WakeState.SKIPPED,
}
"""A refused wake was never queued. It leaves a receipt only, as a skipped one does."""


def on_admission(wake: WakeId, admission: Admission, at: Instant) -> Receipt:
    return Receipt(wake, ADMITTED[admission.verdict], admission.reason, admission.words, at)


def on_end(wake: WakeId, end: WakeEnd, at: Instant, **facts: object) -> Receipt:
    """The receipt of a wake that ended without being served; `facts` fill the places of the sentence."""
    state = WakeState.CANCELLED if end in CANCELLING else WakeState.SKIPPED
    return Receipt(wake, state, end, end.fill(**facts), at)
