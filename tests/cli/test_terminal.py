"""What a person sees and does at a terminal."""

import re
from dataclasses import replace

import pytest

from clew.cli.safe_text import width
from clew.protocol.usage import UsedView
from clew.protocol.views import CheckView
from tests.cli import samples
from tests.cli.kit import here
from tests.cli.stub import Stub
from tests.cli.terminal import terminal
from tests.cli.test_turns import chatting, frames


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


def test_json_is_not_for_a_terminal(stub: Stub) -> None:
    with terminal("chat", "ada", "--json", CLEW_DATA=str(stub.data)) as screen:
        assert screen.ended() == 1
        assert "A conversation in a terminal is not JSON." in screen.seen
    assert stub.asked == []
