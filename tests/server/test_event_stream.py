"""Events as text, and what a feed keeps for its readers."""

import json

import pytest

from clew.protocol.live import BeatView
from clew.protocol.views import LogView
from clew.server import ring
from clew.server.event_stream import event, id_line
from clew.server.ring import Ring


def parts(said: bytes) -> dict[str, str]:
    assert said.endswith(b"\n\n")
    lines = said.decode().removesuffix("\n\n").split("\n")
    return dict(line.split(": ", 1) for line in lines)


def test_an_event_is_one_line_of_json_whatever_is_in_it() -> None:
    body = {"text": "a\nb\r\nc\u2028d\0e"}
    told = parts(id_line("1,4:7") + event("log", LogView("rn_1", 7, "text", 1.5, body)))
    assert (told["event"], told["id"]) == ("log", "1,4:7")
    assert json.loads(told["data"]) == {"run": "rn_1", "seq": 7, "kind": "text", "at": 1.5, "body": body}
    assert parts(event("beat", BeatView(1.5, "1"))) == {"event": "beat", "data": '{"at":1.5,"version":"1"}'}


def test_half_a_character_is_told_as_an_escape() -> None:
    told = parts(event("log", LogView("rn_1", 1, "text", 1.5, {"text": "cut \ud83d"})))
    assert json.loads(told["data"])["body"] == {"text": "cut \ud83d"}


def test_a_reader_gets_what_is_new_to_it_or_learns_that_it_is_too_late(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ring, "LONGEST", 3)
    kept: Ring[str] = Ring(lambda: 0.0)
    assert kept.since(0) == []
    for number, item in enumerate("abcd", start=1):
        kept.append(item, 1)
        assert kept.end == number
    assert [kept.since(number) for number in range(5)] == [None, ["b", "c", "d"], ["c", "d"], ["d"], []]


def test_what_is_kept_is_bounded_by_its_size_and_its_age(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ring, "LARGEST", 10)
    now = 0.0
    kept: Ring[str] = Ring(lambda: now)
    for item in "abc":
        kept.append(item, 4)
    assert (kept.since(0), kept.since(1)) == (None, ["b", "c"])
    now = ring.OLDEST + 1
    kept.expire()
    assert (kept.since(2), kept.since(3)) == (None, [])
    # One that is larger than all that may be kept: each reader reads it from the store.
    kept.append("d", 11)
    assert (kept.since(3), kept.since(4)) == (None, [])
