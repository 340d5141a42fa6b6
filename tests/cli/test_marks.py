"""`clew thread read, pin, archive` and their opposites; what is shown to a person counts as read."""

from dataclasses import replace

import pytest

from clew.protocol.marks import MarksView
from tests.cli import samples
from tests.cli.kit import here
from tests.cli.stub import Problem, Stub

Cap = pytest.CaptureFixture[str]

UNREAD = replace(samples.THREAD, marks=MarksView(unread=True, pinned=True, seen=0))


@pytest.mark.parametrize(
    ("mark", "words"),
    [
        ("read", "Marked chat-1 as read."),
        ("unread", "Marked chat-1 as unread."),
        ("pin", "Pinned chat-1."),
        ("unpin", "Unpinned chat-1."),
        ("archive", "Archived chat-1. It comes back when something new is in it."),
        ("unarchive", "chat-1 is listed again."),
    ],
)
def test_a_mark_is_one_call(stub: Stub, capfd: Cap, mark: str, words: str) -> None:
    stub.on("POST", f"/threads/chat-1/{mark}", UNREAD)
    said = here(capfd, "thread", mark, "chat-1")
    assert (said.status, said.out) == (0, f"{words}\n")
    assert len(stub.bodies("POST", f"/threads/chat-1/{mark}")) == 1


def test_a_refusal_says_what_to_do(stub: Stub, capfd: Cap) -> None:
    stub.on("POST", "/threads/chat-1/archive", Problem(409, "control:not-now", "run-1 is live.", "Let it end."))
    said = here(capfd, "thread", "archive", "chat-1")
    assert said.status == 1
    assert "run-1 is live." in said.err
    assert "Let it end." in said.err


def test_what_a_person_was_shown_is_read_and_what_a_program_reads_is_not(stub: Stub, capfd: Cap) -> None:
    page = replace(samples.PAGE, thread=UNREAD)
    stub.on("GET", "/threads/chat-1", page)
    read = f"/threads/{UNREAD.id}/read"
    stub.on("POST", read, UNREAD)
    assert here(capfd, "thread", "show", "chat-1", "--json").status == 0
    assert stub.bodies("POST", read) == []
    assert "unread, pinned" in here(capfd, "thread", "show", "chat-1").out
    assert stub.bodies("POST", read) == [{"entry": page.entries[-1].seq}]
    stub.on("GET", "/threads/chat-1", samples.PAGE)
    here(capfd, "thread", "show", "chat-1")
    assert len(stub.bodies("POST", read)) == 1


def test_threads_are_listed_by_their_marks(stub: Stub, capfd: Cap) -> None:
    stub.on("GET", "/threads", [UNREAD, replace(UNREAD, archived=True, marks=None)])
    lines = here(capfd, "threads", "--only", "unread").out.splitlines()
    assert lines[1].endswith("unread, pinned")
    assert lines[2].endswith("archived")
    stub.on("GET", "/threads", [])
    assert here(capfd, "threads", "--only", "archived").out == "No archived threads.\n"
    assert here(capfd, "threads", "--only", "unread").out == "No unread open threads.\n"
    assert here(capfd, "threads", "--only", "red").status == 2
    (first, second, _) = stub.queries("/threads")
    assert (first["only"], first["state"]) == ("unread", "open")
    assert "state" not in second
