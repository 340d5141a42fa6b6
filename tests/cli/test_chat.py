"""A chat at a terminal: what is typed, what is sent, and what is seen meanwhile."""

import threading
from dataclasses import replace

import pytest

from clew.protocol.views import EventView, Spoken
from tests.cli import samples
from tests.cli.samples import log
from tests.cli.stub import Asked, Stub
from tests.cli.terminal import Terminal, terminal
from tests.cli.test_turns import chatting, frames, written

TOLD = {"taken": True, "state": "stopping", "words": "It is told to stop."}
READY = "Ctrl-D leaves, /help lists more."


def talking(stub: Stub) -> None:
    """Every message gets a wake and a run of its own."""
    chatting(stub)
    count = iter(range(1, 100))

    def spoken(_: Asked) -> Spoken:
        number = next(count)
        run = f"run-{number}"
        wake = replace(samples.WAKE, id=f"wake-{number}", run=run)
        stub.on("GET", f"/wakes/wake-{number}", replace(samples.SERVED, id=wake.id, run=wake.run))
        stub.on("GET", f"/runs/run-{number}", replace(samples.RUN, id=run, ref=run))
        stub.on("GET", f"/runs/run-{number}/events", written)
        stub.streams.append(frames(replace(samples.RUN, id=run, ref=run)))
        return Spoken(number, wake)

    stub.on("POST", "/threads/chat-1/words", spoken)


def sent(stub: Stub) -> list[str]:
    return [body["text"] for body in stub.bodies("POST", "/threads/chat-1/words")]


def leave(screen: Terminal) -> None:
    # Once more where it came while something was printed: the terminal itself takes it then.
    screen.press("\x04", "Continue with `clew chat --in chat-1`.")
    assert screen.ended() == 0


def test_a_conversation_is_typed_answered_and_left(stub: Stub) -> None:
    talking(stub)
    with terminal("chat", "ada", CLEW_DATA=str(stub.data)) as screen:
        screen.until("chat-1 with ada. Ctrl-C interrupts a turn, " + READY)
        for text in ("hello", "", "and on"):
            screen.type(f"{text}\r")
            if text:
                screen.until("Hello! All well.\n")
                screen.until("Done.\n")
        leave(screen)
    assert sent(stub) == ["hello", "and on"]


@pytest.mark.parametrize("columns", [80, 200])
def test_a_pasted_text_is_one_message(stub: Stub, columns: int) -> None:
    talking(stub)
    pasted = "def f():\n\n    return " + "1 + " * 60 + "1\n# the end"
    with terminal("chat", "ada", columns=columns, CLEW_DATA=str(stub.data)) as screen:
        screen.until(READY)
        screen.type(f"look:\x1b[200~{pasted}\x1b[201~")
        screen.type("\r")
        screen.until("Done.\n")
        leave(screen)
    assert sent(stub) == [f"look:{pasted}"]


def test_a_line_ended_by_a_backslash_goes_on_and_so_does_alt_enter(stub: Stub) -> None:
    talking(stub)
    with terminal("chat", "ada", CLEW_DATA=str(stub.data)) as screen:
        screen.until(READY)
        for typed in ("one\\", "\r", "two", "\x1b\r", "three \\ four", "\r"):
            screen.type(typed)
        screen.until("Done.\n")
        leave(screen)
    assert sent(stub) == ["one\ntwo\nthree \\ four"]


def test_slash_words_are_for_clew_and_never_for_the_model(stub: Stub) -> None:
    talking(stub)
    stub.on("GET", "/agents/ada", samples.AGENT)
    stub.on("PATCH", "/agents/ada", replace(samples.AGENT, mode="read"))
    stub.on("GET", "/why/chat-1", samples.WHY)
    with terminal("chat", "ada", CLEW_DATA=str(stub.data)) as screen:
        screen.until(READY)
        for typed, seen in (
            ("/help", "/fresh [TEXT]  start the next message in a new conversation"),
            ("/exti", "There is no /exti, and nothing was sent."),
            ("/model opus", "There is no /model, and nothing was sent."),
            ("/mode", "ada's mode is edit, in all its threads, from its next turn."),
            ("/mode read", "ada's mode is read,"),
            ("/why", "reseed: Its session is lost, so a new one is handed a brief. [session:lost]"),
            ("/fresh", "Your next message starts a new conversation."),
            ("hello", "Done.\n"),
            ("/fresh anew", "Done.\n"),
            # These begin with a slash and are messages.
            ("/etc/hosts is wrong", "Done.\n"),
            (" /help", "Done.\n"),
        ):
            screen.type(f"{typed}\r")
            screen.until(seen)
        screen.type("/exit\r")
        screen.until("Continue with `clew chat --in chat-1`.")
        assert screen.ended() == 0
    assert sent(stub) == ["hello", "anew", "/etc/hosts is wrong", " /help"]
    assert [body["fresh"] for body in stub.bodies("POST", "/threads/chat-1/words")] == [True, True, False, False]
    assert stub.bodies("PATCH", "/agents/ada") == [{"mode": "read"}]


