"""Back, forward and reload keep the place that a person reads, and what they have typed."""

import pytest
from playwright.sync_api import Page, expect

from tests.web.conftest import Visitors
from tests.web.scene import Scene
from tests.web.visitor import Visitor


@pytest.fixture
def visitor(scene: Scene, visitors: Visitors) -> Visitor:
    return visitors(scene.house)


def ready(page: Page) -> None:
    expect(page.locator("body[data-ready]")).to_have_count(1)


def top(page: Page, entry: int) -> float:
    found = page.locator(f"#e-{entry}").bounding_box()
    assert found is not None
    return found["y"]


def read_at(page: Page, entry: int) -> float:
    """Goes to an entry, reading earlier ones where it is one of them; returns where it stands in the window."""
    ready(page)
    while not page.locator(f"#e-{entry}").count():
        first = page.locator("#journal > [data-seq]").first.get_attribute("id")
        page.locator("[data-earlier]").click()
        expect(page.locator("#journal > [data-seq]").first).not_to_have_id(str(first))
    page.locator(f"#e-{entry}").evaluate("each => scrollTo({ top: each.offsetTop - 100 })")
    return top(page, entry)


def stays(page: Page, entry: int, before: float) -> None:
    ready(page)
    expect(page.locator(f"#e-{entry}")).to_be_in_viewport()
    assert abs(top(page, entry) - before) < 3


def test_a_reload_keeps_the_place_also_among_earlier_entries(scene: Scene, visitor: Visitor) -> None:
    page = visitor.open(f"/threads/{scene.long}")
    before = read_at(page, 12)
    page.reload()
    stays(page, 12, before)


def test_back_and_forward_keep_the_place(scene: Scene, visitor: Visitor) -> None:
    page = visitor.open(f"/threads/{scene.long}")
    before = read_at(page, 50)
    # By keys: before a click the browser of the test scrolls.
    page.keyboard.press("g")
    page.keyboard.press("r")
    expect(page).to_have_title("Runs · Clew")
    page.evaluate("scrollTo({ top: 200 })")
    below = page.evaluate("scrollY")
    page.go_back()
    stays(page, 50, before)
    page.go_forward()
    expect(page).to_have_title("Runs · Clew")
    page.evaluate(
        "wanted => new Promise(done => (function look() {"
        " if (scrollY === wanted) done(); else requestAnimationFrame(look); })())",
        below,
    )
    # A fresh visit begins at the newest.
    visitor.open(f"/threads/{scene.long}")
    ready(page)
    expect(page.locator("#e-70")).to_be_in_viewport()


def test_a_link_to_an_entry_leads_to_it_and_what_is_typed_stays(scene: Scene, visitor: Visitor) -> None:
    page = visitor.open(f"/threads/{scene.long}?before=31#e-22")
    ready(page)
    expect(page.locator("#e-22")).to_be_in_viewport()
    page = visitor.open(f"/threads/{scene.long}")
    ready(page)
    page.fill("#message", "half a sentence")
    page.reload()
    expect(page.locator("#message")).to_have_value("half a sentence")
    page.get_by_role("link", name="Home").click()
    page.go_back()
    expect(page.locator("#message")).to_have_value("half a sentence")
    page.fill("#message", "")
