"""`clew search`: find what was written, by its words."""

import difflib
import shlex
from typing import Annotated, Literal

from cyclopts import Parameter

from clew.cli.answers import print_view
from clew.cli.client import Server
from clew.cli.input import OPTIONS, Exact, Limit, Options, Text
from clew.cli.misuse import Misused
from clew.cli.output import counted, note, tell, tell_marked
from clew.cli.safe_text import one_line
from clew.cli.times import moment
from clew.protocol.search import FoundPage, FoundView

_COUNTED = 10_000
"""The server counts no further."""

_OPTIONS = ("--thread", "--agent", "--project", "--kind", "--limit", "--before", "--data", "--json", "--help")


def search(
    *words: Text,
    thread: str | None = None,
    agent: str | None = None,
    project: str | None = None,
    kind: Annotated[Literal["entry", "title", "log"] | None, Exact] = None,
    limit: Limit = 20,
    before: Annotated[str | None, Parameter(metavar="PLACE")] = None,
    options: Options = OPTIONS,
) -> None:
    """Find messages, titles and logs by their words, newest first.

    A result has all the words. "Two words" in quotes stand together, so does src/app.py; -word leaves out; word* finds
    what begins with it. `clew thread show issue-3` and `clew logs run-17` open what was found.

    For example:

        clew search login page

        clew search "merge conflict" --agent ada

        clew search timeout -test --kind log

        clew search conf* --thread issue-3

    Parameters
    ----------
    words
        What to search for.
    thread
        Only in this thread.
    agent
        Only what this agent wrote, and the logs of its runs.
    project
        Only in threads of this project.
    kind
        entry (messages), title (of threads) or log (of runs).
    before
        Only what is older than this place, which the end of a page names.
    """
    _refuse_options(words)
    typed = " ".join(map(_quoted, words))
    query = {
        "q": typed,
        "thread": thread,
        "agent": agent,
        "project": project,
        "kind": kind,
        "limit": limit,
        "before": before,
    }
    print_view(options, Server(options.data).get("/search", query), FoundPage, lambda page: _show(page, words))


def _refuse_options(words: tuple[str, ...]) -> None:
    """A word may begin with one hyphen, so that it is left out. With two, it is an option that was mistyped."""
    for word in words:
        if word.startswith("--") and len(word) > len("--"):
            near = difflib.get_close_matches(word.partition("=")[0], _OPTIONS, n=1)
            meant = f"Did you mean {near[0]}? " if near else ""
            raise Misused(f"Unknown option: {word}.", f"{meant}To search for the word, leave out its hyphens.")


def _quoted(word: str) -> str:
    """The shell takes quotes away: what was given as one argument is a phrase, unless it is a query itself."""
    parts = word.split()
    is_query = '"' in word or any(part.startswith("-") or part.endswith("*") for part in parts)
    return word if len(parts) < 2 or is_query else f'"{word}"'


def _show(page: FoundPage, words: tuple[str, ...]) -> None:
    if not page.found:
        tell("Nothing found.")
    for found in page.found:
        tell_marked(_heading(found))
        tell_marked(found.parts(), indent=2)
    if page.older is not None:
        note(f"There is more: `clew search {shlex.join(words)} --before {page.older}`, with the same options.")
    if page.unindexed:
        rows = counted(page.unindexed, "row") + (" or more" if page.unindexed >= _COUNTED else "")
        note(f"Still to be indexed: {rows}, which can be missing here. Try again in a while.")


def _heading(found: FoundView) -> list[tuple[str, bool]]:
    """For example: issue-3 entry 12, ada, 3 min ago: The login page. It begins with what opens it."""
    match found.kind:
        case "entry":
            where = f"{found.thread} entry {found.seq}"
        case "title":
            where = f"{found.thread} title"
        case "log":
            where = f"{found.run} line {found.seq} ({found.thread})"
    facts = ", ".join(filter(None, (where, one_line(found.author), moment(found.at))))
    return [(f"{facts}: {found.title}" if found.kind != "title" and found.title else facts, False)]
