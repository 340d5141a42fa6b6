"""Unread, pinned and archived threads in a browser: set on the page, kept for the person, and live in every tab."""

import pytest
from playwright.sync_api import Page, expect

from tests.web.conftest import Visitors
from tests.web.kit import House
from tests.web.visitor import Visitor


@pytest.fixture
def ref(house: House) -> str:
    found: str = house.post("/chats", {"agent": "guide", "title": "A door"})["ref"]
    return found


def answered(house: House, ref: str) -> None:
    house.say(ref, "SAY: it opens")
    house.settled(ref)


def row(page: Page, ref: str) -> object:
    return page.locator(".row.thread", has=page.locator(f".ref:text-is('{ref}')"))
