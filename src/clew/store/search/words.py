"""Words of a text, as they are indexed and searched for.

The same words go into SQLite's index and into PostgreSQL's, so that both find the same. Punctuation separates words:
src/app.py is three of them, and is found as a phrase. Scripts that are written without spaces have one word for each
character. Neither upper case nor the way in which a character is composed makes a difference.
"""

import re
import unicodedata
from dataclasses import dataclass
from functools import cache, lru_cache
from itertools import islice

MOST = 16_000
"""Words of one text that are indexed. PostgreSQL knows the positions of 16,383."""

LONGEST = 64
"""Characters of one word. Longer ones are digests and encoded data: their beginning is enough to find them."""

_UNSPACED = (
    "\u0e00-\u0eff"  # Thai, Lao
    "\u1000-\u109f"  # Burmese
    "\u1780-\u17ff"  # Khmer
    "\u3005-\u3007\u3040-\u30ff\u31f0-\u31ff\uff66-\uff9f"  # Japanese
    "\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"  # Chinese
    "\u1100-\u11ff\uac00-\ud7af"  # Korean: its endings are written together with the word
)
_ASCII_WORD = re.compile(r"[a-z0-9]+")
_ASCII_PUNCTUATION = re.compile(r"[\x00-/:-@\[-`{-\x7f]+")


Span = tuple[int, int]
"""A place in a text: its first character, and the one after its last."""


@dataclass(frozen=True, slots=True)
class Words:
    """The words of a text in their order, and where each stands."""

    texts: list[str]
    places: list[Span]


@cache
def _word() -> "re.Pattern[str]":
    """The characters that a word is made of: letters, digits, and the marks that belong to them. `\\w` has no marks."""
    one = rf"[^\W_{_UNSPACED}]"
    marks = rf"[{_marks()}]"
    return re.compile(rf"[{_UNSPACED}]{marks}*|{one}(?:{one}|{marks})*")


def _marks() -> str:
    """The combining marks of the basic plane, as ranges of a character class."""
    found = [code for code in range(0x300, 0xFFFF) if unicodedata.category(chr(code)).startswith("M")]
    ranges: list[list[int]] = []
    for code in found:
        if ranges and ranges[-1][1] == code - 1:
            ranges[-1][1] = code
        else:
            ranges.append([code, code])
    return "".join(f"\\u{first:04x}-\\u{last:04x}" for first, last in ranges)


def words_of(text: str) -> Words:
    """At most MOST of them."""
    if text.isascii():
        found = islice(_ASCII_WORD.finditer(text.lower()), MOST)
        pairs = [(each[0][:LONGEST], each.span()) for each in found]
    else:
        found = islice(_word().finditer(text), MOST)
        pairs = [(word, each.span()) for each in found if (word := _normal(each[0]))]
    return Words([word for word, _ in pairs], [place for _, place in pairs])


def indexed_words(text: str) -> list[str]:
    """The same without their places. Most logs are ASCII, which is read ten times as fast."""
    if text.isascii():
        return [word[:LONGEST] for word in _ASCII_WORD.findall(text.lower())[:MOST]]
    return [word for each in _word().findall(text)[:MOST] if (word := _normal(each))]


@lru_cache(maxsize=10_000)
def _normal(word: str) -> str:
    if word.isascii():
        return word.lower()[:LONGEST]
    composed = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", word).casefold())
    # Compatibility forms can bring punctuation along: ⑴ is (1).
    return _ASCII_PUNCTUATION.sub("", composed)[:LONGEST]
