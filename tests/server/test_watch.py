"""Events as text, and the mark of how far a client has read."""

import json

from hypothesis import given
from hypothesis import strategies as st

from clew.protocol.views import LogView
from clew.server.watch import StreamPosition, event, read_position


def parts(said: bytes) -> dict[str, str]:
    assert said.endswith(b"\n\n")
    lines = said.decode().removesuffix("\n\n").split("\n")
    return dict(line.split(": ", 1) for line in lines)


@given(
    st.floats(0, 4_000_000_000, allow_nan=False).map(lambda n: round(n, 6)).filter(lambda n: n == 0 or n > 1),
    st.dictionaries(st.from_regex(r"[A-Za-z0-9_-]{1,40}", fullmatch=True), st.integers(0, 10**12), max_size=20),
)
def test_a_mark_is_read_as_it_was_written(ended: float, lines: dict[str, int]) -> None:
    assert read_position(str(StreamPosition(ended, lines))) == StreamPosition(ended, lines)


@given(st.text())
def test_whatever_a_client_says_is_a_mark_or_none(said: str) -> None:
    found = read_position(said)
    assert found is None or isinstance(found, StreamPosition)


def test_an_event_is_one_line_of_json_whatever_is_in_it() -> None:
    body = {"text": "a\nb\r\nc\u2028d\0e"}
    told = parts(event("log", LogView("rn_1", 7, "text", 1.5, body), StreamPosition(2.0, {"rn_1": 7})))
    assert (told["event"], told["id"]) == ("log", "2.0,rn_1:7")
    assert json.loads(told["data"]) == {"run": "rn_1", "seq": 7, "kind": "text", "at": 1.5, "body": body}


def test_half_a_character_is_told_as_an_escape() -> None:
    told = parts(event("log", LogView("rn_1", 1, "text", 1.5, {"text": "cut \ud83d"})))
    assert json.loads(told["data"])["body"] == {"text": "cut \ud83d"}
