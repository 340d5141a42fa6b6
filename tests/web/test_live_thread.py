"""A thread's page that was open all the time shows what a fresh one shows: the same items, in the same order, once."""

import pytest
from playwright.sync_api import Page, expect

from tests.web.conftest import Visitors
from tests.web.kit import House
from tests.web.scene import Scene
from tests.web.visitor import Visitor


def items(page: Page) -> list[str]:
    found: list[str] = page.eval_on_selector_all("#journal > li", "all => all.map(each => each.id)")
    return found


def is_as_fresh(page: Page, visitor: Visitor, entries: int) -> None:
    expect(page.locator("#journal > li[data-seq]")).to_have_count(entries)
    expect(page.locator("#journal > li.live")).to_have_count(0)
    tab = visitor.open(page.url, tab=visitor.tab())
    assert items(page) == items(tab)
    tab.close()


@pytest.mark.case("U02")
def test_a_page_that_was_open_all_the_time_is_like_a_fresh_one(house: House, visitor: Visitor) -> None:
    ref = house.post("/chats", {"agent": "guide"})["ref"]
    page = visitor.open(f"/threads/{ref}")
    entries = 0
    for text, answers in (("SAY: one", 2), ("FAIL: 400", 1), ("SAY: two", 2), ("FAIL: 400", 1)):
        house.say(ref, text)
        entries += answers
        is_as_fresh(page, visitor, entries)
    house.post(f"/threads/{ref}/words", {"text": "A note.", "wakes": False})
    is_as_fresh(page, visitor, entries + 1)


@pytest.mark.case("U02")
def test_a_message_behind_the_first_run_draws_no_break_and_a_break_stands_before_its_run(
    house: House, visitor: Visitor
) -> None:
    house.change("/agents/guide", {"mode": "full"})
    ref = house.post("/chats", {"agent": "guide"})["ref"]
    house.post(f"/threads/{ref}/words", {"text": "SLOW: 600\nSAY: first"})
    page = visitor.open(f"/threads/{ref}")
    expect(page.locator("li.live [data-log]")).to_have_count(1)
    house.post(f"/threads/{ref}/words", {"text": "SAY: second"})
    expect(page.locator(".queued")).to_have_count(1)
    with page.expect_response(lambda answer: "part=turns" in answer.url):
        page.evaluate("document.dispatchEvent(new Event('done'))")
    expect(page.locator("li.break")).to_have_count(0)
    tab = visitor.open(page.url, tab=visitor.tab())
    assert items(page) == items(tab)
    house.post(f"/runs/{house.get(f'/threads/{ref}')['runs'][0]['id']}/cancel")
    house.quiet(ref)
    house.post(f"/threads/{ref}/words", {"text": "SLOW: 600\nSAY: third", "fresh": True})
    expect(page.locator("li.break + li.live [data-log]")).to_have_count(1)


@pytest.mark.case("U02")
def test_news_of_a_long_thread_bring_no_old_runs_along(scene: Scene, visitors: Visitors) -> None:
    visitor = visitors(scene.house)
    page = visitor.open(f"/threads/{scene.story}")
    before = items(page)
    with page.expect_response(lambda answer: "part=turns" in answer.url):
        page.evaluate("document.dispatchEvent(new Event('done'))")
    page.evaluate("new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))")
    assert items(page) == before
