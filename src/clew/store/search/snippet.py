"""Snippets: the part of a found text around its first match, on one line."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from clew.store.search.words import Span

LENGTH = 200
"""Characters of a snippet, about."""

_BEFORE = 50
"""Characters shown before the first match."""

_SPACE = re.compile(r"\s+")
_CUT = "…"


@dataclass(frozen=True, slots=True)
class Snippet:
    """`matches` are the places of the matches in `text`: the first character of each, and the one after its last."""

    text: str
    matches: tuple[Span, ...]


def snippet_of(text: str, spans: Sequence[Span]) -> Snippet:
    """`spans` are the matches in the text, in order and apart."""
    start, end = _window(text, spans[0])
    shown, places = _CUT if start else "", []
    at = start
    for first, last in spans:
        if last > end:
            break
        shown = _joined(shown, text[at:first])
        place = len(shown)
        shown = _joined(shown, text[first:last])
        places.append((place, len(shown)))
        at = last
    shown = _joined(shown, text[at:end]).rstrip()
    return Snippet(shown + (_CUT if end < len(text) else ""), tuple(places))


def _window(text: str, match: Span) -> Span:
    """From somewhat before the match, at the beginning of a word where there is one near."""
    first, last = match
    start = max(0, first - _BEFORE)
    if start:
        space = _SPACE.search(text, start, first)
        start = start if space is None else space.end()
    end = min(len(text), max(start + LENGTH, last))
    if end < len(text) and end > last:
        space_at = max(text.rfind(" ", last, end), text.rfind("\n", last, end))
        end = end if space_at < 0 else space_at
    return start, end


def _joined(shown: str, more: str) -> str:
    """Line breaks and runs of spaces are one space."""
    more = _SPACE.sub(" ", more)
    return shown + (more[1:] if more.startswith(" ") and (not shown or shown[-1] in (" ", _CUT)) else more)
