"""Text of people and agents as HTML that can do nothing: Markdown without HTML, cleaned once more, code in colours."""

from functools import cache

import nh3
from markdown_it import MarkdownIt
from markupsafe import Markup, escape
from pygments import highlight
from pygments.formatters import HtmlFormatter
from pygments.lexers import get_lexer_by_name
from pygments.util import ClassNotFound

LONGEST = 60_000
"""Characters. A longer text is shown as it is: to parse it would take longer than a person waits."""
_CODE = 20_000

_TAGS = {
    *("a", "blockquote", "br", "code", "del", "em", "h1", "h2", "h3", "h4", "h5", "h6", "hr", "li", "ol", "p", "pre"),
    *("s", "span", "strong", "table", "tbody", "td", "th", "thead", "tr", "ul"),
}
_ATTRIBUTES = {"a": {"href"}, "span": {"class"}, "code": {"class"}, "ol": {"start"}}


def markdown(text: str) -> Markup:
    if len(text) > LONGEST:
        return Markup('<pre class="plain">{}</pre>').format(text)
    cleaned = nh3.clean(
        _parser().render(text),
        tags=_TAGS,
        attributes=_ATTRIBUTES,
        # Code may be wider than its box: whoever has only a keyboard scrolls it when it has the focus.
        set_tag_attribute_values={"pre": {"tabindex": "0"}},
        url_schemes={"http", "https", "mailto"},
        link_rel="noopener noreferrer",
    )
    return Markup(cleaned)


@cache
def _parser() -> MarkdownIt:
    # Images would be fetched from elsewhere, and tell who reads.
    made = MarkdownIt("commonmark", {"html": False, "linkify": False, "breaks": True, "highlight": _coloured})
    return made.enable(["table", "strikethrough"]).disable(["image", "html_block", "html_inline"])


def _coloured(code: str, language: str, _: str) -> str:
    if not language or len(code) > _CODE:
        return str(escape(code))
    try:
        lexer = get_lexer_by_name(language)
    except ClassNotFound:
        return str(escape(code))
    return highlight(code, lexer, _formatter())


@cache
def _formatter() -> "HtmlFormatter[str]":
    return HtmlFormatter(nowrap=True)
