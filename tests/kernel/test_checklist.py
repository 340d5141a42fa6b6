"""Checklists: empty is known without asking a model, absent is not empty."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clew.kernel.heartbeat import nothing_to_check

pytestmark = pytest.mark.case("H06")


def test_an_absent_checklist_is_not_empty() -> None:
    assert nothing_to_check(None) is False


@pytest.mark.parametrize(
    "text",
    [
        "",
        " \t\n\n  ",
        "# Title",
        "#",
        "  ## Sub\ttitle",
        "###### six",
        "#\ttabbed",
        "-",
        "*",
        "+",
        "  - ",
        "- [ ]",
        "- [x]",
        "* [X]",
        "- []",
        "1.",
        "12)",
        "3. [ ]",
        "- -",
        "<!-- check the mail -->",
        "<!-- two\nlines\n- check -->",
        "<!-- a --> <!-- b -->",
        "# T <!-- x\n- y --> \n-",
        "# Title\n\n- \n* [ ]\n<!-- nothing -->\n",
        "<!-- never closed\n- check the mail",
        "- <!-- hidden -->",
    ],
)
def test_blanks_headings_empty_bullets_and_comments_are_nothing(text: str) -> None:
    assert nothing_to_check(text) is True


@pytest.mark.parametrize(
    "text",
    [
        "check the mail",
        "- check",
        "- [ ] check",
        "- [x] done",
        "1. check",
        "1.check",
        "a.",
        ".",
        ")",
        "1",
        "1]",
        "1X",
        "1a.",
        "X marks",
        "#hashtag",
        "####### seven",
        "--",
        "[y]",
        "# Title\n- check",
        "- check\n# Title",
        "<!-- a --> check <!-- b -->",
        "<!-- a -->\n- check",
        "check <!-- a -->",
        "x <!-- never closed",
        "-->",
        "<!-- a --> --> ",
    ],
)
def test_anything_else_is_something(text: str) -> None:
    assert nothing_to_check(text) is False


@given(st.lists(st.sampled_from(["", "# T", "- ", "* [ ]", "1.", "<!-- c -->"])), st.integers(0, 20))
def test_one_line_with_words_is_enough(lines: list[str], place: int) -> None:
    assert nothing_to_check("\n".join(lines))
    assert not nothing_to_check("\n".join([*lines[:place], "- look", *lines[place:]]))
