"""What a person sees and does at a terminal."""

import re
from dataclasses import replace
from pathlib import Path

import pytest

from clew.app.logs import Ready
from clew.cli.commands.up import _print_notice
from clew.cli.safe_text import width
from clew.protocol.checks import TrialView
from clew.protocol.usage import UsedView
from clew.protocol.views import CheckView, EventView
from clew.protocol.why_views import EvidenceView
from tests.cli import samples
from tests.cli.kit import here
from tests.cli.stub import Problem, Stub
from tests.cli.terminal import terminal
from tests.cli.test_commands import WORKSPACE
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
        assert "`npm install -g claude`.\n" in screen.seen, "what to type is never cut"
    if command == "runs":
        assert [line.split()[0] for line in table[2:]] == ["run-1234", "run-1"], "names can be typed"
        assert "held" in table[2]
        assert ("$0.50" in table[2]) is (columns == 200)


def test_at_80_columns_an_issue_shows_its_whole_state_and_title(stub: Stub) -> None:
    title = "The maze has no way out"
    stub.on("GET", "/threads", [replace(samples.ISSUE, title=title, stage="ready for review")])
    with terminal("issue", "list", columns=80, CLEW_DATA=str(stub.data)) as screen:
        assert screen.ended() == 0
    assert re.search(f"issue-3 +ready for review +{title} +ada ", screen.seen), screen.seen


def test_at_80_columns_a_workspace_shows_its_state_and_the_end_of_its_path(stub: Stub) -> None:
    deep = f"/srv/clew/{'deep/' * 10}workspaces/web/issue-3-ada"
    stub.on("GET", "/workspaces", [replace(WORKSPACE, directory=deep, note="on mine instead of clew/issue-3")])
    with terminal("workspaces", columns=80, CLEW_DATA=str(stub.data)) as screen:
        assert screen.ended() == 0
    assert re.search(r"issue-3 +ada +ready +2 +1 .*…\S*/web/issue-3-ada\n", screen.seen), screen.seen
    assert f"{deep}:\non mine instead of clew/issue-3\n" in screen.seen, "where and why is never cut"


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


def test_ids_in_sentences_are_shown_as_beginnings_at_a_terminal_alone(
    stub: Stub, capfd: pytest.CaptureFixture[str]
) -> None:
    wake = replace(samples.WAKE, id=f"wk_{2**76:020x}")
    stub.on("GET", "/why/run-1", replace(samples.WHY, wakes=(wake,)))
    with terminal("why", "run-1", CLEW_DATA=str(stub.data), PAGER="cat") as screen:
        assert screen.ended() == 0
    assert "wk_100000000000000," in screen.seen
    assert wake.id in here(capfd, "why", "run-1").out


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
        assert screen.ended() == 2
        assert "A conversation in a terminal is not JSON." in screen.seen
    assert stub.asked == []


def test_a_long_sentence_is_broken_between_words_and_its_commands_stay_whole(stub: Stub) -> None:
    command = '`clew say issue-3 "Merge main into your branch and resolve the conflicts."`'
    words = (
        f"clew/issue-3-the-page-is-blank conflicts with main in maze.py. Nothing was changed. Ask: {command}, please."
    )
    stub.on("POST", "/threads/issue-3/merge", Problem(409, "work:conflict", words))
    with terminal("merge", "3", columns=80, CLEW_DATA=str(stub.data)) as screen:
        assert screen.ended() == 1
    assert screen.seen.splitlines() == [
        "clew: clew/issue-3-the-page-is-blank conflicts with main in maze.py. Nothing was",
        "changed. Ask:",
        f"{command},",
        "please. Do something else. [work:conflict]",
    ]


def broken_words(text: str, screen: str) -> list[str]:
    """The words of a text that stand whole on no line of the screen."""
    shown = {word for line in screen.splitlines() for word in line.split()}
    return [word for word in text.split() if word not in shown]


