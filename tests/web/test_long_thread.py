"""A long thread in a browser: its newest screen is small, and everything else is reached from it."""

import sqlite3
import time
from collections.abc import Sequence

import pytest
from playwright.sync_api import Page, expect

from tests.web.conftest import Visitors
from tests.web.kit import House
from tests.web.visitor import Visitor

ENTRIES, TEXT = 5_000, "- a *point* with `code` in it, as agents write them\n" * 80
MOST_BYTES, MOST_NODES = 200_000, 1_500


@pytest.fixture
def ref(house: House) -> str:
    """A thread of 5,000 entries and 20 MB."""
    found: str = house.post("/chats", {"agent": "guide"})["ref"]
    texts = [f"Entry number {seq}.\n\n{TEXT}" for seq in range(1, ENTRIES)]
    write(house, found, [*texts, f"The longest.\n\n{TEXT * 10}"])
    return found


def write(house: House, ref: str, texts: Sequence[str]) -> None:
    """Entries, written into the database: by the API it would take minutes."""
    thread = house.get(f"/threads/{ref}")["thread"]
    (file,) = house.root.rglob("clew.db")
    rows = [
        (thread["id"], thread["entries"] + at, "human", "ada", text, time.time()) for at, text in enumerate(texts, 1)
    ]
    into = "INSERT INTO journal (thread_id, seq, author_kind, author_name, body, at) VALUES (?, ?, ?, ?, ?, ?)"
    with sqlite3.connect(file, timeout=60) as database:
        database.executemany(into, rows)
    database.close()


def seqs(page: Page) -> list[int]:
    return [
        int(each) for each in page.eval_on_selector_all("#journal > [data-seq]", "all => all.map(e => e.dataset.seq)")
    ]


@pytest.mark.case("U06")
def test_it_opens_at_its_newest_screen_which_is_small(visitor: Visitor, ref: str) -> None:
    page = visitor.page
    with page.expect_response(lambda answer: answer.url.endswith(f"/threads/{ref}")) as answered:
        visitor.open(f"/threads/{ref}")
    assert len(answered.value.body()) <= MOST_BYTES
    assert page.evaluate("document.querySelectorAll('*').length") <= MOST_NODES
    shown = seqs(page)
    assert shown[-1] == ENTRIES
    assert shown == list(range(shown[0], ENTRIES + 1))
    expect(page.locator("body[data-ready]")).to_have_count(1)
    assert page.evaluate("innerHeight + scrollY >= document.body.scrollHeight - 160")
    # The whole of a long text comes when it is opened.
    last = page.locator(f"#e-{ENTRIES}")
    assert len(last.inner_text()) < 8_000
    last.locator("details.more summary").click()
    expect(last.locator("details.more .text li")).to_have_count(80 * 10)
    # Earlier ones come above, and what was read stays where it was.
    first = page.locator(f"#e-{shown[0]}")
    first.scroll_into_view_if_needed()
    page.locator("[data-earlier]").scroll_into_view_if_needed()
    before = first.bounding_box()
    page.locator("[data-earlier]").click()
    expect(page.locator(f"#e-{shown[0] - 1}")).to_have_count(1)
    after = first.bounding_box()
    assert before is not None
    assert after is not None
    assert abs(before["y"] - after["y"]) < 3
    now = seqs(page)
    assert now == list(range(now[0], ENTRIES + 1))


@pytest.mark.case("U06")
def test_it_is_read_without_scripts_from_its_end_on(house: House, visitors: Visitors, ref: str) -> None:
    page = visitors(house, javascript=False).open(f"/threads/{ref}")
    first = seqs(page)
    page.get_by_role("link", name="Earlier entries").click()
    assert seqs(page)[-1] == first[0] - 1
    page.go_back()
    page.locator(f"#e-{ENTRIES} details.more summary").click()
    page.get_by_role("link", name=f"Entry {ENTRIES}", exact=True).click()
    assert page.locator(".text li").count() == 80 * 10


@pytest.mark.case("U06")
def test_a_page_that_stays_open_stays_small_and_leads_to_what_was_above(house: House, visitor: Visitor) -> None:
    ref = house.post("/chats", {"agent": "guide"})["ref"]
    write(house, ref, ["The first."])
    page = visitor.open(f"/threads/{ref}")
    for number in range(1, 5):
        write(house, ref, ["A note."] * 89)
        house.post(f"/threads/{ref}/words", {"text": "The next.", "wakes": False})
        expect(page.locator(f"#e-{1 + number * 90}")).to_have_count(1)
    now = seqs(page)
    assert now == list(range(62, 362))
    page.get_by_role("link", name="Earlier entries").click()
    expect(page.locator("#e-61")).to_have_count(1)


@pytest.mark.case("U06")
def test_what_an_agent_streams_is_whole_however_long_it_is(house: House, visitor: Visitor) -> None:
    lines = [f"line {number} of what an agent says while it works" for number in range(1, 601)]
    (house.root / "said").write_text("\n".join(lines), encoding="utf-8")
    ends = house.root / "ends"
    reads = f"while read -r line; do echo $line; done < {house.root}/said; echo $line"
    prints = f"{reads}; until [ -e {ends} ]; do sleep .1; done"
    house.post(
        "/agents", {"name": "printer", "provider": "command", "program": ["/bin/sh", "-c", prints], "mode": "full"}
    )
    ref = house.post("/chats", {"agent": "printer"})["ref"]
    page = visitor.open(f"/threads/{ref}")
    house.post(f"/threads/{ref}/words", {"text": "go"})
    stream = page.locator(".stream")
    expect(stream).to_contain_text(lines[-1])
    assert (stream.text_content() or "").splitlines() == lines
    ends.touch()
    house.quiet(ref)
