"""What a person sees and does at a terminal."""

import re
import threading
from dataclasses import replace

import pytest

from clew.cli.safe_text import width
from clew.protocol.usage import UsedView
from clew.protocol.views import CheckView, EventView
from tests.cli import samples
from tests.cli.kit import here
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


LONG_WORDS = "Its program is gone: claude is not on the PATH of the server. " * 4
WIDE_RUN = replace(
    samples.RUN, ref="run-1234", state="queued", held="person", words=LONG_WORDS, used=UsedView(12_345, 678, 0, 0.5)
)
WIDE: dict[str, tuple[str, list[object]]] = {
    "runs": ("/runs", [WIDE_RUN, samples.RUN]),
    "threads": ("/threads", [replace(samples.ISSUE, title="A title that is rather long for a table " * 3)]),
    "approvals": ("/approvals", [replace(samples.APPROVAL, words=LONG_WORDS)]),
    "agent list": ("/agents", [samples.AGENT]),
    "project list": ("/projects", [replace(samples.PROJECT, source="/srv/" + "deep/" * 40)]),
    "doctor": ("/doctor", [CheckView("claude", "failed", LONG_WORDS, "Install it with `npm install -g claude`.")]),
}


@pytest.mark.parametrize("columns", [40, 80, 200])
@pytest.mark.parametrize("command", WIDE)
def test_a_table_fits_the_terminal_and_breaks_no_line(stub: Stub, command: str, columns: int) -> None:
    path, views = WIDE[command]
    stub.on("GET", path, views)
    with terminal(*command.split(), columns=columns, CLEW_DATA=str(stub.data)) as screen:
        screen.ended()
    table = screen.seen.splitlines()[: 2 + len(views)]
    assert max(map(width, table)) <= columns, screen.seen
    assert "─" in table[1]
    assert "…" in "".join(table) or command == "agent list" or columns != 80
    if command == "doctor":
        assert "claude: Install it with `npm install -g claude`.\n" in screen.seen, "what to type is never cut"
    if command == "runs":
        assert [line.split()[0] for line in table[2:]] == ["run-1234", "run-1"], "names can be typed"
        assert "held" in table[2]
        assert ("$0.50" in table[2]) is (columns == 200)


def test_what_is_piped_is_not_cut(stub: Stub, capfd: pytest.CaptureFixture[str]) -> None:
    stub.on("GET", "/runs", [WIDE_RUN])
    assert " ".join(LONG_WORDS.split()) in here(capfd, "runs").out


def test_ids_are_shown_as_beginnings_that_are_unique(stub: Stub) -> None:
    stub.on("GET", "/approvals", [replace(samples.APPROVAL, id=f"ap_{number:020x}") for number in (2**76, 2**77)])
    with terminal("approvals", CLEW_DATA=str(stub.data)) as screen:
        assert screen.ended() == 0
    lines = [line for line in screen.seen.splitlines() if "ap_" in line]
    assert [line.split()[0] for line in lines] == ["ap_100000000000000", "ap_200000000000000"]
    # Two that begin alike are shown in full.
    stub.on("GET", "/approvals", [replace(samples.APPROVAL, id=f"ap_{number:020x}") for number in (1, 2)])
    with terminal("approvals", CLEW_DATA=str(stub.data)) as screen:
        assert screen.ended() == 0
        assert f"ap_{1:020x}" in screen.seen


def test_a_resume_is_one_dim_line_and_anything_else_speaks(stub: Stub) -> None:
    """A resume is what everybody expects; that a conversation was begun anew is not."""
    for decision, seen in (
        ("resume", "\x1b[2m· Continuing (run-1).\x1b[0m\n"),
        ("reseed", "\n· reseed: The session is lost. (run-1)\n"),
        ("fork", "\n· fork: The session is lost. (run-1)\n"),
    ):
        chatting(stub)
        stub.streams.append(
            frames(replace(samples.RUN, decision=decision, decision_words="The session is lost.", state="running"))
        )
        stub.on("GET", "/runs/run-1", replace(samples.RUN, decision=decision, decision_words="The session is lost."))
        stub.streams.append(frames(replace(samples.RUN, decision=decision, decision_words="The session is lost.")))
        with terminal("chat", "ada", "--once", "hello", CLEW_DATA=str(stub.data), NO_COLOR="") as screen:
            screen.ended()
        assert seen in f"\n{screen.seen}", screen.seen


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
