"""Sessions, cursors and pins: what is kept of a conversation, and how it changes."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clew.kernel import (
    SESSION_TABLE,
    Cursor,
    Directory,
    NativeId,
    Pin,
    PinReason,
    RunId,
    SessionEvent,
    SessionState,
    UnreadableCursor,
    advance_session,
    pin,
    read_cursor,
    write_cursor,
)
from clew.kernel.session import known_ids
from tests.kernel.kit import HERE, THERE, session

PLACE = Directory("/srv/maze")


def pinned_by(order: int, native_id: str = "n-1", **changes: object) -> Pin:
    return Pin(RunId(f"run-{order}"), order, NativeId(native_id), HERE, PLACE, **changes)  # type: ignore[arg-type]


@given(st.integers(), st.text(min_size=1), st.text())
def test_a_cursor_survives_being_stored(version: int, native_id: str, extra: str) -> None:
    cursor = Cursor(version, NativeId(native_id), extra)
    assert read_cursor(write_cursor(cursor)) == cursor


def test_a_cursor_is_stored_as_it_is_read_and_its_extra_part_may_be_absent() -> None:
    assert write_cursor(Cursor(1, NativeId("ü"), "x")) == '{"v": 1, "id": "ü", "extra": "x"}'
    assert read_cursor('{"v": 3, "id": "n"}') == Cursor(3, NativeId("n"), "")
    assert read_cursor(None) is None


@pytest.mark.case("C12")
@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "it is not JSON"),
        ("{", "it is not JSON"),
        ("[" * 100_000, "it is not JSON"),
        ("[1]", "it is not an object"),
        ('"n"', "it is not an object"),
        ('{"id": "n"}', "it has no version number"),
        ('{"v": "1", "id": "n"}', "it has no version number"),
        ('{"v": true, "id": "n"}', "it has no version number"),
        ('{"v": 1}', "it has no session id"),
        ('{"v": 1, "id": ""}', "it has no session id"),
        ('{"v": 1, "id": 7}', "it has no session id"),
        ('{"v": 1, "id": "n", "extra": {}}', "its extra part is not text"),
    ],
)
def test_a_damaged_cursor_is_a_fault_and_not_a_guess(text: str, why: str) -> None:
    assert read_cursor(text) == UnreadableCursor(why)


@pytest.mark.case("C12")
@given(st.text())
def test_no_text_breaks_the_reading_of_a_cursor(text: str) -> None:
    assert isinstance(read_cursor(text), Cursor | UnreadableCursor)


@pytest.mark.case("C19", "C20")
@pytest.mark.parametrize("state", SessionState)
@pytest.mark.parametrize("event", SessionEvent)
def test_a_session_changes_only_as_the_table_says(state: SessionState, event: SessionEvent) -> None:
    assert advance_session(state, event) == SESSION_TABLE.get((state, event))
    if state in (SessionState.RETIRED, SessionState.MOVED):
        assert advance_session(state, event) is None
    if event is SessionEvent.TURN_COMPLETED:
        # A completed turn proves a session; one that is sealed, moved or retired cannot have had one.
        usable = state in (SessionState.HEALTHY, SessionState.POISONED, SessionState.LOST)
        assert advance_session(state, event) is (SessionState.HEALTHY if usable else None)


@pytest.mark.case("T07")
def test_a_sealed_session_is_either_given_back_or_gone() -> None:
    leaving = {event: after for (before, event), after in SESSION_TABLE.items() if before is SessionState.SEALED}
    assert leaving == {
        SessionEvent.UNSEALED: SessionState.HEALTHY,
        SessionEvent.MOVED: SessionState.MOVED,
    }


def test_known_ids_are_those_that_can_be_read() -> None:
    rows = [session(1), session(2, cursor=None), session(3, cursor=UnreadableCursor("why"))]
    assert known_ids(rows) == {"n-1"}


@pytest.mark.case("P14")
def test_an_id_that_is_not_durable_yet_is_pointed_to_by_nothing() -> None:
    ghost = pin(None, pinned_by(1, durable=False))
    assert (ghost.held, ghost.appends, ghost.reason) == (None, False, PinReason.NOT_DURABLE)
    assert ghost.words == "n-1 could not be found again yet, so it is not recorded."
    kept = pin(pinned_by(1), pinned_by(2, "n-2", durable=False))
    assert (kept.held, kept.appends) == (pinned_by(1), False)


@pytest.mark.case("L04")
def test_a_late_pin_fills_an_empty_slot_and_replaces_nothing_newer() -> None:
    first = pin(None, pinned_by(1))
    assert (first.held, first.appends, first.reason) == (pinned_by(1), True, PinReason.FIRST)
    assert first.words == "The lane had no session; n-1 is its first."
    late = pin(pinned_by(3, "n-3"), pinned_by(2, "n-2"))
    assert (late.held, late.appends, late.reason) == (pinned_by(3, "n-3"), False, PinReason.LATE)
    assert late.words == "Run run-2 is older than the one that set n-3, which stays."


@pytest.mark.case("P02")
def test_a_changed_id_is_a_new_generation() -> None:
    changed = pin(pinned_by(1), pinned_by(1, "n-2"))
    assert (changed.held, changed.appends, changed.reason) == (pinned_by(1, "n-2"), True, PinReason.NEW_GENERATION)
    assert changed.words == "n-2 follows n-1 as a new generation."
    moved = Pin(RunId("run-2"), 2, NativeId("n-1"), THERE, PLACE)
    assert pin(pinned_by(1), moved).reason is PinReason.NEW_GENERATION


@pytest.mark.case("P02", "C31")
def test_the_same_session_again_appends_nothing_and_moves_the_pointer_on() -> None:
    again = pin(pinned_by(1), pinned_by(2))
    assert (again.held, again.appends, again.reason) == (pinned_by(2), False, PinReason.SAME)
    assert again.words == "n-1 is the lane's session already."
