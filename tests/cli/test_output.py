"""What a terminal is shown: safe, aligned, in a person's time."""

import pytest

from clew.cli.commands.workspaces import size
from clew.cli.output import facts, table
from clew.cli.safe_text import Flow, one_line, safe, width
from clew.cli.times import ago, every, exactly, seconds_of, until
from clew.cli.word_wrap import WordWrap

Cap = pytest.CaptureFixture[str]

EVIL = [
    ("\x1b[31mred\x1b[0m", "red"),
    ("\x1b]0;title\x07text", "text"),
    ("\x1b]8;;http://evil.example\x1b\\link\x1b]8;;\x1b\\", "link"),
    ("\x1b]52;c;ZXZpbA==\x07", ""),
    ("a\rb\x08c\x7f", "abc"),
    ("one\r\ntwo\tthree\n", "one\ntwo\tthree\n"),
    ("\x9b31mred\x9d", "red"),
    ("\x1bPevil\x1b\\ok\x1bc", "ok"),
    ("unfinished \x1b[", "unfinished ["),
    ("unfinished \x1b]0;title", "unfinished ]0;title"),
    ("\u202eevil\u2066", "evil"),
    ("half \ud800", "half "),
    ("漢字 é \U0001f600", "漢字 é \U0001f600"),
]


@pytest.mark.parametrize(("text", "shown"), EVIL)
def test_texts_of_others_do_nothing_to_the_terminal(text: str, shown: str) -> None:
    assert safe(text) == shown


@pytest.mark.parametrize(("text", "shown"), EVIL)
def test_nor_do_they_in_parts(text: str, shown: str) -> None:
    flow = Flow()
    said = "".join(flow.add(each) for each in text.replace("\r\n", "\n")) + flow.end()
    assert said == shown


def test_a_sequence_without_an_end_does_not_swallow_what_follows() -> None:
    flow = Flow()
    said = flow.add("\x1b]0;" + "x" * 5_000) + flow.add("\nand on") + flow.end()
    assert said.endswith("\nand on")


@pytest.mark.parametrize("size", [1, 3, 1000])
def test_a_message_is_broken_between_words_in_whatever_parts_it_arrives(
    monkeypatch: pytest.MonkeyPatch, size: int
) -> None:
    monkeypatch.setenv("COLUMNS", "20")
    text = "one two three four five six\n\n    indented line that is long\n漢字漢字漢字漢字漢 漢\n" + "x" * 60 + " end"
    wrap = WordWrap()
    said = "".join(wrap.add(text[at : at + size]) for at in range(0, len(text), size)) + wrap.end()
    assert said.splitlines() == [
        "one two three four",
        "five six",
        "",
        "    indented line",
        "that is long",
        "漢字漢字漢字漢字漢",
        "漢",
        "x" * 60,
        "end",
    ]
    assert wrap.add("a line of its own\n") == "a line of its own\n"


def test_one_line_is_cut_by_columns() -> None:
    assert one_line("a\n b\t\tc\x1b[1m") == "a b c"
    assert one_line("漢字漢字", 5) == "漢字…"
    assert (width("漢字"), width("e\u0301"), width("abc")) == (4, 1, 3)


def test_a_pipe_gets_aligned_text(capfd: Cap) -> None:
    table([{"name": "漢", "words": "x"}, {"name": "long", "words": "y\nz"}], "None.")
    facts([("a", "one\ntwo"), ("none", ""), ("long", "three")])
    assert capfd.readouterr().out == ("NAME  WORDS\n漢    x\nlong  y z\na     one\n      two\nlong  three\n")


def test_moments_are_said_for_people() -> None:
    now = 1_000_000.0
    said = {ago(now - passed, now) for passed in (0.2, 5, 65, 3_700, 90_000)}
    assert said == {"now", "5 s ago", "1 min ago", "1 h ago", "1 d ago"}
    assert ago(now + 200, now) == "in 3 min"
    assert until(now + 200, now).endswith(", in 3 min")
    assert until(now - 5, now).endswith(", due now")
    assert exactly(0) == "1970-01-01T00:00:00Z"


def test_durations_are_read_and_said() -> None:
    said = {words: seconds_of(words) for words in ("45s", "30m", "1h30m", "7d", "2w", "1.5h", "1H 5 M")}
    assert said == {"45s": 45, "30m": 1800, "1h30m": 5400, "7d": 604800, "2w": 1209600, "1.5h": 5400, "1H 5 M": 3900}
    assert [every(seconds) for seconds in (45, 1800, 5400, 1209600, 0.5)] == ["45s", "30m", "1h30m", "2w", "0.5s"]


def test_sizes_are_said_for_people() -> None:
    assert [size(count) for count in (0, 1023, 2048, 5 * 1024**3, 3 * 1024**4)] == [
        "0 B",
        "1023 B",
        "2.0 KiB",
        "5.0 GiB",
        "3.0 TiB",
    ]
