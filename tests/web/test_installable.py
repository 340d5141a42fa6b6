"""The page as an installed application: a manifest without errors, also below a path, and an honest offline page."""

import struct
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from clew.web.site import HERE
from tests.web.conftest import Visitors
from tests.web.kit import House, axe
from tests.web.kit import house as house_at
from tests.web.proxy import Proxy
from tests.web.visitor import GONE, Visitor

CONTROLLED = """new Promise(done => {
    if (navigator.serviceWorker.controller) done();
    else navigator.serviceWorker.addEventListener("controllerchange", () => done());
})"""
"""Done once the service worker answers what the page asks for."""


def install_faults(page: Page) -> tuple[dict[str, Any], list[str]]:
    """The manifest, and why the browser would not install it."""
    session = page.context.new_cdp_session(page)
    manifest = session.send("Page.getAppManifest")
    faults = session.send("Page.getInstallabilityErrors")["installabilityErrors"]
    session.detach()
    assert manifest["errors"] == []
    # Each visitor of the tests has a window of this kind.
    return manifest, [each["errorId"] for each in faults if each["errorId"] != "in-incognito"]


@pytest.mark.case("U12")
def test_a_browser_would_install_it(house: House, visitor: Visitor) -> None:
    page = visitor.page
    page.evaluate("navigator.serviceWorker.ready.then(() => true)")
    manifest, faults = install_faults(page)
    assert faults == []
    assert manifest["url"] == f"{house.address}/static/manifest.webmanifest"
    parsed = manifest["manifest"]
    assert (parsed["startUrl"], parsed["scope"]) == (f"{house.address}/", f"{house.address}/")
    colours = page.locator("meta[name=theme-color]").evaluate_all("all => all.map(({media}) => media)")
    assert colours == ["(prefers-color-scheme: light)", "(prefers-color-scheme: dark)"]


def test_below_a_path_it_stays_below_it(tmp_path: Path, visitors: Visitors) -> None:
    with Proxy("/clew", strip=True) as proxy, house_at(tmp_path, "--public", proxy.address) as house:
        proxy.upstream = house.address
        visitor = visitors(house, through=proxy.address)
        page = visitor.page
        page.evaluate("navigator.serviceWorker.ready.then(() => true)")
        manifest, faults = install_faults(page)
        assert faults == []
        parsed = manifest["manifest"]
        assert (parsed["startUrl"], parsed["scope"]) == (f"{proxy.address}/", f"{proxy.address}/")
        proxy.upstream = "http://127.0.0.1:1"
        visitor.forgive(f"{GONE}|50[0-9]")
        visitor.close()


@pytest.mark.parametrize(("name", "size"), [("icon-192", 192), ("icon-512", 512), ("icon-maskable-512", 512)])
def test_icons_are_pictures_of_their_size(name: str, size: int) -> None:
    content = (HERE / "static" / f"{name}.png").read_bytes()
    assert content[:8] == b"\x89PNG\r\n\x1a\n"
    assert struct.unpack(">II", content[16:24]) == (size, size)


@pytest.mark.case("U12")
def test_while_the_server_is_away_a_page_says_so_and_shows_nothing_old(house: House, visitor: Visitor) -> None:
    visitor.forgive(f"{GONE}|503")
    house.post("/chats", {"agent": "guide", "title": "A secret plan"})
    page = visitor.open("/")
    expect(page.locator(".row.thread")).to_contain_text("A secret plan")
    # By a promise: to ask again and again the browser would have to run a text as a program, which the page forbids.
    page.evaluate(CONTROLLED)
    house.kill()
    visitor.open("/threads/chat-1", status=503)
    expect(page.locator("h1")).to_have_text("Clew cannot be reached")
    assert "secret" not in page.content()
    axe(page)
    # The shell is kept, and nothing of what is shown in it.
    kept = page.evaluate(
        "caches.keys().then(names => Promise.all(names.map(name => caches.open(name).then(kept => kept.keys()))))"
        ".then(all => all.flat().map(({url}) => new URL(url).pathname))"
    )
    assert kept
    assert all(path.startswith("/static/") for path in kept), kept
    house.up()
    page.get_by_role("link", name="Try again").click()
    expect(page.locator("h1")).to_contain_text("A secret plan")