@pytest.mark.parametrize("columns", [80, 200])
@pytest.mark.parametrize(
    ("code", "label"),
    [
        ("accepted:queued", "· Queued. ada is busy; it will be told in the next turn."),
        ("accepted:steered", "· Steered. ada is busy; it will be told during this turn, or at the start of the"),
    ],
)
def test_what_is_typed_during_a_turn_is_shown_as_queued_or_steered(
    stub: Stub, columns: int, code: str, label: str
) -> None:
    """Meanwhile a line says what the agent does, and for how long."""
    chatting(stub)
    wakes = iter([samples.WAKE, replace(samples.WAKE, id="wake-2", run=None, code=code)])
    stub.on("POST", "/threads/chat-1/words", lambda _: Spoken(3, next(wakes)))
    # Steered into the run that is shown already, so there is nothing more to show.
    stub.on("GET", "/wakes/wake-2", replace(samples.SERVED, id="wake-2"))
    tool = log(1, "tool-started", id="1", name="Bash", command="make test", file=None)
    stub.streams.append(frames(samples.GOING, tool))
    with terminal("chat", "ada", columns=columns, CLEW_DATA=str(stub.data)) as screen:
        screen.until(READY)
        screen.type("hello\r")
        screen.until("· Bash: make test\n")
        screen.until("s Bash: make test")
        screen.type("and the docs\r")
        screen.until(label)
        stub.streams.append(frames(samples.RUN))
        screen.until("Done.\n")
        leave(screen)
    assert sent(stub) == ["hello", "and the docs"]
    assert screen.seen.count("Done.\n") == 1


def test_a_notice_does_not_cut_into_what_the_agent_says(stub: Stub) -> None:
    chatting(stub)
    wakes = iter([samples.WAKE, replace(samples.WAKE, id="wake-2", run=None, code="accepted:queued")])
    stub.on("POST", "/threads/chat-1/words", lambda _: Spoken(3, next(wakes)))
    stub.on("GET", "/wakes/wake-2", replace(samples.SERVED, id="wake-2"))
    stub.on("GET", "/runs/run-1/events", [])
    begun = log(1, "text", text="There is one way out, ", final=False)
    stub.streams.append(frames(samples.GOING, begun))
    with terminal("chat", "ada", CLEW_DATA=str(stub.data)) as screen:
        screen.until(READY)
        screen.type("hello\r")
        screen.until("There is one way out,")
        screen.type("and the docs\r")
        screen.until("· Queued. ada is busy; it will be told in the next turn.\n")
        stub.streams.append(frames(log(2, "text", text="to the north.\n", final=False), samples.RUN))
        screen.until("There is one way out, to the north.\n")
        leave(screen)


@pytest.mark.case("A03")
def test_what_an_agent_asks_is_answered_in_the_conversation(stub: Stub) -> None:
    chatting(stub)
    stub.on("POST", "/approvals/ap_1", replace(samples.APPROVAL, state="denied"))
    stub.on("POST", "/approvals/ap_2", replace(samples.QUESTION, state="stale"))
    stub.streams.append(frames(samples.GOING, samples.APPROVAL, samples.QUESTION, samples.RUN))
    with terminal("chat", "ada", CLEW_DATA=str(stub.data)) as screen:
        screen.until(READY)
        screen.type("hello\r")
        screen.until("$ rm -r build\n")
        screen.until("n: deny it, and a reason may follow; a: allow this command always")
        screen.type("what?\r")
        screen.type("n keep it\r")
        screen.until("2. blue\n")
        screen.type("2\r")
        screen.until("The request is stale.")
        screen.until("Done.\n")
        leave(screen)
    assert stub.bodies("POST", "/approvals/ap_1") == [{"allow": False, "text": "keep it"}]
    assert stub.bodies("POST", "/approvals/ap_2") == [{"allow": True, "text": "blue"}]
    assert sent(stub) == ["hello"]


def test_a_command_may_be_allowed_always(stub: Stub) -> None:
    chatting(stub)
    stub.on("POST", "/approvals/ap_1", replace(samples.APPROVAL, state="approved"))
    stub.streams.append(frames(samples.GOING, samples.APPROVAL, samples.RUN))
    with terminal("chat", "ada", CLEW_DATA=str(stub.data)) as screen:
        screen.until(READY)
        screen.type("hello\r")
        screen.until("a: allow this command always in this thread")
        screen.type("a\r")
        screen.until("Done.\n")
        leave(screen)
    assert stub.bodies("POST", "/approvals/ap_1") == [{"allow": True, "always": True}]


@pytest.mark.parametrize("columns", [80, 200])
def test_who_waits_at_a_terminal_is_asked_there_too(stub: Stub, columns: int) -> None:
    chatting(stub)
    stub.on("POST", "/approvals/ap_1", replace(samples.APPROVAL, state="denied"))
    stub.streams.append(frames(samples.GOING, samples.APPROVAL, samples.RUN))
    with terminal("say", "chat-1", "hello", "-w", columns=columns, CLEW_DATA=str(stub.data)) as screen:
        screen.until("$ rm -r build\n")
        screen.until("Allow? ")
        screen.type("n not the build\n")
        screen.until("Done.\n")
        assert screen.ended() == 0
    assert stub.bodies("POST", "/approvals/ap_1") == [{"allow": False, "text": "not the build"}]


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
            screen.until(READY)
            screen.type("hello\r")
            assert reached.wait(60)
            screen.type("\x03")
            screen.until("Interrupting.\n")
            screen.until("It is told to stop.\n")
            pressed.set()
            screen.until("The run was cancelled: A person stopped it.")
            screen.type("half a line")
            screen.press("\x03", "Press Ctrl-D to leave.")
            leave(screen)
    finally:
        pressed.set()
    assert len(stub.bodies("POST", "/runs/run-1/interrupt")) == 1
    assert sent(stub) == ["hello"]


def test_what_is_refused_does_not_end_the_conversation(stub: Stub) -> None:
    chatting(stub)
    del stub.answers["POST", "/threads/chat-1/words"]
    with terminal("chat", "ada", CLEW_DATA=str(stub.data)) as screen:
        screen.until(READY)
        screen.type("hello\r")
        screen.until("clew: No /threads/chat-1/words. Do something else. [api:no-such-thing]")
        leave(screen)
