"""`clew queue`: what waits is listed, and changed until an agent has it."""

from dataclasses import replace

import pytest

from clew.cli.client import Server
from clew.cli.turn import Turn
from clew.protocol.preview import PreviewView
from clew.protocol.views import Cancelled, EntryView
from clew.protocol.waiting import WaitingView
from tests.cli import samples
from tests.cli.kit import here
from tests.cli.stub import Problem, Stub

Cap = pytest.CaptureFixture[str]

PREVIEW = PreviewView(
    thread="chat-1",
    agent="ada",
    outcome="resume",
    code="session:fits",
    words="Continues session 3 on laptop in clew/issue-12-login-page, told entries 41 to 42 and this message.",
    entry=43,
    at=samples.AT,
    token="resume/ss_3/session:fits",
)


@pytest.mark.case("W16")
def test_a_dry_run_says_what_would_happen_and_sends_nothing(stub: Stub, capfd: Cap) -> None:
    stub.on("GET", "/threads/chat-1/preview", PREVIEW)
    said = here(capfd, "say", "chat-1", "And the tests?", "--to", "ada", "--fresh", "--dry-run")
    assert (said.status, said.out) == (0, f"{PREVIEW.words} (Nothing was sent.)\n")
    (asked,) = stub.asked
    assert (asked.method, dict(asked.query)) == ("GET", {"agent": "ada", "fresh": "true"})
    refused = replace(PREVIEW, outcome="refused", words="It would not wake ada: The agent is paused.")
    stub.on("GET", "/threads/chat-1/preview", refused)
    assert here(capfd, "say", "chat-1", "hello", "--steer", "--dry-run").status == 1
    assert here(capfd, "say", "chat-1", "hello", "--dry-run", "--wait").status == 2


@pytest.mark.case("W16")
def test_why_says_where_a_preview_did_not_come_true(stub: Stub, capfd: Cap) -> None:
    notice = "When it was sent, it was to continue session 3; meanwhile that changed. New conversation."
    stub.on("GET", "/why/run-1", replace(samples.WHY, notices=(notice,)))
    assert here(capfd, "why", "run-1").out.splitlines()[1] == f"  note     {notice}"


ONE = WaitingView(
    wake="wk_1",
    agent="ada",
    text="On Firefox\nonly.",
    author="me",
    entry=4,
    reason="chat",
    code="accepted:queued",
    words="Queued behind run-1: ada is told when that one ends.",
    accepted_at=samples.AT,
    run="run-1",
    can=("edit", "move", "take back"),
)
TWO, THREE = (replace(ONE, wake=f"wk_{number}", text=f"{number}", entry=number + 3) for number in (2, 3))
BOBS = replace(ONE, wake="wk_4", agent="bob")
SILENT = replace(ONE, wake="wk_5", text="", entry=None, reason="timer", can=("take back",))
TAKEN = Problem(409, "store:message-taken", "ada has it: run-1, which started 3 s ago.", "Send another message.")
QUEUE = "/threads/chat-1/queue"


@pytest.mark.case("W17")
def test_what_waits_is_listed_with_why(stub: Stub, capfd: Cap) -> None:
    stub.on("GET", QUEUE, [SILENT, ONE])
    said = here(capfd, "queue", "chat-1").out
    assert "(timer)" in said
    assert "#4" in said
    assert "On Firefox only." in said
    assert "Queued behind run-1: ada is told when that one ends." in said
    stub.on("GET", QUEUE, [])
    assert here(capfd, "queue", "chat-1").out == "Nothing waits.\n"


@pytest.mark.case("W17")
def test_a_message_is_edited_steered_and_taken_back(stub: Stub, capfd: Cap) -> None:
    stub.on("PATCH", "/wakes/wk_1", [replace(ONE, text="Everywhere.")])
    said = here(capfd, "queue", "edit", "wk_1", "Everywhere.")
    assert (said.status, said.out.startswith("Edited.\n"), "Everywhere." in said.out) == (0, True, True)
    assert stub.bodies("PATCH", "/wakes/wk_1") == [{"text": "Everywhere."}]
    stub.on("POST", "/wakes/wk_1/steer", [])
    assert here(capfd, "queue", "steer", "wk_1").out == (
        "The running turn is told of it, or else the next one.\nNothing waits any more.\n"
    )
    stub.on("DELETE", "/wakes/wk_1", Cancelled(True, "cancelled", "Taken back: ada is not told."))
    assert here(capfd, "queue", "take-back", "wk_1").out == "Taken back: ada is not told.\n"


