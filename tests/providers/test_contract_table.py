"""The table of the contract: merged from all workers, and put into the page without losing what was not tried."""

from tools.contract_table import BEGIN, END, PAGE, in_page, merged, renewed, written


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


def test_the_page_keeps_the_columns_that_were_not_tried() -> None:
    page = f"before\n{BEGIN}\n{END}\nafter\n"
    first = merged([row("codex", "it starts", "yes"), row("guide", "it starts", "fails"), row("codex", "gone", "yes")])
    page = renewed(page, first)
    assert in_page(page) == first
    page = renewed(page, merged([row("guide", "it starts", "yes"), row("guide", "new", "declared unable", "other")]))
    assert in_page(page) == {
        ("other", "new"): {"guide": "declared unable"},
        ("start", "gone"): {"codex": "yes"},
        ("start", "it starts"): {"codex": "yes", "guide": "yes"},
    }
    assert page.startswith("before\n")
    assert page.endswith("\nafter\n")


def test_a_failure_stands_out_and_the_counts_add_up() -> None:
    text = written(merged([row("a", "x", "fails"), row("a", "y", "yes"), row("a", "z", "declared unable")]))
    assert "**fails**" in text
    assert text.splitlines()[-1] == "| **done / declared unable** | 1 / 1 |"


def test_the_page_of_providers_has_a_place_for_it() -> None:
    text = PAGE.read_text(encoding="utf-8")
    assert text.index(BEGIN) < text.index(END)
    assert "fails" not in {result for cells in in_page(text).values() for result in cells.values()}
