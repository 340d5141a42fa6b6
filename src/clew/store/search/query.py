"""Queries as people type them: words, "phrases", -words to leave out, and prefix*. All else is literal.

Every text can be read: whatever does not look like one of these is taken as the words in it.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from hashlib import blake2b

from clew.store.search.words import Span, Words, indexed_words

SHORTEST_PREFIX = 2
"""Characters before a `*`. With fewer, the star is ignored: half of all words would match."""

_PART = re.compile(r'(?P<not>-?)"(?P<phrase>[^"]*)"(?!\S)|(?P<typed>\S+)')
_NEGATED = re.compile(r"-(?!-)\S")

_QUOTES = str.maketrans({"“": '"', "”": '"', "„": '"'})
"""Quotes as phones and text programs write them."""


@dataclass(frozen=True, slots=True)
class Term:
    """Words that follow one another. The last one is only a beginning where `prefix` is set."""

    words: tuple[str, ...]
    prefix: bool = False

    def spans(self, words: Words) -> list[Span]:
        """Where it stands in the text that has these words."""
        texts, places, last = words.texts, words.places, self.words[-1]
        more = len(self.words) - 1
        if self.prefix:
            ends = [at for at, word in enumerate(texts) if word.startswith(last)]
        else:
            ends = [at for at, word in enumerate(texts) if word == last]
        before = list(self.words[:-1])
        return [(places[at - more][0], places[at][1]) for at in ends if at >= more and texts[at - more : at] == before]


@dataclass(frozen=True, slots=True)
class Query:
    """A text matches that has all of `wanted`, and none of `unwanted`. `scope` are marks that its document must have:
    each is made by `mark`."""

    wanted: tuple[Term, ...]
    unwanted: tuple[Term, ...] = ()
    scope: tuple[str, ...] = ()

    def spans(self, words: Words) -> list[Span] | None:
        """Where the wanted terms stand in a text; None if the text does not match."""
        found = [term.spans(words) for term in self.wanted]
        if not all(found) or any(term.spans(words) for term in self.unwanted):
            return None
        return _merged(span for each in found for span in each)

    @property
    def fts5(self) -> str:
        """The query in SQLite's language."""
        wanted = " AND ".join([*map(_fts5, self.wanted), *(f'"{each}"' for each in self.scope)])
        return f"({wanted}) NOT ({' OR '.join(map(_fts5, self.unwanted))})" if self.unwanted else wanted

    @property
    def tsquery(self) -> str:
        """The query in PostgreSQL's language."""
        marks = (f"'{each}'" for each in self.scope)
        return " & ".join([*map(_tsquery, self.wanted), *marks, *(f"!{_tsquery(term)}" for term in self.unwanted)])

    @property
    def loose_tsquery(self) -> str:
        """The same with phrases as single words, and without what is unwanted: the index alone can answer it."""
        terms = {f"'{word}'" for term in self.wanted for word in term.words[: len(term.words) - term.prefix]}
        terms |= {f"'{term.words[-1]}':*" for term in self.wanted if term.prefix}
        return " & ".join([*sorted(terms), *(f"'{each}'" for each in self.scope)])

    @property
    def is_loose(self) -> bool:
        """Whether `loose_tsquery` asks for the same."""
        return not self.unwanted and all(len(term.words) == 1 for term in self.wanted)


def read_query(text: str) -> Query:
    """The query that was typed. Without wanted terms it matches nothing."""
    wanted: list[Term] = []
    unwanted: list[Term] = []
    for part in _PART.finditer(text.translate(_QUOTES)):
        typed, phrase = part["typed"], part["phrase"]
        term = _phrase(phrase) if typed is None else _typed(typed)
        if term is not None:
            negated = part["not"] if typed is None else _NEGATED.match(typed)
            (unwanted if negated else wanted).append(term)
    return Query(tuple(dict.fromkeys(wanted)), tuple(dict.fromkeys(unwanted)))


def mark(kind: str, id_: str = "") -> str:
    """A word of a document that no text has, for a filter: its kind, its thread, its agent or its project."""
    return f"={kind}{blake2b(id_.encode(), digest_size=8).hexdigest()}" if id_ else f"={kind}"


def _phrase(text: str) -> Term | None:
    words = tuple(indexed_words(text))
    return Term(words) if words else None


def _typed(text: str) -> Term | None:
    """A word with punctuation in it, such as src/app.py, is a phrase."""
    words = tuple(indexed_words(text))
    if not words:
        return None
    is_prefix = text.endswith("*") and text[-2:-1].isalnum() and len(words[-1]) >= SHORTEST_PREFIX
    return Term(words, is_prefix)


def _fts5(term: Term) -> str:
    # Words have no quotes: only letters, digits and marks.
    return f'"{" ".join(term.words)}"' + (" *" if term.prefix else "")


def _tsquery(term: Term) -> str:
    *first, last = (f"'{word}'" for word in term.words)
    return f"({' <-> '.join([*first, f'{last}:*' if term.prefix else last])})"


def _merged(spans: Iterable[Span]) -> list[Span]:
    """In order; those that overlap are one."""
    merged: list[Span] = []
    for start, end in sorted(spans):
        if merged and start < merged[-1][1]:
            merged[-1] = (merged[-1][0], max(end, merged[-1][1]))
        else:
            merged.append((start, end))
    return merged
