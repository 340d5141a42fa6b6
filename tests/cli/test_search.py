"""`clew search`: what is asked for, and how results are shown."""

import re
from dataclasses import replace

import pytest

from clew.cli.safe_text import width
from clew.protocol.search import FoundPage, FoundView, MatchView
from tests.cli import samples
from tests.cli.kit import Said, here
from tests.cli.stub import Stub
from tests.cli.terminal import terminal

pytestmark = pytest.mark.case("U08")

Cap = pytest.CaptureFixture[str]

ENTRY = FoundView(
    id="18",
    kind="entry",
    thread="issue-3",
    title="The login page",
    at=samples.AT,
    snippet="…there is a merge conflict in src/app.py, and it is a merge conflict that nobody wants to look at…",
    matches=(MatchView(12, 26), MatchView(54, 68)),
    author="ada",
    run="run-7",
    seq=12,
)
TITLE = replace(
    ENTRY, id="17", kind="title", snippet="The login page", matches=(MatchView(4, 9),), author="", run=None, seq=0
)
LOG = replace(ENTRY, id="16", kind="log", snippet="Bash make login", matches=(MatchView(10, 15),), seq=40)


def done(said: Said) -> str:
    assert said.status == 0, said
    return said.out


def test_results_are_shown_with_what_opens_them(stub: Stub, capfd: Cap) -> None:
    stub.on("GET", "/search", FoundPage((ENTRY, TITLE, LOG)))
    said = here(capfd, "search", "login")
    assert said.err == ""
    assert done(said).splitlines() == [
        "issue-3 entry 12, ada, 2025-06-15T15:06:40Z: The login page",
        f"  {ENTRY.snippet}",
        "issue-3 title, 2025-06-15T15:06:40Z",
        "  The login page",
        "run-7 line 40 (issue-3), ada, 2025-06-15T15:06:40Z: The login page",
        "  Bash make login",
    ]


@pytest.mark.parametrize(
    ("typed", "query"),
    [
        (("login", "page"), "login page"),
        (("merge conflict",), '"merge conflict"'),
        (("login", "merge conflict"), 'login "merge conflict"'),
        (("login -draft",), "login -draft"),
        (("login", "-draft"), "login -draft"),
        (('"merge conflict" login',), '"merge conflict" login'),
        (("conf* page",), "conf* page"),
        (("src/app.py",), "src/app.py"),
    ],
)
def test_what_is_typed_is_the_query(stub: Stub, capfd: Cap, typed: tuple[str, ...], query: str) -> None:
    stub.on("GET", "/search", FoundPage(()))
    assert (
        done(here(capfd, "search", *typed, "--agent", "ada", "--thread=issue-3", "--kind", "log")) == "Nothing found.\n"
    )
    (asked,) = stub.queries("/search")
    assert asked == {"q": query, "agent": "ada", "thread": "issue-3", "kind": "log", "limit": "20"}


def test_the_end_of_a_page_says_how_to_go_on_and_what_is_missing(stub: Stub, capfd: Cap) -> None:
    stub.on("GET", "/search", FoundPage((ENTRY,), older="18", unindexed=1234))
    said = here(capfd, "search", "merge conflict", "-draft")
    assert "There is more: `clew search 'merge conflict' -draft --before 18`" in said.err
    assert "Still to be indexed: 1,234 rows, which can be missing here. Try again in a while." in said.err
    stub.on("GET", "/search", FoundPage(()))
    here(capfd, "search", "merge conflict", "-draft", "--before", "18", "--limit", "5", "--project", "web")
    assert stub.queries("/search")[-1] == {
        "q": '"merge conflict" -draft',
        "before": "18",
        "limit": "5",
        "project": "web",
    }


def test_an_option_that_is_mistyped_is_not_searched_for(stub: Stub, capfd: Cap) -> None:
    said = here(capfd, "search", "login", "--tread", "issue-3")
    assert said.status == 2
    assert "Unknown option: --tread. Did you mean --thread? To search for the word, leave out its hyphens." in said.err
    assert stub.asked == []


@pytest.mark.parametrize("columns", [40, 80])
def test_a_result_fits_the_terminal_and_its_matches_stand_out(stub: Stub, columns: int) -> None:
    hostile = replace(ENTRY, title="A title \x1b[2J that is rather long for a line " * 3)
    stub.on("GET", "/search", FoundPage((hostile, LOG)))
    settings = {"CLEW_DATA": str(stub.data), "NO_COLOR": ""}
    with terminal("search", "login", columns=columns, **settings) as screen:
        assert screen.ended() == 0
    plain = re.sub(r"\x1b\[[0-9;]*m", "", screen.seen)
    assert "\x1b" not in plain
    assert max(map(width, plain.splitlines())) <= columns
    assert "\x1b[1;33mmerge conflict\x1b[0m" in screen.seen
    assert "  Bash make \x1b[1;33mlogin\x1b[0m\n" in screen.seen.replace("\r\n", "\n")
