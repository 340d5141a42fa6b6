"""Receipts: "why not" has an answer for every wake that was not served."""

import pytest

from clew.kernel.admission import (
    CANCELLING,
    Admission,
    AdmissionReason,
    AdmissionVerdict,
    Receipt,
    Served,
    dedupe,
    on_admission,
    on_end,
)
from clew.kernel.ids import RunId, ThreadId, WakeId
from clew.kernel.wake import WAKE_ENDS, WakeEnd, WakeState

WAKE = WakeId("w")


@pytest.mark.case("W15", "W07")
@pytest.mark.parametrize("end", list(WakeEnd))
def test_every_end_has_a_receipt_whose_state_is_that_of_its_code(end: WakeEnd) -> None:
    receipt = on_end(WAKE, end, 5.0, depth=7, limit=6, why="it failed.")
    assert receipt.state == end.code.partition(":")[0]
    assert receipt.state in WAKE_ENDS
    assert (receipt.wake, receipt.reason, receipt.at) == (WAKE, end, 5.0)
    assert receipt.words == end.fill(depth=7, limit=6, why="it failed.")


@pytest.mark.case("W15")
def test_only_five_ends_cancel() -> None:
    by_a_person = {WakeEnd.REASSIGNED, WakeEnd.CLOSED, WakeEnd.BY_USER, WakeEnd.TAKEN_BACK}
    assert {*by_a_person, WakeEnd.GAVE_UP} == CANCELLING


@pytest.mark.case("W15")
@pytest.mark.parametrize(
    ("verdict", "state"),
    [
        (AdmissionVerdict.ACCEPT, WakeState.PENDING),
        (AdmissionVerdict.DEFER, WakeState.PENDING),
        (AdmissionVerdict.SKIP, WakeState.SKIPPED),
        (AdmissionVerdict.REFUSE, WakeState.SKIPPED),
    ],
)
def test_the_answer_at_the_door_has_a_receipt(verdict: AdmissionVerdict, state: WakeState) -> None:
    admission = Admission(verdict, AdmissionReason.PAUSED, "words")
    assert on_admission(WAKE, admission, 5.0) == Receipt(WAKE, state, AdmissionReason.PAUSED, "words", 5.0)


@pytest.mark.case("W15", "W03")
def test_a_deduplicated_request_has_a_receipt() -> None:
    deduped = dedupe((WakeId("first"), ThreadId("t")), ThreadId("t"))
    assert isinstance(deduped.reason, WakeEnd)
    assert on_end(WAKE, deduped.reason, 5.0) == Receipt(
        WAKE,
        WakeState.SKIPPED,
        WakeEnd.DUPLICATE,
        "A duplicate: the same request was already accepted.",
        5.0,
    )


@pytest.mark.case("W07")
def test_a_served_wake_names_its_run() -> None:
    assert Served.BY_RUN.fill(run=RunId("r1")) == "Run r1 served it."
    assert Served.BY_RUN.code == "served:by-run"