def test_at_80_columns_why_status_and_a_run_break_sentences_between_words(stub: Stub) -> None:
    words = "The session is in the home of another machine, which is away, so a new one is told what was said. " * 2
    stub.on("GET", "/why/run-1", replace(samples.WHY, headline=words, evidence=EvidenceView("taken", words, None)))
    stub.on("GET", "/runs/run-1", replace(samples.HELD, words=words))
    for command in (("why", "run-1"), ("runs", "show", "run-1")):
        with terminal(*command, columns=80, CLEW_DATA=str(stub.data), PAGER="cat") as screen:
            assert screen.ended() == 0
        assert max(map(width, screen.seen.splitlines())) <= 80, screen.seen
        assert broken_words(words, screen.seen) == []


def test_at_60_columns_what_an_agent_asks_breaks_between_words_and_its_command_does_not(stub: Stub) -> None:
    chatting(stub)
    words = "Remove the directory of the build, because nothing in it can be used with the new version"
    command = "rm -r build/that/is/rather/deep && make all the/things/that/were/in/it again"
    approval = replace(samples.APPROVAL, words=words, command=command)
    stub.streams.append(frames(samples.GOING, approval, samples.RUN))
    with terminal("chat", "ada", "--once", "hello", columns=60, CLEW_DATA=str(stub.data)) as screen:
        screen.until("Allow?")
        screen.type("\x04")
        screen.ended()
    assert broken_words(words, screen.seen) == []
    assert f"  $ {command}\n" in screen.seen
    assert max(width(line) for line in screen.seen.splitlines() if "$ " not in line) <= 60, screen.seen


def test_at_80_columns_the_doctor_says_below_its_table_what_the_table_cuts(stub: Stub) -> None:
    words = "There is no program opencode on the PATH of the server. Install it (npm install -g opencode-ai)."
    stub.on("GET", "/doctor", [CheckView("opencode", "missing", words), CheckView("git", "ok", "git version 2.39.5")])
    with terminal("doctor", columns=80, CLEW_DATA=str(stub.data)) as screen:
        assert screen.ended() == 0
    assert screen.seen.splitlines()[-2:] == [
        "opencode: There is no program opencode on the PATH of the server. Install it",
        "(npm install -g opencode-ai).",
    ]
    with terminal("doctor", columns=200, CLEW_DATA=str(stub.data)) as screen:
        assert screen.ended() == 0
    assert screen.seen.count("There is no program opencode") == 1


def test_at_80_columns_what_a_command_did_is_broken_between_words(stub: Stub) -> None:
    words = f"ada answered with a rather long sentence that goes on and on, {'word ' * 20}and ends."
    stub.on("POST", "/agents/ada/test", TrialView("ada", True, words, 2.25, "read"))
    with terminal("agent", "test", "ada", columns=80, CLEW_DATA=str(stub.data)) as screen:
        assert screen.ended() == 0
    assert max(map(width, screen.seen.splitlines())) <= 80, screen.seen
    assert broken_words(words, screen.seen) == []


def test_at_80_columns_a_login_link_stands_on_a_line_of_its_own(capfd: pytest.CaptureFixture[str]) -> None:
    link = f"http://127.0.0.1:47470/enter?ticket={'x' * 43}"
    _print_notice(Ready("http://127.0.0.1:47470", link, Path("/data"), "/data/clew.db"))
    lines = capfd.readouterr().out.splitlines()
    assert (lines[2], width(link)) == (link, 79)


def test_at_60_columns_what_an_agent_says_is_broken_between_words(stub: Stub) -> None:
    words = "A rather long sentence of an agent, which goes on and on, and which no terminal may break in a word. " * 2
    chatting(stub)
    stub.on("GET", "/runs/run-1/events", [EventView(1, "text", samples.AT, {"text": words, "final": True})])
    stub.streams.append(frames(samples.RUN))
    with terminal("chat", "ada", "--once", "hello", columns=60, CLEW_DATA=str(stub.data)) as screen:
        assert screen.ended() == 0
    assert max(map(width, screen.seen.splitlines())) <= 60, screen.seen
    assert broken_words(words, screen.seen) == []
