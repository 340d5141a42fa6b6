"""The position of a stream as text, and how it moves with every line."""

from hypothesis import given
from hypothesis import strategies as st

from clew.protocol.live import TRACKED, LogLine, LogPosition, LogRun
from clew.protocol.stream_position import StreamPosition, read_position, write_position
from clew.protocol.views import LogView

NUMBERS = st.integers(0, 2**31 - 1)


@given(st.dictionaries(NUMBERS, NUMBERS, max_size=20), st.sets(st.from_regex(r"[A-Za-z0-9_.-]{1,40}", fullmatch=True)))
def test_a_position_is_read_as_it_was_written(lines: dict[int, int], threads: set[str]) -> None:
    parts = (*(str(LogPosition({"lane": {number: line}})) for number, line in lines.items()), *threads)
    assert read_position(write_position(parts)) == StreamPosition(lines, frozenset(threads))


@given(st.text() | st.from_regex(r"1(,[0-9a-z:]*)*", fullmatch=True))
def test_whatever_a_client_says_is_a_position_or_none(said: str) -> None:
    found = read_position(said)
    assert found is None or isinstance(found, StreamPosition)


def test_what_no_database_can_have_is_no_position() -> None:
    for said in ("", "2,1:1", "1763438400.0,rn_0660:3", "1,", "1,4:", "1,2147483648:1", "1,1:2147483648", "1,a b"):
        assert read_position(said) is None, said
    assert read_position("1") == StreamPosition()
    assert read_position("1" + ",1:1" * 8000) is None


def test_a_position_lists_the_newest_runs_of_each_lane() -> None:
    place = LogPosition()
    for number in range(1, TRACKED + 3):
        for seq in (1, 2):
            place = place.past(LogLine("a", number, LogView("rn", seq, "text", 0.0)))
    place = place.past(LogLine("b", 2, LogView("rn", 1, "text", 0.0)))
    assert place.lanes == {"a": {3: 2, 4: 2, 5: 2}, "b": {2: 1}}
    assert str(place) == "3:2,4:2,5:2,2:1"
    assert [place.last_line(LogRun("", "a", number, False)) for number in (2, 3, 6)] == [None, 2, 0]
    assert place.without(frozenset({2, 5})).lanes == {"a": {3: 2, 4: 2}}
