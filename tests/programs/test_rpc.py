"""Calls over a program's lines."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from clew.programs.faults import NotUnderstood, ProgramEnded, TooSlow
from clew.programs.program import Program
from clew.programs.rpc import CallRefused, Message, Peer
from tests.programs.kit import eventually, python, run

# Answers as it is told to, in whatever order, and asks back.
OTHER = """
import json, sys
def say(**message): print(json.dumps(message), flush=True)
for line in sys.stdin:
    message = json.loads(line)
    method, number = message.get("method"), message.get("id")
    if method == "echo": say(id=number, result=message["params"])
    elif method == "later": held = number
    elif method == "now": say(id=number, result="now"); say(id=held, result="later")
    elif method == "fail": say(id=number, error={"code": -7, "message": "no", "data": {"why": "so"}})
    elif method == "odd": say(id=number)
    elif method == "noise":
        print("a line of a log"); print("[1]"); print('"text"'); print("{broken", flush=True)
        say(id=999, result="to nobody"); say(id=number, result="fine")
    elif method == "lists":
        say(method="told", params=[1]); say(method="odd", id=[1], params=7); say(id=number, result="fine")
    elif method == "half": say(id=number, result="cut \\ud83d here")
    elif method == "deaf": import time; time.sleep(300)
    elif method == "ask": say(id="q1", method="question", params={"n": 1}); asked = number
    elif method == "die": print("last words", file=sys.stderr, flush=True); sys.exit(3)
    elif method == "tell": say(method="told", params={"n": 2}); say(method="bare"); say(id=number, result=None)
    elif method is None and number == "q1": say(id=asked, result=message.get("result", message.get("error")))
"""


class Heard:
    def __init__(self) -> None:
        self.told: list[tuple[str, Message]] = []
        self.asked: list[tuple[int | str, str, Message]] = []
        self.ended: list[str] = []


async def met(directory: Path) -> tuple[Program, Peer, Heard]:
    heard = Heard()
    program = await python(OTHER, directory)
    peer = Peer(
        program,
        lambda method, said: heard.told.append((method, said)),
        lambda number, method, said: heard.asked.append((number, method, said)),
        heard.ended.append,
    )
    return program, peer, heard


def scene(directory: Path, play: Any) -> Any:
    async def whole() -> Any:
        program, peer, heard = await met(directory)
        try:
            return await play(peer, heard, program)
        finally:
            await program.end(1)
            await peer.close()

    return run(whole())


def test_answers_find_their_calls_in_any_order(tmp_path: Path) -> None:
    async def play(peer: Peer, _heard: Heard, _program: Program) -> list[Any]:
        calls = (peer.call("later", {}, 5), peer.call("now", {}, 5), peer.call("echo", {"text": "é\n"}, 5))
        return list(await asyncio.gather(*calls))

    assert scene(tmp_path, play) == ["later", "now", {"text": "é\n"}]


def test_a_refusal_carries_code_words_and_data(tmp_path: Path) -> None:
    async def play(peer: Peer, _heard: Heard, _program: Program) -> None:
        with pytest.raises(CallRefused) as caught:
            await peer.call("fail", {}, 5)
        assert (caught.value.code, caught.value.words, caught.value.data) == (-7, "no", {"why": "so"})
        with pytest.raises(NotUnderstood):
            await peer.call("odd", {}, 5)

    scene(tmp_path, play)


def test_what_is_no_message_is_passed_over(tmp_path: Path) -> None:
    async def play(peer: Peer, _heard: Heard, _program: Program) -> Any:
        return await peer.call("noise", {}, 5)

    assert scene(tmp_path, play) == "fine"


def test_half_a_character_loses_no_message(tmp_path: Path) -> None:
    """JavaScript cuts a text also in the middle of a character, and writes the half."""

    async def play(peer: Peer, _heard: Heard, _program: Program) -> None:
        assert await peer.call("half", {}, 5) == "cut \ufffd here"
        assert await peer.call("echo", {"text": "cut \ud83d here"}, 5) == {"text": "cut \ufffd here"}

    scene(tmp_path, play)


def test_what_is_told_with_no_object_is_told_with_an_empty_one(tmp_path: Path) -> None:
    async def play(peer: Peer, heard: Heard, _program: Program) -> None:
        assert await peer.call("lists", {}, 5) == "fine"
        assert (heard.told, heard.asked) == ([("told", {})], [])

    scene(tmp_path, play)


def test_a_call_to_a_program_that_does_not_read_has_its_deadline(tmp_path: Path) -> None:
    async def play(peer: Peer, _heard: Heard, _program: Program) -> None:
        await peer.notify("deaf")
        with pytest.raises(TooSlow, match="echo"):
            await peer.call("echo", {"text": "x" * 10_000_000}, 0.3)

    scene(tmp_path, play)


def test_no_answer_in_time_is_a_fault_and_a_late_one_harms_nobody(tmp_path: Path) -> None:
    async def play(peer: Peer, _heard: Heard, _program: Program) -> Any:
        with pytest.raises(TooSlow, match="later"):
            await peer.call("later", {}, 0.2)
        assert await peer.call("now", {}, 5) == "now"
        return await peer.call("echo", {"after": 1}, 5)

    assert scene(tmp_path, play) == {"after": 1}


@pytest.mark.parametrize("refused", [False, True])
def test_the_other_side_asks_and_is_answered(tmp_path: Path, refused: bool) -> None:
    async def play(peer: Peer, heard: Heard, _program: Program) -> Any:
        asking = asyncio.create_task(peer.call("ask", {}, 5))
        assert await eventually(lambda: bool(heard.asked))
        ((number, method, said),) = heard.asked
        assert (method, said) == ("question", {"n": 1})
        if refused:
            await peer.refuse(number, -1, "no")
        else:
            await peer.reply(number, {"yes": True})
        return await asking

    assert scene(tmp_path, play) == ({"code": -1, "message": "no"} if refused else {"yes": True})


def test_what_needs_no_answer_is_told(tmp_path: Path) -> None:
    async def play(peer: Peer, heard: Heard, _program: Program) -> Any:
        assert await peer.call("tell", {}, 5) is None
        return heard.told

    assert scene(tmp_path, play) == [("told", {"n": 2}), ("bare", {})]


def test_the_end_of_the_program_ends_its_calls_with_its_last_words(tmp_path: Path) -> None:
    async def play(peer: Peer, heard: Heard, _program: Program) -> None:
        waiting = asyncio.create_task(peer.call("later", {}, 60))
        with pytest.raises(ProgramEnded, match="last words"):
            await peer.call("die", {}, 60)
        with pytest.raises(ProgramEnded, match="last words"):
            await waiting
        assert heard.ended == ["last words"]
        with pytest.raises(ProgramEnded, match="last words"):
            await peer.call("echo", {}, 60)

    scene(tmp_path, play)
