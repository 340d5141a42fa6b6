"""Words within a turn, as a person asks for them and sees them."""

from dataclasses import replace

import pytest

from clew.cli.activity import line_of
from clew.protocol.views import EventView, LaneView, Spoken
from clew.protocol.why_views import SteerView
from tests.cli import samples
from tests.cli.kit import here
from tests.cli.stub import Problem, Stub

Cap = pytest.CaptureFixture[str]


@pytest.mark.case("W13")
def test_one_message_is_said_into_the_turn_that_is_going(stub: Stub, capfd: Cap) -> None:
    wake = replace(samples.WAKE, code="accepted:steered")
    stub.on("POST", "/threads/chat-1/words", Spoken(2, wake))
    said = here(capfd, "say", "chat-1", "two", "--steer")
    busy = "ada is busy; it will be told during this turn, or at the start of the next."
    assert (said.status, busy in said.out) == (0, True)
    here(capfd, "say", "chat-1", "two")
    first, second = stub.bodies("POST", "/threads/chat-1/words")
    assert (first["overlap"], "overlap" in second) == ("steer", False)


@pytest.mark.case("W13")
def test_a_threads_policy_is_set_for_whose_it_is_or_for_who_is_named(stub: Stub, capfd: Cap) -> None:
    lane = LaneView("lane-1", "ada", "/srv", None, None, "steer")
    stub.on("GET", "/threads/issue-3", samples.PAGE)
    stub.on("PATCH", "/threads/issue-3/lanes/ada", lane)
    said = here(capfd, "thread", "overlap", "issue-3", "steer")
    words = "Messages in issue-3 while ada is busy are sent during the turn, if the agent supports it."
    assert (said.status, said.out.strip()) == (0, words)
    stub.on("PATCH", "/threads/issue-3/lanes/bob", replace(lane, agent="bob", overlap="reject"))
    assert "are rejected" in here(capfd, "thread", "overlap", "issue-3", "reject", "--agent", "bob").out
    assert stub.bodies("PATCH", "/threads/issue-3/lanes/bob") == [{"overlap": "reject"}]
    nobodys = replace(samples.PAGE, thread=replace(samples.PAGE.thread, assignee=None))
    stub.on("GET", "/threads/issue-3", nobodys)
    said = here(capfd, "thread", "overlap", "issue-3", "steer")
    assert (said.status, "--agent NAME" in said.err) == (1, True)
    assert here(capfd, "thread", "overlap", "issue-3", "whatever").status == 2


@pytest.mark.case("W13")
def test_what_cannot_be_is_said_as_the_server_says_it(stub: Stub, capfd: Cap) -> None:
    stub.on("PATCH", "/threads/chat-9/lanes/ada", Problem(404, "store:no-such-thread", "There is no thread chat-9."))
    said = here(capfd, "thread", "overlap", "chat-9", "steer", "--agent", "ada")
    assert (said.status, "There is no thread chat-9." in said.err) == (1, True)


@pytest.mark.case("W13", "W15")
def test_why_and_logs_show_what_a_run_was_told_on_the_way(stub: Stub, capfd: Cap) -> None:
    told = (
        SteerView(("wake-2",), "Leave the tests alone.", True, 1.0),
        SteerView(("wake-3",), "Too late.", False, 2.0),
    )
    stub.on("GET", "/why/run-1", replace(samples.WHY, steered=told))
    said = here(capfd, "why", "run-1").out
    assert "Sent during the turn" in said
    assert "Leave the tests alone.\n" in said
    assert "Too late. (not received; see `clew why wake-3`)" in said
    assert "Sent during" not in here_without(stub, capfd)


def here_without(stub: Stub, capfd: Cap) -> str:
    stub.on("GET", "/why/run-1", samples.WHY)
    return here(capfd, "why", "run-1").out


@pytest.mark.case("W13")
def test_a_log_line_says_whether_it_was_taken() -> None:
    for taken, words in ((True, "received: two"), (False, "did not receive: two")):
        assert line_of(EventView(1, "steer", 1.0, {"taken": taken, "text": "two"})) == words
