"""What a person sees and does at a terminal."""

import re
import threading
from dataclasses import replace

import pytest

from clew.protocol.views import EventView
from tests.cli import samples
from tests.cli.stub import Asked, Stub
from tests.cli.terminal import terminal
from tests.cli.test_turns import chatting, frames

TOLD = {"taken": True, "state": "stopping", "words": "It is told to stop."}


def test_tables_are_drawn_with_times_as_people_say_them(stub: Stub) -> None:
    stub.on("GET", "/threads", [samples.THREAD])
    with terminal("threads", CLEW_DATA=str(stub.data)) as screen:
        assert screen.ended() == 0
        assert "─" in screen.seen
        assert re.search(r"\d+ d ago", screen.seen)
        assert "\x1b[3" not in screen.seen, "NO_COLOR is set"


def test_a_terminal_is_shown_beginnings_of_ids_and_no_cells_of_two_letters(stub: Stub) -> None:
    stub.on("GET", "/runs", [replace(samples.RUN, id=f"rn_{number:020x}") for number in (2**76, 2**77)])
    for columns in ("100", "40"):
        with terminal("runs", CLEW_DATA=str(stub.data), COLUMNS=columns) as screen:
            assert screen.ended() == 0
            assert ("─" in screen.seen) is (columns == "100")
            lines = [line for line in screen.seen.splitlines() if "rn_" in line]
            assert [line.split()[0] for line in lines] == ["rn_100000000000000", "rn_200000000000000"]
            assert all("succeeded" in line for line in lines)
    # Two that begin alike are shown in full.
    stub.on("GET", "/runs", [replace(samples.RUN, id=f"rn_{number:020x}") for number in (1, 2)])
    with terminal("runs", CLEW_DATA=str(stub.data)) as screen:
        assert screen.ended() == 0
        assert f"rn_{1:020x}" in screen.seen


def test_colours_are_used_unless_they_are_not_wanted(stub: Stub) -> None:
    stub.on("GET", "/runs", [samples.RUN])
    with terminal("runs", CLEW_DATA=str(stub.data), NO_COLOR="") as screen:
        assert screen.ended() == 0
        assert "\x1b[32msucceeded" in screen.seen


def test_a_conversation_is_typed_answered_and_left(stub: Stub) -> None:
    chatting(stub)
    stub.streams += [frames(samples.RUN), frames(samples.RUN)]
    with terminal("chat", "ada", CLEW_DATA=str(stub.data)) as screen:
        screen.until("chat-1 with ada. Ctrl-C interrupts a turn, Ctrl-D leaves.")
        screen.until("> ")
        screen.type("hello\n")
        screen.until("Hello! All well.\n")
        screen.until("> ")
        screen.type("\n")
        screen.until("> ")
        screen.type("and on\n")
        screen.until("Done.\n")
        screen.until("> ")
        screen.type("\x04")
        screen.until("Continue with `clew chat --in chat-1`.")
        assert screen.ended() == 0
    assert [body["text"] for body in stub.bodies("POST", "/threads/chat-1/words")] == ["hello", "and on"]


@pytest.mark.case("A03")
def test_what_an_agent_asks_is_answered_in_the_conversation(stub: Stub) -> None:
    chatting(stub)
    stub.on("POST", "/approvals/ap_1", replace(samples.APPROVAL, state="denied"))
    stub.on("POST", "/approvals/ap_2", replace(samples.QUESTION, state="stale"))
    stub.streams.append(frames(samples.GOING, samples.APPROVAL, samples.QUESTION, samples.RUN))
    with terminal("chat", "ada", CLEW_DATA=str(stub.data)) as screen:
        screen.until("> ")
        screen.type("hello\n")
        screen.until("$ rm -r build\n")
        screen.until("Allow? y/n: ")
        screen.type("what?\n")
        screen.until("Allow? y/n: ")
        screen.type("n keep it\n")
        screen.until("2. blue\n")
        screen.until("Answer: ")
        screen.type("2\n")
        screen.until("The request is stale.")
        screen.until("> ")
    assert stub.bodies("POST", "/approvals/ap_1") == [{"allow": False, "text": "keep it"}]
    assert stub.bodies("POST", "/approvals/ap_2") == [{"allow": True, "text": "blue"}]


def test_ctrl_c_interrupts_the_turn_and_then_the_conversation_goes_on(stub: Stub) -> None:
    chatting(stub)
    reached = threading.Event()
    stub.on("POST", "/runs/run-1/interrupt", TOLD)
    stub.on("GET", "/runs/run-1", replace(samples.RUN, state="cancelled", words="A person stopped it."))

    def slow(_: Asked) -> list[EventView]:
        # The log is read when the run ended; until it is interrupted, that does not happen.
        if not reached.is_set():
            reached.set()
            pressed.wait(60)
        return []

    pressed = threading.Event()
    stub.on("GET", "/runs/run-1/events", slow)
    stub.streams += [frames(samples.RUN), frames(samples.RUN)]
    try:
        with terminal("chat", "ada", CLEW_DATA=str(stub.data)) as screen:
            screen.until("> ")
            screen.type("hello\n")
            assert reached.wait(60)
            screen.type("\x03")
            screen.until("It is told to stop.")
            screen.until("The run was cancelled: A person stopped it.")
            screen.until("> ")
            screen.type("half a line")
            screen.until("half a line")
            screen.press("\x03", "Press Ctrl-D to leave.")
            screen.until("> ")
            screen.type("\x04")
            assert screen.ended() == 0
    finally:
        pressed.set()
    assert len(stub.bodies("POST", "/runs/run-1/interrupt")) == 1
    assert len(stub.bodies("POST", "/threads/chat-1/words")) == 1


def test_what_is_refused_does_not_end_the_conversation(stub: Stub) -> None:
    chatting(stub)
    del stub.answers["POST", "/threads/chat-1/words"]
    with terminal("chat", "ada", CLEW_DATA=str(stub.data)) as screen:
        screen.until("> ")
        screen.type("hello\n")
        screen.until("clew: No /threads/chat-1/words. Do something else. [api:no-such-thing]")
        screen.until("> ")


def test_json_is_not_for_a_terminal(stub: Stub) -> None:
    with terminal("chat", "ada", "--json", CLEW_DATA=str(stub.data)) as screen:
        assert screen.ended() == 1
        assert "A conversation in a terminal is not JSON." in screen.seen
    assert stub.asked == []
