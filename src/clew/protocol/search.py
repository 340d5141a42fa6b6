"""What a search finds, as views."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

FoundKind = Literal["entry", "title", "log"]


@dataclass(frozen=True, slots=True)
class MatchView:
    """A place in a snippet, counted in Unicode characters from 0."""

    start: int
    """Its first character."""
    end: int
    """The character after its last."""


@dataclass(frozen=True, slots=True)
class FoundView:
    """A journal entry, a thread's title or a text of a run's log."""

    id: str
    """Its place in the order of results. As `before`, it asks for those older than this one."""
    kind: FoundKind
    """What it is."""
    thread: str
    """The thread's name for people: issue-3, chat-1, own-ada."""
    title: str
    """The thread's title."""
    at: float
    snippet: str
    """The part of it around the first match, on one line."""
    matches: tuple[MatchView, ...]
    """What to highlight in the snippet."""
    author: str = ""
    """Who wrote the entry, or the agent whose log it is; empty for a title."""
    run: str | None = None
    """The run's name for people (run-17): for a log, and for an agent's reply."""
    seq: int = 0
    """The number of the entry in its journal, or of the line in its log; 0 for a title."""

    def parts(self) -> Iterator[tuple[str, bool]]:
        """The snippet in parts, and whether each is a match."""
        at = 0
        for match in self.matches:
            if match.start > at:
                yield self.snippet[at : match.start], False
            yield self.snippet[match.start : match.end], True
            at = match.end
        if at < len(self.snippet):
            yield self.snippet[at:], False


@dataclass(frozen=True, slots=True)
class FoundPage:
    """One page of results, the newest first."""

    found: tuple[FoundView, ...]
    """The results."""
    older: str | None = None
    """Where the next page begins: its `before`. None if there is nothing older."""
    unindexed: int = 0
    """How many rows wait to be indexed, and can be missing here: after a restore. Counted up to 10,000."""
