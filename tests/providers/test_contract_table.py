"""The table of the contract: merged from all workers, and put into the page without losing what was not tried."""

import json
import sys
from pathlib import Path

import pytest

from tests.providers.rig import rigs
from tools import contract_table
from tools.contract_table import BEGIN, END, PAGE, behaviours, in_page, merged, renewed, written


def row(rig: str, behaviour: str, result: str, about: str = "start") -> dict[str, str]:
    return {"rig": rig, "about": about, "behaviour": behaviour, "result": result}


def test_many_cases_of_one_behaviour_have_one_result() -> None:
    table = merged(
        [
            row("guide", "it starts", "yes"),
            row("guide", "it starts", "yes"),
            row("guide", "modes", "yes"),
            row("guide", "modes", "declared unable"),
            row("guide", "forks", "declared unable"),
            row("codex", "it starts", "yes"),
            row("codex", "it starts", "fails"),
            row("codex", "modes", "not installed"),
        ]
    )
    assert table["start", "it starts"] == {"guide": "yes", "codex": "fails"}
    assert table["start", "modes"] == {"guide": "partly", "codex": "not installed"}
    assert table["start", "forks"] == {"guide": "declared unable"}


def test_the_page_keeps_what_was_not_tried_and_drops_what_is_no_more() -> None:
    page = f"before\n{BEGIN}\n{END}\nafter\n"
    first = merged([row("codex", "it starts", "yes"), row("guide", "it starts", "fails"), row("codex", "gone", "yes")])
    known = set(first)
    page = renewed(page, first, known)
    assert in_page(page) == first
    known = known - {("start", "gone")} | {("other", "new")}
    found = [row("guide", "it starts", "yes"), row("guide", "new", "declared unable", "other")]
    page = renewed(page, merged(found), known)
    assert in_page(page) == {
        ("other", "new"): {"guide": "declared unable"},
        ("start", "it starts"): {"codex": "yes", "guide": "yes"},
    }
    assert page.startswith("before\n")
    assert page.endswith("\nafter\n")


def test_agents_that_are_not_installed_are_told_and_nothing_is_written_of_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    page, found = tmp_path / "page.md", tmp_path / "found.json"
    before = merged([row("codex", "it starts", "yes"), row("guide", "it starts", "fails")])
    page.write_text(renewed(f"{BEGIN}\n{END}", before, set(before)), encoding="utf-8")
    rows = [row("codex", "it starts", "not installed"), row("guide", "it starts", "yes")]
    found.write_text(json.dumps(rows), encoding="utf-8")
    monkeypatch.setattr(contract_table, "PAGE", page)
    monkeypatch.setattr(contract_table, "behaviours", lambda: set(before))
    monkeypatch.setattr(sys, "argv", ["contract_table", str(found), "--write"])
    assert contract_table.main() == 0
    assert "not installed: codex" in capsys.readouterr().err
    assert in_page(page.read_text(encoding="utf-8")) == {("start", "it starts"): {"codex": "yes", "guide": "yes"}}


def test_a_failure_stands_out_and_the_counts_add_up() -> None:
    text = written(merged([row("a", "x", "fails"), row("a", "y", "yes"), row("a", "z", "declared unable")]))
    assert "**fails**" in text
    assert text.splitlines()[-1] == "| **done / declared unable** | 1 / 1 |"


def test_the_page_is_in_step_with_the_suite() -> None:
    """Every behaviour of the suite stands there for every provider, and nothing fails. `make contract` writes it."""
    table = in_page(PAGE.read_text(encoding="utf-8"))
    names = {rig.name for rig in rigs()}
    assert set(table) == behaviours()
    short = {behaviour for behaviour, cells in table.items() if set(cells) != names}
    assert not short, "a provider was not tried in these"
    failing = {behaviour for behaviour, cells in table.items() if {"fails", "not installed"} & set(cells.values())}
    assert not failing
