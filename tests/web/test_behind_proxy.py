"""Pages behind a proxy: below a path, or one that buffers, cuts idle connections, or is away for a while."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from tests.web.conftest import Visitors
from tests.web.kit import House, house
from tests.web.proxy import Proxy
from tests.web.routes import routes
from tests.web.visitor import GONE, Visitor

Behind = Callable[[Proxy], House]


@pytest.fixture
def behind(tmp_path: Path) -> Iterator[Behind]:
    """Starts a server that is reached through the proxy. Both last until the test is over, and its browser checked."""
    with ExitStack() as stack:

        def started(proxy: Proxy) -> House:
            stack.enter_context(proxy)
            made = stack.enter_context(house(tmp_path, "--public", proxy.address))
            proxy.upstream = made.address
            return made

        yield started


def open_chat(house: House, visitor: Visitor) -> tuple[str, Page]:
    ref = house.post("/chats", {"agent": "guide"})["ref"]
    return ref, visitor.open(f"/threads/{ref}")


def hears(page: Page, house: House, ref: str, text: str) -> None:
    """What the agent says comes to the page by itself."""
    house.say(ref, f"SAY: {text}")
    expect(page.locator("li.item.agent", has_text=text)).to_have_count(1)


@pytest.mark.parametrize("strip", [True, False], ids=["stripped", "kept"])
def test_below_a_path_everything_stays_below_it(behind: Behind, visitors: Visitors, strip: bool) -> None:
    proxy = Proxy("/clew", strip=strip)
    house = behind(proxy)
    visitor = visitors(house, through=proxy.address)
    for route in (route for route in routes() if "{" not in route):
        visitor.open(route)
    ref, page = open_chat(house, visitor)
    hears(page, house, ref, "hello")
    page.get_by_role("link", name="Clew").click()
    expect(page).to_have_url(f"{proxy.address}/")
    assert proxy.strays == []


def test_behind_a_proxy_that_buffers_news_arrive_if_late(behind: Behind, visitors: Visitors) -> None:
    """Not one block gets full, so nothing of the stream arrives."""
    proxy = Proxy(block=2**20)
    house = behind(proxy)
    ref, page = open_chat(house, visitors(house, through=proxy.address))
    hears(page, house, ref, "hello")


def test_a_proxy_that_is_asked_not_to_buffer_delays_nothing(behind: Behind, visitors: Visitors) -> None:
    proxy = Proxy(block=2**20, obeys=True)
    house = behind(proxy)
    ref, page = open_chat(house, visitors(house, through=proxy.address))
    for text in ("one", "two", "three"):
        hears(page, house, ref, text)
    expect(page.locator("#live")).to_be_hidden()


def test_behind_a_proxy_that_cuts_what_is_idle_news_arrive(behind: Behind, visitors: Visitors) -> None:
    """It cuts sooner than the server's beat: every connection ends."""
    proxy = Proxy(idle=2)
    house = behind(proxy)
    visitor = visitors(house, through=proxy.address)
    visitor.forgive(GONE)
    ref, page = open_chat(house, visitor)
    for number in range(3):
        before = proxy.cuts
        house.until(lambda before=before: proxy.cuts > before, "a cut")  # type: ignore[misc]
        hears(page, house, ref, f"after cut {number}")


@pytest.mark.case("U01", "U02")
@pytest.mark.parametrize("how", ["stop", "hush"])
def test_while_the_way_is_cut_the_page_says_so_and_then_misses_nothing(
    behind: Behind, visitors: Visitors, how: str
) -> None:
    proxy = Proxy()
    house = behind(proxy)
    visitor = visitors(house, through=proxy.address)
    visitor.forgive(GONE)
    ref, page = open_chat(house, visitor)
    hears(page, house, ref, "before")
    (proxy.stop if how == "stop" else proxy.hush)()
    expect(page.locator("#live")).to_contain_text("Cut off")
    house.say(ref, "SAY: meanwhile")
    (proxy.start if how == "stop" else proxy.speak)()
    expect(page.locator("li.item.agent", has_text="meanwhile")).to_have_count(1)
    expect(page.locator("#live")).to_be_hidden()
