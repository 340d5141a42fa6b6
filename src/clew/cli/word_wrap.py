"""A text that arrives in parts, broken between words at the width of the terminal."""

import re
import shutil

from clew.cli.safe_text import width

_LONG = 40
_PIECES = re.compile(r"\n|[^\S\n]+|\S+")


class WordWrap:
    """The last word is held back until it is whole: only then is it known on which line it stands. A very long one is
    not: a script without spaces has whole paragraphs of them."""

    def __init__(self) -> None:
        self._column = 0
        self._gap = ""
        self._word = ""
        self._begun = False
        """The beginning of the word is printed."""

    def add(self, text: str) -> str:
        """What can be printed now."""
        room = shutil.get_terminal_size().columns
        said = []
        for piece in _PIECES.findall(text):
            if not piece.isspace():
                self._word += piece
                if len(self._word) > _LONG:
                    said.append(self._printed(room))
                    self._begun = True
                continue
            said.append(self._whole_word(room))
            if piece == "\n":
                said.append("\n")
                self._column, self._gap = 0, ""
            else:
                self._gap += piece
        return "".join(said)

    def end(self) -> str:
        """The rest of a message, or of a part of it after which something else is printed on a line of its own."""
        said = self._whole_word(shutil.get_terminal_size().columns)
        self._column, self._gap = 0, ""
        return said

    def _whole_word(self, room: int) -> str:
        said, self._begun = self._printed(room), False
        return said

    def _printed(self, room: int) -> str:
        word, self._word = self._word, ""
        if not word:
            return ""
        gap, self._gap = self._gap, ""
        wide = width(word)
        breaks = bool(self._column) and not self._begun and self._column + width(gap) + wide > room
        taken = wide if breaks else self._column + width(gap) + wide
        # The terminal itself breaks what is longer than a line.
        self._column = (taken - 1) % room + 1
        return f"\n{word}" if breaks else gap + word
