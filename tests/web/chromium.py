"""One Chromium for all tests of a worker, driven from a thread of its own.

Playwright's loop marks its thread as running one, so it would break every `asyncio.run` of other tests in the worker.
"""

import os
import signal
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import TypeVar

from playwright.sync_api import Browser, Error, Playwright, expect, sync_playwright

T = TypeVar("T")

PATIENCE = 60.0
"""Seconds until what should appear on a page must be there; a machine may be busy."""
DEADLINE = 600.0
"""Seconds that one test may take. Playwright waits without an end for a promise of a page."""
QUIET = ("--disable-background-networking", "--disable-component-update", "--disable-sync", "--mute-audio")


class Chromium:
    def __init__(self, program: str) -> None:
        self._program = program
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="chromium")
        self._ident = self._thread.submit(threading.get_ident).result()
        self._playwright: Playwright | None = None
        self._browser: Browser | None = None
        self._pid: int | None = None
        expect.set_options(timeout=PATIENCE * 1000)

    def run(self, work: Callable[[], T]) -> T:
        """In the thread of the browser, from any thread."""
        if threading.get_ident() == self._ident:
            return work()
        future = self._thread.submit(work)
        try:
            return future.result(DEADLINE)
        except BaseException:
            if not future.done():
                # Whatever waits for the browser then ends with an error; the next test gets a new one.
                self.kill()
            raise

    @property
    def browser(self) -> Browser:
        """Started at its first use, and again after it has died. Only for the thread of the browser."""
        if self._browser is None or not self._browser.is_connected():
            if self._playwright is None:
                self._playwright = sync_playwright().start()
            # Without a profile of its own named, it gets a new one, which goes with it. Its pages are ours: no sandbox.
            self._browser = self._playwright.chromium.launch(executable_path=self._program, args=QUIET)
            session = self._browser.new_browser_cdp_session()
            processes = session.send("SystemInfo.getProcessInfo")["processInfo"]
            self._pid = next(each["id"] for each in processes if each["type"] == "browser")
            session.detach()
        return self._browser

    def kill(self) -> None:
        if self._pid is not None:
            with suppress(ProcessLookupError):
                os.kill(self._pid, signal.SIGKILL)
        self._pid = self._browser = None

    def close(self) -> None:
        try:
            self.run(self._close)
        finally:
            self.kill()
            self._thread.shutdown()

    def _close(self) -> None:
        if self._browser is not None:
            with suppress(Error):
                self._browser.close()
            self._pid = self._browser = None
        if self._playwright is not None:
            self._playwright.stop()
