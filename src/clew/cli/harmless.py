"""Text of others, made harmless for a terminal: it may be read, and does nothing."""

import re
import unicodedata

_SEQUENCE = re.compile(
    r"\x1b\[[0-?]*[ -/]*[@-~]"  # colours, cursor
    r"|\x1b[\]PX^_][^\x07\x1b\x9c]{0,4096}(?:\x07|\x1b\\|\x9c)"  # titles, links, clipboard
    r"|\x9b[0-?]*[ -/]*[@-~]"
    r"|\x1b(?![\[\]PX^_])[ -/]*[0-~]"
)
_BEGUN = re.compile(r"(?:\x1b|\x9b)[^\x07\n]{0,4096}\Z")
# Control characters but for newline and tab, and those that turn the direction of what follows.
_CONTROLS = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")


def harmless(text: str) -> str:
    """Any number of lines, without escape sequences and control characters."""
    return _CONTROLS.sub("", _SEQUENCE.sub("", text.replace("\r\n", "\n"))) if not text.isprintable() else text


def one_line(text: str, most: int = 0) -> str:
    """The same as one line, cut to `most` columns if that is given."""
    line = " ".join(harmless(text).split())
    if not most or width(line) <= most:
        return line
    while line and width(line) > most - 1:
        line = line[:-1]
    return line.rstrip() + "…"


def width(text: str) -> int:
    """How many columns a terminal needs for it."""
    if text.isascii():
        return len(text)
    return sum(
        0 if unicodedata.combining(each) else 2 if unicodedata.east_asian_width(each) in "WF" else 1 for each in text
    )


class Flow:
    """Text that comes in parts: a sequence that one part begins is taken out when the next one ends it."""

    def __init__(self) -> None:
        self._begun = ""

    def add(self, text: str) -> str:
        text = _SEQUENCE.sub("", self._begun + text)
        begun = _BEGUN.search(text)
        self._begun = text[begun.start() :] if begun else ""
        return harmless(text[: begun.start()] if begun else text)

    def end(self) -> str:
        rest, self._begun = harmless(self._begun), ""
        return rest