@pytest.mark.case("W17")
@pytest.mark.parametrize(
    ("where", "order"),
    [
        (("--first",), ["wk_3", "wk_1", "wk_2"]),
        (("--last",), ["wk_1", "wk_2", "wk_3"]),
        (("--before", "wk_2"), ["wk_1", "wk_3", "wk_2"]),
        (("--after", "wk_1"), ["wk_1", "wk_3", "wk_2"]),
    ],
    ids=" ".join,
)
def test_a_message_is_moved_among_those_of_its_agent(
    stub: Stub, capfd: Cap, where: tuple[str, ...], order: list[str]
) -> None:
    for number in (1, 2, 3):
        stub.on("GET", f"/wakes/wk_{number}", replace(samples.WAKE, id=f"wk_{number}"))
    stub.on("GET", QUEUE, [SILENT, ONE, TWO, THREE, BOBS])
    stub.on("POST", QUEUE, [ONE, TWO, THREE])
    assert here(capfd, "queue", "move", "wk_3", *where).out.startswith("Moved.\n")
    assert stub.bodies("POST", QUEUE) == [{"wakes": order}]


@pytest.mark.case("W17")
def test_a_move_that_says_nothing_or_too_much_is_refused(stub: Stub, capfd: Cap) -> None:
    stub.on("GET", "/wakes/wk_1", replace(samples.WAKE, id="wk_1"))
    stub.on("GET", "/wakes/wk_4", replace(samples.WAKE, id="wk_4"))
    stub.on("GET", QUEUE, [ONE, BOBS])
    said = here(capfd, "queue", "move", "wk_1")
    assert (said.status, "--before WAKE, --after WAKE, --first and --last" in said.err) == (2, True)
    said = here(capfd, "queue", "move", "wk_1", "--first", "--last")
    assert (said.status, "--first and --last cannot be combined" in said.err) == (2, True)
    said = here(capfd, "queue", "move", "wk_1", "--before", "wk_4")
    assert (said.status, "wk_4 does not wait for the same agent." in said.err) == (2, True)


@pytest.mark.case("W17")
def test_what_comes_too_late_says_who_has_it(stub: Stub, capfd: Cap) -> None:
    stub.on("PATCH", "/wakes/wk_1", TAKEN)
    stub.on("DELETE", "/wakes/wk_1", TAKEN)
    for words in (("edit", "wk_1", "x"), ("take-back", "wk_1")):
        said = here(capfd, "queue", *words)
        assert (said.status, said.out) == (1, "")
        assert "ada has it: run-1, which started 3 s ago. Send another message. [store:message-taken]" in said.err


@pytest.mark.case("W17", "L05")
def test_ctrl_c_just_as_a_run_takes_the_message_interrupts_that_run(stub: Stub, capfd: Cap) -> None:
    stub.on("DELETE", "/wakes/wake-1", TAKEN)
    stub.on("GET", "/wakes/wake-1", samples.WAKE)
    stub.on("POST", "/runs/run-1/interrupt", Cancelled(True, "stopping", "You interrupted it."))
    Turn(Server(stub.data), replace(samples.WAKE, run=None)).stop()
    assert "You interrupted it." in capfd.readouterr().err
    assert len(stub.bodies("POST", "/runs/run-1/interrupt")) == 1


@pytest.mark.case("W17")
def test_a_thread_shows_what_became_of_its_messages(stub: Stub, capfd: Cap) -> None:
    entries = (
        EntryView(1, "human", "me", "On Firefox.", samples.AT, replaced_by=3),
        EntryView(2, "human", "me", "A secret.", samples.AT, replaced_by=4, taken_back=True),
        EntryView(3, "human", "me", "On Safari.", samples.AT, replaces=1),
        EntryView(4, "human", "me", "", samples.AT, replaces=2),
    )
    stub.on("GET", "/threads/issue-3", replace(samples.PAGE, entries=entries, approvals=()))
    said = here(capfd, "thread", "show", "issue-3").out
    shown = [line.partition(", ")[2].partition("Z")[2] for line in said.splitlines() if line.startswith("#")]
    assert shown == [": replaced by #3", ": taken back", ": in place of #1", ": took back #2"]
    assert "On Firefox." not in said
    assert "On Safari." in said
