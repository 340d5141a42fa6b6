"""Untrusted text made safe for a terminal: escape sequences and control characters are removed."""

import re
import unicodedata

_SEQUENCE = re.compile(
    r"\x1b\[[0-?]*[ -/]*[@-~]"  # colours, cursor
    r"|\x1b[\]PX^_][^\x07\x1b\x9c]{0,4096}(?:\x07|\x1b\\|\x9c)"  # titles, links, clipboard
    r"|\x9b[0-?]*[ -/]*[@-~]"
    r"|\x1b(?![\[\]PX^_])[ -/]*[0-~]"
)
_UNFINISHED = re.compile(r"(?:\x1b|\x9b)[^\x07\n]{0,4096}\Z")
# Control characters except newline and tab, and those that change the text direction.
_CONTROLS = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")


def safe(text: str) -> str:
    """Keeps line breaks."""
    return _CONTROLS.sub("", _SEQUENCE.sub("", text.replace("\r\n", "\n"))) if not text.isprintable() else text


def one_line(text: str, most: int = 0) -> str:
    """Joins all lines into one, cut to `most` columns if given."""
    line = " ".join(safe(text).split())
    if not most or width(line) <= most:
        return line
    while line and width(line) > most - 1:
        line = line[:-1]
    return line.rstrip() + "…"


def end_of(text: str, most: int) -> str:
    """On one line, with its beginning cut where it takes more than `most` columns."""
    line = one_line(text)
    if width(line) <= most:
        return line
    while line and width(line) > most - 1:
        line = line[1:]
    return f"…{line}"


def width(text: str) -> int:
    """The number of terminal columns it takes."""
    if text.isascii():
        return len(text)
    return sum(
        0 if unicodedata.combining(each) else 2 if unicodedata.east_asian_width(each) in "WF" else 1 for each in text
    )


class Flow:
    """Text that arrives in parts. An escape sequence split between two parts is removed as well."""

    def __init__(self) -> None:
        self._held_back = ""

    def add(self, text: str) -> str:
        text = _SEQUENCE.sub("", self._held_back + text)
        unfinished = _UNFINISHED.search(text)
        self._held_back = text[unfinished.start() :] if unfinished else ""
        return safe(text[: unfinished.start()] if unfinished else text)

    def end(self) -> str:
        rest, self._held_back = safe(self._held_back), ""
        return rest
