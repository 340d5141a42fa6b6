"""Cursors: an id of another shape, or of another version, reaches no program."""

import pytest

from clew.kernel import Cursor, NativeId, ProbeKind
from clew.programs.cursor import MALFORMED, CursorForm, MalformedId, failed_probe
from clew.programs.faults import Refused, TooSlow

FORM = CursorForm("Parrot", r"p-[0-9]+", version=3)


def test_a_cursor_leads_back_to_its_id() -> None:
    assert FORM.id_of(FORM.cursor("p-17")) == "p-17"
    assert FORM.cursor("p-17").version == 3


@pytest.mark.parametrize("id_", ["", "17", "p-", "p-17\n", "../p-17", "p-17 p-18"])
def test_an_id_of_another_shape_is_malformed(id_: str) -> None:
    with pytest.raises(MalformedId, match="is not a session id of Parrot") as told:
        FORM.id_of(Cursor(3, NativeId(id_)))
    probe = failed_probe(told.value)
    assert (probe.kind, probe.signal) == (ProbeKind.REJECTED, MALFORMED)


def test_a_cursor_of_another_version_is_refused_and_not_malformed() -> None:
    with pytest.raises(Refused, match="version 3, not 2") as told:
        FORM.id_of(Cursor(2, NativeId("p-17")))
    assert failed_probe(told.value).kind is ProbeKind.UNREACHABLE


def test_a_probe_that_failed_says_why() -> None:
    probe = failed_probe(TooSlow("It did not answer.", "Try again."))
    assert (probe.kind, probe.detail) == (ProbeKind.UNREACHABLE, "It did not answer. Try again.")
