"""Unread, pinned and archived threads in a browser: set on the page, kept for the person, and live in every tab."""

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.web.conftest import Visitors
from tests.web.kit import House, axe, fits
from tests.web.visitor import NARROW, Visitor


def answered(house: House, title: str) -> str:
    """A chat in which the agent has answered."""
    ref: str = house.post("/chats", {"agent": "guide", "title": title})["ref"]
    house.say(ref, "SAY: it opens")
    house.until(lambda: len(house.get(f"/threads/{ref}")["entries"]) == 2, "the guide answers")
    house.until(lambda: house.get(f"/threads/{ref}")["thread"]["status"] == "idle", "its run ends")
    return ref


def row(page: Page, title: str) -> Locator:
    return page.locator(".row.thread", has_text=title)


def titles(page: Page) -> list[str]:
    return page.locator(".row.thread a.title").all_inner_texts()


@pytest.mark.case("U02")
def test_a_thread_is_unread_until_its_page_was_looked_at_and_every_tab_shows_it(house: House, visitor: Visitor) -> None:
    ref = answered(house, "A door")
    home = visitor.open("/")
    expect(row(home, "A door").locator(".state.unread")).to_have_text("unread")
    expect(home.locator("#only-unread")).to_have_text("Unread 1")
    thread = visitor.open(f"/threads/{ref}", tab=visitor.tab())
    expect(thread.locator("header .mark button").first).to_have_text("Mark as unread")
    assert house.get(f"/threads/{ref}")["thread"]["marks"] == {"unread": False, "pinned": False, "seen": 2}
    expect(row(home, "A door").locator(".state.unread")).to_have_count(0)
    # Marked as unread on the open page it stays so, until something new comes.
    thread.locator("header .mark button").first.click()
    expect(row(home, "A door").locator(".state.unread")).to_have_count(1)
    expect(thread.locator("header .mark button").first).to_have_text("Mark as read")
    house.say(ref, "SAY: and the window")
    expect(thread.locator("li.item.agent")).to_have_count(2)
    expect(row(home, "A door").locator(".state.unread")).to_have_count(0)


def test_pinned_threads_stand_first_and_the_filter_goes_by_keys(house: House, visitor: Visitor) -> None:
    for title in ("A door", "A window"):
        answered(house, title)
    home = visitor.open("/")
    assert titles(home) == ["A window", "A door"]
    row(home, "A door").locator("a.title").focus()
    home.keyboard.press("s")
    expect(row(home, "A door").locator(".state.pinned")).to_have_count(1)
    assert titles(home) == ["A door", "A window"]
    # The list was read again: the next key is about the same thread.
    expect(row(home, "A door").locator("a.title")).to_be_focused()
    home.keyboard.press("?")
    expect(home.locator("dialog")).to_contain_text("Archived threads")
    home.get_by_role("button", name="Close").click()
    home.keyboard.press("f")
    home.keyboard.press("p")
    home.wait_for_url("**/?only=pinned#threads")
    expect(home.locator(".tabs [aria-current]")).to_have_text("Pinned")
    assert titles(home) == ["A door"]
    row(home, "A door").get_by_role("button", name="Unpin").click()
    expect(home.locator("#threads .empty")).to_contain_text("Nothing is pinned.")


def test_an_archived_thread_leaves_the_list_and_comes_back_when_somebody_speaks(house: House, visitor: Visitor) -> None:
    ref = answered(house, "A door")
    home = visitor.open("/")
    archived = visitor.open("/?only=archived", tab=visitor.tab())
    expect(archived.locator("#threads .empty")).to_have_text("Nothing is archived.")
    row(home, "A door").get_by_role("button", name="Archive").click()
    expect(home.locator("#threads .empty")).to_have_count(1)
    expect(row(archived, "A door").locator(".state.archived")).to_have_count(1)
    assert house.get("/search?q=door")["found"]
    # It is no first start: something was done here.
    expect(visitor.open("/").locator(".welcome")).to_have_count(0)
    house.say(ref, "SAY: hello again")
    expect(row(home, "A door")).to_have_count(1)
    expect(archived.locator("#threads .empty")).to_have_count(1)


def test_a_thread_at_work_is_not_archived_and_says_what_to_do(house: House, visitor: Visitor) -> None:
    ref: str = house.post("/chats", {"agent": "guide", "title": "A door"})["ref"]
    house.post(f"/threads/{ref}/words", {"text": "SLOW: 60\nSAY: a long story"})
    house.until(lambda: house.get(f"/threads/{ref}")["thread"]["status"] == "running", "it runs")
    visitor.forgive("409")
    page = visitor.open(f"/threads/{ref}")
    page.get_by_role("button", name="Archive").click()
    expect(page.get_by_role("alert")).to_contain_text("is live.")
    house.post(f"/runs/{house.get(f'/runs?thread={ref}')[0]['id']}/cancel")


@pytest.mark.case("U09")
def test_without_javascript_the_marks_are_buttons(house: House, visitors: Visitors) -> None:
    ref = answered(house, "A door")
    plain = visitors(house, javascript=False, width=NARROW)
    page = plain.open(f"/threads/{ref}")
    assert house.get(f"/threads/{ref}")["thread"]["marks"]["unread"]
    page.get_by_role("button", name="Mark as read").click()
    expect(page.get_by_role("button", name="Mark as unread")).to_have_count(1)
    assert not house.get(f"/threads/{ref}")["thread"]["marks"]["unread"]
    page = plain.open("/")
    row(page, "A door").get_by_role("button", name="Archive").click()
    expect(page.locator("#threads .empty")).to_have_count(1)
    page.get_by_role("link", name="Archived").click()
    row(page, "A door").get_by_role("button", name="Pin").click()
    expect(page.locator(".tabs [aria-current]")).to_have_text("Archived")
    expect(row(page, "A door").locator(".state.pinned")).to_have_count(1)
    fits(page)
    axe(visitors(house).open("/?only=archived"))
    assert plain.open("/?only=nonsense", status=422).get_by_text("Unknown mark").count() == 1
