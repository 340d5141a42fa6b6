"""The search page: what is found, where it leads, and what is not."""

import pytest
from playwright.sync_api import expect

from tests.web.kit import House, axe, fits
from tests.web.visitor import Visitor


@pytest.mark.case("U08")
def test_words_of_a_message_are_found_and_lead_to_it(house: House, visitor: Visitor) -> None:
    ref = house.post("/chats", {"agent": "guide", "title": "About <b>doors</b>"})["ref"]
    house.say(ref, "SAY: the northern gate")
    page = visitor.open("/")
    page.fill(".find input", "northern gate")
    page.press(".find input", "Enter")
    expect(page.locator("mark").first).to_have_text("northern")
    expect(page.locator("main")).to_contain_text("About <b>doors</b>")
    axe(page)
    fits(page)
    page.locator("main a.ref", has_text="open").first.click()
    expect(page.locator("li.item:target")).to_contain_text("northern gate")


def test_what_is_not_there_or_cannot_be_searched_for_says_what_to_do(visitor: Visitor) -> None:
    page = visitor.open("/search?q=nosuchwordanywhere")
    expect(page.locator("main")).to_contain_text("Nothing has all these words")
    page = visitor.open("/search?q=-only", status=422)
    expect(page.locator("main")).to_contain_text("Add a word to search for")
    expect(visitor.open("/search").locator("main")).to_contain_text("Type words")
