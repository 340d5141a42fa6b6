"""What tests of pages stand on: nothing a browser complains about is missed, and the server comes back under a page."""

import asyncio
from collections.abc import Iterator

import pytest
from playwright.sync_api import Page, Route, expect

from tests.web.chromium import Chromium
from tests.web.conftest import Visitors
from tests.web.kit import House, axe, fits, house
from tests.web.visitor import GONE, NARROW, Visitor

STRICT = "default-src 'none'; script-src 'self'"
INLINE = "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'"


@pytest.fixture(scope="module", name="house")
def _house(tmp_path_factory: pytest.TempPathFactory, chromium: Chromium) -> Iterator[House]:  # noqa: ARG001 - see conftest
    """One for all tests here: none of them looks at what it has."""
    with house(tmp_path_factory.mktemp("rig")) as started:
        yield started


@pytest.fixture(name="visitor")
def _visitor(visitors: Visitors, house: House) -> Visitor:
    return visitors(house, worker=False)


def serve(visitor: Visitor, body: str, policy: str = INLINE, status: int = 200) -> Page:
    """A page of the test's own, at an address of the server. A service worker would fetch it past the test."""
    text = f"<!doctype html><html lang=en><title>A page</title><meta name=viewport content='width=device-width'>{body}"

    def answer(route: Route) -> None:
        route.fulfill(status=status, content_type="text/html", headers={"content-security-policy": policy}, body=text)

    visitor.page.route("**/own", answer)
    return visitor.open("/own", status)


@pytest.mark.parametrize(
    ("body", "policy", "words"),
    [
        ("<script>console.error('a word of the page')</script>", INLINE, "a word of the page"),
        ("<script>throw new Error('not caught')</script>", INLINE, "not caught"),
        ("<script>Promise.reject(new Error('nobody awaits it'))</script>", INLINE, "nobody awaits it"),
        ("<script>alert('hello')</script>", INLINE, "dialog: hello"),
        ("<script>1</script>", STRICT, "Content Security Policy"),
        ("<p style='color: red'>red</p>", STRICT, "Content Security Policy"),
        ("<img src='http://elsewhere.example/x.png' alt=''>", STRICT, "Content Security Policy"),
        ("<a href='/x'>x</a><script>fetch('/nothing-here')</script>", INLINE + "; connect-src 'self'", "status of 404"),
    ],
)
def test_what_a_browser_complains_about_fails_the_test(
    house: House, visitors: Visitors, body: str, policy: str, words: str
) -> None:
    visitor = visitors(house, worker=False)
    page = serve(visitor, body, policy)
    page.wait_for_load_state("networkidle")
    assert any(words in each for each in visitor.complaints), visitor.complaints
    with pytest.raises(AssertionError, match="complained"):
        visitors.check()
    visitor.forgive(".")
    visitors.check()


def test_a_status_that_the_test_expects_is_no_complaint(house: House, visitors: Visitors) -> None:
    visitor = visitors(house, worker=False)
    visitor.open("/nothing", 404)
    assert visitor.complaints == []
    with pytest.raises(AssertionError, match="/nothing"):
        visitor.open("/nothing")
    visitor.forgive("status of 404")


def test_a_page_that_some_cannot_use_is_found(visitor: Visitor) -> None:
    page = serve(visitor, "<main><h1>A page</h1><img src='data:,'></main>", "default-src 'none'; img-src data:")
    with pytest.raises(AssertionError, match="image-alt"):
        axe(page)
    page = serve(visitor, "<main><h1>A page</h1></main>", "default-src 'none'; require-trusted-types-for 'script'")
    axe(page)


def test_a_page_that_is_too_wide_is_found(house: House, visitors: Visitors) -> None:
    visitor = visitors(house, width=NARROW, worker=False)
    wide = "<div style='width: 400px; height: 9px'></div>"
    with pytest.raises(AssertionError, match="px too wide"):
        fits(serve(visitor, wide))
    fits(serve(visitor, f"<div style='overflow-x: auto'>{wide}</div>"))


def test_a_server_is_killed_and_started_again_under_a_page(house: House, visitor: Visitor) -> None:
    visitor.forgive(GONE)
    before = house.pid
    for _ in range(3):
        house.kill()
        house.up()
        expect(visitor.open("/").get_by_role("main")).to_be_visible()
    assert house.pid != before


def test_without_javascript_no_script_runs(house: House, visitors: Visitors) -> None:
    visitor = visitors(house, javascript=False, worker=False)
    page = serve(visitor, "<main><h1>A page</h1></main><script>document.title = 'changed'</script>")
    expect(page).to_have_title("A page")


def test_after_a_browser_has_died_there_is_a_new_one(house: House, visitors: Visitors, chromium: Chromium) -> None:
    first = visitors(house)
    with first.context.expect_event("close"):
        chromium.kill()
    expect(visitors(house).page.get_by_role("main")).to_be_visible()


async def nothing() -> int:
    await asyncio.sleep(0)
    return 1


def test_other_tests_of_the_worker_have_a_loop_of_their_own(chromium: Chromium) -> None:
    """The browser is up, and its loop runs in another thread than the tests."""
    assert chromium.run(lambda: chromium.browser.version)
    assert asyncio.run(nothing()) == 1
