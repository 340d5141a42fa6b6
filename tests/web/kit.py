"""A real server for pages, which can be killed and started again at the same address, and what a page must be."""

import socket
from base64 import b64decode
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from axe_playwright_python.sync_playwright import Axe  # type: ignore[import-untyped]
from playwright.sync_api import Page

from tests.story import kit as story
from tests.up.kit import environment


class House(story.House):
    """One data directory and the server on it, always at one address: `kill` and `up` again under an open page."""

    def __init__(self, root: Path, *options: str, settings: Mapping[str, str] | None = None) -> None:
        # Bound and never listening: the port is not given to others while the server is down, and it can bind it.
        self._reserved = socket.socket()
        self._reserved.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self._reserved.bind(("127.0.0.1", 0))
        port: int = self._reserved.getsockname()[1]
        self.address = f"http://127.0.0.1:{port}"
        self.programs = root / "bin"
        """Programs that the server and its agents find, besides those of the system."""
        for directory in (home := root / "home", self.programs):
            directory.mkdir(exist_ok=True)
        known = {"HOME": str(home), "PATH": f"{self.programs}:/usr/bin:/bin", "GIT_CONFIG_GLOBAL": "/dev/null"}
        self.environment = environment(**{**known, **(settings or {})})
        super().__init__(root, *options, port=port, environment=self.environment)

    def link(self) -> str:
        """Logs in a browser, once."""
        return str(self.post("/tickets")["link"])

    def close(self) -> None:
        self.kill()
        self._reserved.close()


@contextmanager
def house(root: Path, *options: str, settings: Mapping[str, str] | None = None) -> Iterator[House]:
    """Ready with its first agent, the guide; ended afterwards whatever happens."""
    made = House(root.resolve(), *options, settings=settings)
    try:
        made.up()
        made.until(lambda: any(each["name"] == "guide" for each in made.get("/agents")), "the guide is there")
        yield made
    finally:
        made.close()


# ---------------------------------------------------------------- what a page must be


def axe(page: Page) -> None:
    """No violation of the rules that axe-core knows, for people who use a keyboard or a screen reader."""
    found = Axe().run(page, options={"preload": False, "resultTypes": ["violations"]}).response["violations"]
    words = "\n".join(f"{each['id']}: {each['help']}: {_shown(each['nodes'])}" for each in found)
    assert words == "", f"{page.url} is hard to use for some people:\n{words}"


def _shown(nodes: Sequence[Mapping[str, Any]]) -> str:
    return " ".join(f"{node['html'][:160]} ({node['failureSummary'][:200]})" for node in nodes[:3])


_TOO_WIDE = """() => {
    const width = document.documentElement.clientWidth;
    if (document.documentElement.scrollWidth <= width) return [];
    return [...document.body.querySelectorAll("*")]
        .filter(each => each.getBoundingClientRect().right > width + 0.5)
        .map(each => each.outerHTML.slice(0, 120));
}"""


def fits(page: Page) -> None:
    """Nothing of it is beyond the right edge; what scrolls within a box of its own may be wider."""
    wider = page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
    assert wider <= 0, f"{page.url} is {wider} px too wide: {page.evaluate(_TOO_WIDE)[-3:]}"


def picture(page: Page, file: Path, scale: float = 1.0, quality: int = 70) -> None:
    """What is in the window now, once it is drawn, as WebP."""
    page.evaluate("new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))")
    session = page.context.new_cdp_session(page)
    view = page.viewport_size
    assert view is not None
    clip = {"x": 0, "y": page.evaluate("scrollY"), "width": view["width"], "height": view["height"], "scale": scale}
    taken = session.send("Page.captureScreenshot", {"format": "webp", "quality": quality, "clip": clip})
    file.write_bytes(b64decode(taken["data"]))
    session.detach()
