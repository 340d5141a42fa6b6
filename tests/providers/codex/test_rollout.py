"""Histories: a missing line is seen, a torn one is not mistaken for it."""

import json
from pathlib import Path

import pytest

from clew.providers.codex.rollout import (
    Broken,
    check,
    holds_conversation,
    lost_prompt,
    place_in,
    title_in,
    turns_in,
    written,
)

ID = "01a1e1d6-05fc-78b2-b1de-8f0bdb91b141"


def line(ordinal: int | None, kind: str = "event_msg", **payload: object) -> bytes:
    numbered = {} if ordinal is None else {"ordinal": ordinal}
    return json.dumps({**numbered, "type": kind, "payload": payload}, separators=(",", ":")).encode() + b"\n"


def history(*ordinals: int | None, **meta: object) -> bytes:
    first, *rest = ordinals
    return line(first, "session_meta", id=ID, cwd="/w", **meta) + b"".join(line(each) for each in rest)


TORN = b'{"timestamp":"2026-11-\n'


@pytest.mark.parametrize(
    "data",
    [
        history(0, 1, 2),
        history(0, 1) + TORN + line(2),
        history(14, 15, history_base={"thread_id": "x", "end_ordinal_exclusive": 14, "end_byte_offset": 99}),
        history(None, None),
    ],
)
def test_a_whole_history_is_taken(data: bytes) -> None:
    assert check(data, ID).thread == ID


@pytest.mark.case("T02")
@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"garbage\n",
        line(0) + line(1),
        history(0, 1, 3),
        history(0, 1) + TORN + line(3),
        history(0, 1, 2)[:-5],
        history(1, 2),
        history(14, 15),
        history(0, 1, 1),
        history(None, None) + TORN,
        history(0, 1).replace(ID.encode(), ID.replace("0", "1").encode()),
    ],
)
def test_a_history_with_a_loss_is_not(data: bytes) -> None:
    with pytest.raises(Broken):
        check(data, ID)


BEGUN, SAID = line(1, type="task_started"), line(2, type="item_completed", item={"type": "UserMessage"})


@pytest.mark.case("T02")
@pytest.mark.parametrize(
    ("data", "lost"),
    [
        (BEGUN + SAID + line(3, type="task_complete"), False),
        (BEGUN + TORN + line(2, type="task_started") + SAID, True),
        (BEGUN + TORN + line(2, type="turn_aborted"), True),
        (BEGUN + TORN, True),
        (BEGUN + SAID + TORN + line(3, type="task_started") + SAID, False),
        (BEGUN + SAID + line(3, type="task_complete") + TORN + BEGUN + SAID, False),
    ],
)
def test_a_prompt_that_was_not_written_down_is_missed(data: bytes, lost: bool) -> None:
    assert lost_prompt(history(0) + data) is lost


def test_a_turn_is_written_when_its_last_line_is_whole(tmp_path: Path) -> None:
    file = tmp_path / "rollout"
    assert not written(file, 0, "turn-1")
    file.write_bytes(b"before\n")
    assert not written(file, 7, "turn-1")
    file.write_bytes(b'before\n{"turn_id":"turn-1"}\n{"turn')
    assert not written(file, 7, "turn-1")
    file.write_bytes(b'before\n{"turn_id":"turn-1"}\n')
    assert written(file, 7, "turn-1")


def test_what_a_history_tells() -> None:
    prompt = {"type": "UserMessage", "content": [{"type": "text", "text": 'say "type":"task_started"\nplease'}]}
    data = (
        history(0)
        + line(1, type="task_started")
        + line(2, type="item_completed", item=prompt)
        + line(3, "turn_context", cwd="/w/one")
        + line(4, type="thread_settings_applied", thread_settings={"cwd": "/w/two"})
    )
    assert turns_in(data) == 1
    assert title_in(data) == 'say "type":"task_started" please'
    assert place_in(data) == "/w/two"
    assert holds_conversation(data)
    assert not holds_conversation(line(4, type="thread_settings_applied", thread_settings={}))
    assert not holds_conversation(b"")
