"""One screen of a journal: its newest entries as HTML, as many as a page can have and still be small."""

from dataclasses import replace

from markupsafe import Markup

from clew.protocol.views import EntryView, ThreadPage
from clew.web.markdown import markdown

BYTES = 110_000
NODES = 800
"""Bytes and elements of all texts of a screen together."""
_OF_ONE = 300
"""Elements of one text; more of it is shown when it is asked for."""


def screen_of(page: ThreadPage) -> tuple[ThreadPage, dict[int, Markup]]:
    """The page with the newest of its entries that fit, one at least, and the HTML of each by its number."""
    kept, shown, size, nodes = list[EntryView](), dict[int, Markup](), 0, 0
    for long in reversed(page.entries):
        entry, html = _beginning(long)
        size, nodes = size + len(html.encode()), nodes + html.count("</")
        if kept and (size > BYTES or nodes > NODES):
            return replace(page, entries=tuple(reversed(kept)), earlier=True), shown
        kept.append(entry)
        shown[entry.seq] = html
    return replace(page, entries=tuple(reversed(kept))), shown


def _beginning(entry: EntryView) -> tuple[EntryView, Markup]:
    """As much of it as has few enough elements: half of it, or half of that."""
    length = entry.length or len(entry.text)
    while (html := markdown(entry.text)).count("</") > _OF_ONE:
        entry = replace(entry, text=entry.text[: len(entry.text) // 2], length=length)
    return entry, html
