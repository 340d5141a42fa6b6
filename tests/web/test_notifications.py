"""Notifications of an open page: told once per browser, silent while one looks, and with no content unless wanted."""

from typing import Any

import pytest
from playwright.sync_api import Page, expect

from tests.web.conftest import Visitors
from tests.web.kit import House, axe
from tests.web.visitor import Visitor

SHOWN = """async () => {
    const registration = await navigator.serviceWorker.ready;
    return (await registration.getNotifications()).map(({title, body, data}) => [title, body, data]);
}"""


def shown(page: Page) -> list[Any]:
    found: list[Any] = page.evaluate(SHOWN)
    return found


def chat(house: House, title: str = "A secret plan") -> str:
    found: str = house.post("/chats", {"agent": "guide", "title": title})["ref"]
    return found


def asked(house: House, ref: str) -> str:
    """A command waits for an answer."""
    house.change("/agents/guide", {"mode": "ask"})
    house.post(f"/threads/{ref}/words", {"text": "RUN: echo hello"})
    house.until(lambda: house.get("/approvals"), "an approval")
    found: str = house.get("/approvals")[0]["id"]
    return found


def notified(visitors: Visitors, house: House) -> Visitor:
    """Turned notifications on, in the settings, by a click."""
    visitor = visitors(house)
    page = visitor.open("/settings")
    button = page.locator("#notify button")
    expect(button).to_have_text("Notify me in this browser")
    visitor.context.grant_permissions(["notifications"], origin=house.address)
    button.click()
    expect(button).to_have_text("Turn off in this browser")
    axe(page)
    return visitor


@pytest.mark.case("U11")
def test_what_needs_a_person_and_what_is_done_is_told_once_by_twenty_tabs(house: House, visitors: Visitors) -> None:
    told = notified(visitors, house)
    ref, page = chat(house), told.page
    for _ in range(19):
        told.open("/runs", tab=told.tab())
    approval = asked(house, ref)
    house.until(lambda: shown(page), "a notification")
    assert shown(page) == [[f"{ref} needs you", "", f"/threads/{ref}"]]
    house.post(f"/approvals/{approval}", {"allow": True})
    # What was answered needs nobody any more.
    house.until(lambda: shown(page) == [[f"{ref} is done", "", f"/threads/{ref}"]], "it is done")


@pytest.mark.case("U11")
def test_who_looks_at_the_thread_is_not_disturbed(house: House, visitors: Visitors) -> None:
    told = notified(visitors, house)
    ref, other = chat(house), chat(house)
    page = told.open(f"/threads/{ref}")
    page.bring_to_front()
    house.say(ref, "SAY: seen")
    expect(page.locator("li.item.agent")).to_have_count(1)
    house.say(other, "SAY: not seen")
    house.until(lambda: shown(page), "a notification")
    assert [each[0] for each in shown(page)] == [f"{other} is done"]


def test_the_title_is_shown_to_those_who_want_it_and_off_is_off(house: House, visitors: Visitors) -> None:
    told = notified(visitors, house)
    ref, page = chat(house, "<b>A plan</b>"), told.page
    page.locator("#notify input").check()
    house.say(ref, "SAY: one")
    house.until(lambda: shown(page), "a notification")
    assert shown(page) == [[f"{ref} is done", "<b>A plan</b>", f"/threads/{ref}"]]
    page.locator("#notify button").click()
    expect(page.locator("#notify button")).to_have_text("Notify me in this browser")
    before = len(shown(page))
    home = told.open("/", tab=told.tab())
    house.say(ref, "SAY: two")
    expect(home.locator(".row.thread.unread")).to_have_count(1)
    house.quiet(ref)
    assert len(shown(page)) == before


def test_what_was_there_before_it_was_turned_on_is_not_told(house: House, visitors: Visitors) -> None:
    ref = chat(house)
    house.say(ref, "SAY: old")
    house.quiet(ref)
    visitor = visitors(house)
    page = visitor.open("/settings")
    visitor.context.grant_permissions(["notifications"], origin=house.address)
    page.locator("#notify button").click()
    expect(page.locator("#notify button")).to_have_text("Turn off in this browser")
    house.say(ref, "SAY: new")
    house.until(lambda: shown(page), "a notification")
    assert len(shown(page)) == 1


def test_nobody_is_asked_without_a_click_and_a_refusal_says_what_to_do(house: House, visitors: Visitors) -> None:
    visitor = visitors(house)
    visitor.context.add_init_script(
        "const ask = Notification.requestPermission; window.asks = 0;"
        "Notification.requestPermission = () => { window.asks += 1; return ask.call(Notification); }"
    )
    page = visitor.open("/settings")
    expect(page.locator("#notify button")).to_be_visible()
    assert page.evaluate("window.asks") == 0
    # Headless Chromium refuses for the person.
    page.locator("#notify button").click()
    expect(page.locator("#notify .problem")).to_contain_text("Allow notifications for this address")
    assert page.evaluate("window.asks") == 1
