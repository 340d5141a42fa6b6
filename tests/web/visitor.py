"""A person at a browser: a profile of their own, their tabs, and everything the browser complained about."""

import re
from contextlib import suppress
from pathlib import Path
from urllib.parse import urljoin

from playwright.sync_api import ConsoleMessage, Dialog, Error, Page, WebError

from tests.web.chromium import PATIENCE, Chromium

WIDE, NARROW = 1280, 360
GONE = r"net::ERR_|Failed to fetch|fetching the script"
"""What a browser says of a server that is not there, or that went away in the middle of an answer."""


class Visitor:
    """`page` is the first tab. What the console has of errors and violated policies fails the test, unless forgiven.

    All of it is for the thread of the browser, in which tests run.
    """

    def __init__(
        self,
        chromium: Chromium,
        address: str,
        *,
        width: int = WIDE,
        dark: bool = False,
        javascript: bool = True,
        zone: str = "Europe/Berlin",
        touch: bool = False,
        worker: bool = True,
    ) -> None:
        self.address = address
        self.complaints: list[str] = []
        self._forgiven: list[re.Pattern[str]] = []
        self._refused: set[tuple[str, int]] = set()
        self.context = chromium.browser.new_context(
            viewport={"width": width, "height": 800},
            color_scheme="dark" if dark else "light",
            java_script_enabled=javascript,
            reduced_motion="reduce",
            timezone_id=zone,
            has_touch=touch,
            # What a service worker fetches cannot be held up by a test.
            service_workers="allow" if worker else "block",
        )
        self.context.set_default_timeout(PATIENCE * 1000)
        self.context.on("console", self._console)
        self.context.on("weberror", self._fault)
        self.context.on("dialog", self._dialog)
        self.page = self.tab()

    def tab(self) -> Page:
        page = self.context.new_page()
        page.on("crash", lambda _: self._complain("the page crashed"))
        return page

    def open(self, path: str = "/", status: int = 200, tab: Page | None = None) -> Page:
        """A page by its path, or a link; it must answer with this status."""
        page, url = tab or self.page, urljoin(f"{self.address}/", path.removeprefix("/"))
        if status >= 400:
            self._refused.add((url, status))
        answer = page.goto(url)
        assert answer is not None, f"{path} was not loaded anew"
        assert answer.status == status, (path, answer.status, page.inner_text("body")[:500])
        return page

    def enter(self, link: str) -> None:
        """Log in by a link. One that names the server itself is followed through the proxy that is in between."""
        self.open(re.sub(r"^https?://[^/]+", "", link.removeprefix(self.address)))

    # ---------------------------------------------------------------- complaints

    def forgive(self, pattern: str) -> None:
        """This is expected, also if it was said before: `GONE` where a test takes the server away."""
        self._forgiven.append(re.compile(pattern))

    def unforgiven(self) -> list[str]:
        return [each for each in self.complaints if not any(known.search(each) for known in self._forgiven)]

    def _console(self, message: ConsoleMessage) -> None:
        if message.type == "error":
            url = message.location["url"]
            found = re.search(r"status of (\d+)", message.text)
            if found is None or (url, int(found[1])) not in self._refused:
                self._complain(f"{message.text} ({url})")

    def _fault(self, error: WebError) -> None:
        self._complain(f"uncaught: {error.error}")

    def _dialog(self, dialog: Dialog) -> None:
        self._complain(f"dialog: {dialog.message}")
        dialog.dismiss()

    def _complain(self, words: str) -> None:
        self.complaints.append(words)

    # ---------------------------------------------------------------- the end

    def leave_traces(self, directory: Path, name: str) -> str:
        """What a person looks at when the test has failed: every tab as a picture, its address, the complaints."""
        lines = []
        for number, page in enumerate(self.context.pages):
            file = directory / f"{name}-{number}.png"
            page.screenshot(path=file, full_page=True, timeout=10_000)
            lines.append(f"{page.url}  {file}")
        return "\n".join([*lines, *self.complaints])

    def is_there(self) -> bool:
        """Its browser may have died, and another was started since."""
        browser = self.context.browser
        return browser is not None and browser.is_connected()

    def close(self) -> None:
        # A browser that has died has nothing left to close.
        with suppress(Error):
            self.context.close()
