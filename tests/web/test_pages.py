"""Every page there is: it opens without complaint, fits a phone, reads without JavaScript, and suits everybody."""

import re
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from tests.web.conftest import Visitors
from tests.web.kit import House, axe, fits
from tests.web.routes import address, routes
from tests.web.scene import Scene
from tests.web.visitor import NARROW, WIDE, Visitor

DOCS = Path(__file__).parents[2] / "docs" / "pages.md"

every_page = pytest.mark.parametrize("route", routes())
THREADS = ("asks", "held", "failed", "running", "merged", "long", "chat")


def is_whole(page: Page) -> None:
    """It has a title, one heading, the menu, and says no error."""
    expect(page).to_have_title(re.compile(r"\S"))
    expect(page.get_by_role("main").get_by_role("heading", level=1)).to_have_count(1)
    expect(page.get_by_role("navigation", name="Pages")).to_be_visible()


@every_page
@pytest.mark.parametrize(
    ("width", "dark"),
    [
        pytest.param(WIDE, False, id="wide-light"),
        pytest.param(NARROW, True, id="narrow-dark"),
        pytest.param(WIDE, True, id="wide-dark", marks=pytest.mark.proof),
        pytest.param(NARROW, False, id="narrow-light", marks=pytest.mark.proof),
    ],
)
def test_a_page_opens_fits_and_suits_everybody(
    scene: Scene, visitors: Visitors, route: str, width: int, dark: bool
) -> None:
    page = visitors.regular(scene, width=width, dark=dark).open(address(route, scene.examples))
    is_whole(page)
    fits(page)
    axe(page)


@pytest.mark.case("U09")
@every_page
def test_a_page_is_readable_without_javascript(scene: Scene, visitors: Visitors, route: str) -> None:
    path = address(route, scene.examples)
    plain = visitors.regular(scene, javascript=False).open(path)
    is_whole(plain)
    fits(plain)
    rich = visitors.regular(scene).open(path)
    assert headings(plain) == headings(rich)


def headings(page: Page) -> list[str]:
    """Without times: with JavaScript they are told in the reader's own way."""
    found: list[str] = (
        page.get_by_role("main")
        .get_by_role("heading")
        .evaluate_all(
            """all => all.map(each => {
            const copy = each.cloneNode(true);
            copy.querySelectorAll("time").forEach(time => time.remove());
            return copy.textContent.trim();
        })"""
        )
    )
    return found


@pytest.mark.parametrize("which", THREADS)
@pytest.mark.parametrize("width", [WIDE, NARROW])
def test_a_thread_fits_and_suits_everybody_whatever_goes_on_in_it(
    scene: Scene, visitors: Visitors, which: str, width: int
) -> None:
    page = visitors.regular(scene, width=width).open(f"/threads/{getattr(scene, which)}")
    is_whole(page)
    fits(page)
    axe(page)


def test_a_house_where_nothing_was_done_has_no_empty_page(house: House, visitor: Visitor) -> None:
    examples = {"name": "guide", "agent": "guide"}
    for route in routes():
        if set(re.findall(r"\{(\w+)", route)) <= examples.keys():
            page = visitor.open(address(route, examples))
            is_whole(page)
            axe(page)
    assert house.get("/threads?kind=issue") == []


def test_the_menu_leads_to_pages(scene: Scene, visitors: Visitors) -> None:
    visitor = visitors(scene.house)
    menu = visitor.page.get_by_role("navigation", name="Pages").get_by_role("link")
    paths = [path for path in (each.get_attribute("href") for each in menu.all()) if path]
    assert len(paths) > 5
    assert set(paths) <= set(routes())
    for path in paths:
        current = visitor.open(path).get_by_role("navigation", name="Pages").locator("[aria-current=page]")
        expect(current).to_have_attribute("href", path)


# ---------------------------------------------------------------- what is not there


@pytest.mark.parametrize(
    ("path", "status", "words", "remedy"),
    [
        ("/nothing", 404, "There is no page /nothing.", "menu"),
        ("/threads/issue-99", 404, "issue-99", "clew"),
        ("/enter?ticket=wrong", 403, "already used, or it has expired", "clew open"),
    ],
)
def test_what_is_not_there_is_a_page_that_says_what_to_do(
    scene: Scene, visitors: Visitors, path: str, status: int, words: str, remedy: str
) -> None:
    page = visitors(scene.house).open(path, status)
    is_whole(page)
    expect(page.get_by_role("main")).to_contain_text(words)
    expect(page.get_by_role("main")).to_contain_text(remedy)
    axe(page)


@every_page
def test_without_a_login_a_page_says_how_to_log_in(scene: Scene, visitors: Visitors, route: str) -> None:
    visitor = visitors(scene.house, login=False)
    visitor.forgive("status of 401")
    page = visitor.open(address(route, scene.examples), 401)
    is_whole(page)
    expect(page.get_by_role("main")).to_contain_text("clew open")
    assert scene.story not in page.get_by_role("main").inner_text()
    axe(page)


# ---------------------------------------------------------------- docs


def test_every_page_is_in_the_docs() -> None:
    """docs/pages.md has a section for each, headed by its name and its address."""
    documented = re.findall(r"^## .*`(/[^`]*)`$", DOCS.read_text(encoding="utf-8"), re.MULTILINE)
    assert sorted(documented) == routes()
