"""Dead definitions are found, and nothing that is used is called dead."""

from pathlib import Path

import pytest

from tools.dead import ALLOWED, CHECKED, Reader, dead, main, stale

SHAPES = """
from enum import StrEnum

class Side(StrEnum):
    LEFT = "left"
    RIGHT = "right"

class Colour(StrEnum):
    RED = "red"

class Box:
    def open(self) -> Side:
        return Side.LEFT

    def close(self) -> None:
        return _unused_helper()

def _unused_helper() -> None: ...

LIMIT, MORE = 3, 4
SPARE = 5

def largest() -> int:
    return LIMIT

def named_by_text() -> None: ...

def registered_by_a_decorator() -> None: ...
"""

USER = """
from clew.shapes import Box, Colour, SPARE as unread, largest
from clew.shapes import registered_by_a_decorator as _kept

LATER = "clew.shapes:named_by_text"

@app.command
def command(colour: Colour) -> None:
    print(list(Colour), Box().open(), largest(), LATER, _kept)
"""


def planted(source: Path, **modules: str) -> list[str]:
    (source / "clew").mkdir(parents=True)
    for name, text in modules.items():
        (source / "clew" / f"{name}.py").write_text(text, encoding="utf-8")
    return [each.name for each in dead(Reader(source), ())]


def test_what_nothing_reaches_is_dead(tmp_path: Path) -> None:
    assert planted(tmp_path, shapes=SHAPES, user=USER) == [
        "clew.shapes.Side.RIGHT",
        "clew.shapes.Box.close",
        "clew.shapes._unused_helper",
        "clew.shapes.SPARE",
    ]


def test_what_only_the_dead_use_is_dead_too(tmp_path: Path) -> None:
    found = planted(tmp_path, one="def first() -> None:\n    second()\n\ndef second() -> None:\n    first()\n")
    assert found == ["clew.one.first", "clew.one.second"]


def test_a_name_that_a_package_only_passes_on_is_not_used_by_that(tmp_path: Path) -> None:
    found = planted(tmp_path, __init__="from clew.one import first\n", one="def first() -> None: ...\n")
    assert found == ["clew.one.first"]


def test_a_function_may_have_the_name_of_its_module(tmp_path: Path) -> None:
    passes_on = "from clew.one import one\n"
    uses = "from clew import one\n\nprint(one())\n"
    assert planted(tmp_path, __init__=passes_on, one="def one() -> None: ...\n", two=uses) == []


def test_a_sentence_reads_what_its_places_name(tmp_path: Path) -> None:
    box = "class Box:\n    @property\n    def whose(self) -> str:\n        return ''\n"
    assert planted(tmp_path, one=f"{box}\n\nprint('Of {{box.whose}}.'.format(box=Box()))\n") == []


def test_the_checked_packages_are_clean_and_no_allowance_is_left_over(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([]) == 0, capsys.readouterr().out
    assert stale(Reader()) == []
    assert all(ALLOWED.values())
    assert "kernel" in CHECKED
