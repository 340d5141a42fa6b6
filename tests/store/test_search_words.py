"""Words, queries, snippets and pieces of logs: what is indexed, and what of it is shown."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clew.store.search.log_text import HALF, LogLine, bounded, read_lines
from clew.store.search.query import Query, Term, read_query
from clew.store.search.snippet import LENGTH, snippet_of
from clew.store.search.words import LONGEST, MOST, indexed_words, words_of

pytestmark = pytest.mark.case("U08")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("src/app.py:12", ["src", "app", "py", "12"]),
        ("foo_bar __init__ a-b", ["foo", "bar", "init", "a", "b"]),
        ("Straße STRASSE", ["strasse", "strasse"]),
        ("cafe\u0301 CAFÉ", ["café", "café"]),
        ("\uff21\uff22 ⑴ x²", ["ab", "1", "x2"]),
        ("你好, world", ["你", "好", "world"]),
        ("हिन्दी", ["हिन्दी"]),
        ("'quotes' \\ \"and\" *stars*", ["quotes", "and", "stars"]),
        ("=entry", ["entry"]),
        ("a" * 200, ["a" * LONGEST]),
        (" \t…—!? ", []),
    ],
)
def test_the_words_of_a_text(text: str, words: list[str]) -> None:
    assert words_of(text).texts == words == indexed_words(text)


@given(st.text())
def test_a_word_is_made_of_what_both_databases_take_for_one_word(text: str) -> None:
    words = words_of(text)
    assert words.texts == indexed_words(text)
    for word, (start, end) in zip(words.texts, words.places, strict=True):
        assert word
        assert not any(each.isascii() and not each.isalnum() for each in word)
        assert 0 <= start < end <= len(text)
    starts = [start for start, _ in words.places]
    assert starts == sorted(set(starts))


def test_a_long_text_has_a_limited_number_of_words() -> None:
    assert len(indexed_words("a " * 20_000)) == len(words_of("ä " * 20_000).texts) == MOST


@pytest.mark.parametrize(
    ("typed", "query"),
    [
        ("one two", Query((Term(("one",)), Term(("two",))))),
        ("one one", Query((Term(("one",)),))),
        ('"one two"', Query((Term(("one", "two")),))),
        ("“one two”", Query((Term(("one", "two")),))),
        ("one -two", Query((Term(("one",)),), (Term(("two",)),))),
        ('-"one two"', Query((), (Term(("one", "two")),))),
        ("--one", Query((Term(("one",)),))),
        ("one*", Query((Term(("one",), prefix=True),))),
        ("a*", Query((Term(("a",)),))),
        ("src/ap*", Query((Term(("src", "ap"), prefix=True),))),
        ("one *", Query((Term(("one",)),))),
        ('"one', Query((Term(("one",)),))),
        ('"" - * &&', Query(())),
        ("", Query(())),
    ],
)
def test_a_query_as_it_is_typed(typed: str, query: Query) -> None:
    assert read_query(typed) == query


def test_a_snippet_is_one_line_around_the_first_match_with_the_places_of_all_in_it() -> None:
    text = f"{'before ' * 30}the\n\tneedle\n\nand   the needles, {'after ' * 60}needle"
    spans = read_query("needle*").spans(words_of(text))
    assert spans is not None
    snippet = snippet_of(text, spans)
    assert [snippet.text[first:last] for first, last in snippet.matches] == ["needle", "needles"]
    assert "the needle and the needles, after" in snippet.text
    assert snippet.text.startswith("…before")
    assert snippet.text.endswith("after…")
    assert len(snippet.text) <= LENGTH + 2


@given(st.text(alphabet="ab \n", max_size=600), st.integers(0, 5))
def test_the_places_of_a_snippet_are_those_of_matches(text: str, repeat: int) -> None:
    whole = f"{text} needle " * (repeat + 1)
    spans = read_query("needle").spans(words_of(whole))
    if spans is None:
        return
    snippet = snippet_of(whole, spans)
    assert snippet.matches
    assert {snippet.text[first:last] for first, last in snippet.matches} == {"needle"}
    assert "\n" not in snippet.text


def line(seq: int, kind: str, **body: object) -> LogLine:
    return LogLine(seq, kind, json.dumps(body), float(seq))


def test_what_of_a_log_is_searched() -> None:
    lines = [
        line(1, "session", native_id="n"),
        line(2, "thought", text="I wond"),
        line(3, "thought", text="er."),
        line(4, "tool-started", id="t", name="Bash", command="make", file=None),
        line(5, "tool-finished", id="t", ok=False, output="no rule"),
        line(6, "plan", steps=[["write tests", "pending"], ["run them", "done"]]),
        line(7, "approval", id="a", tool="Bash", words="may I?", command="rm x", file=None),
        line(8, "question", id="q", words="which?", choices=[]),
        line(9, "failed", code="c", words="it broke", retryable=False),
        line(10, "steer", text="in the journal"),
        LogLine(11, "text", "not json", 11.0),
        line(12, "tool-finished", id="t", ok=True, output=""),
        line(13, "done", ending="completed", reply="something else"),
    ]
    read = read_lines(lines, ended=False)
    assert [(piece.first, piece.last, piece.text) for piece in read.pieces] == [
        (2, 3, "I wonder."),
        (4, 4, "Bash\nmake"),
        (5, 5, "no rule"),
        (6, 6, "write tests\nrun them"),
        (7, 7, "may I?\nrm x"),
        (8, 8, "which?"),
        (9, 9, "it broke"),
        (11, 11, "not json"),
    ]
    assert read.through == 13


def test_a_message_at_the_end_waits_until_the_log_has_ended() -> None:
    lines = [line(1, "tool-started", name="ls"), line(2, "text", text="a", final=False), line(3, "used", input=1)]
    open_, ended = read_lines(lines, ended=False), read_lines(lines, ended=True)
    assert ([piece.text for piece in open_.pieces], open_.through) == (["ls"], 1)
    assert ([piece.text for piece in ended.pieces], ended.through) == (["ls", "a"], 3)
    assert read_lines([], ended=True).pieces == ()


def test_a_long_text_keeps_its_beginning_and_its_end() -> None:
    assert bounded("a" * 2 * HALF) == "a" * 2 * HALF
    cut = bounded("a" * 2 * HALF + "b" * HALF)
    assert cut.startswith("a" * HALF)
    assert cut.endswith("b" * HALF)
    assert len(cut) < 2 * HALF + 10
