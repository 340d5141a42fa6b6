"""Real Chromium at the pages of a server, and a script in each of them that notes when something is to be seen."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, TypeVar

from playwright.sync_api import CDPSession, Page

from bench.process import Failed
from bench.server import Server
from tests.web.chromium import Chromium
from tests.web.visitor import Visitor
from tools import browser

T = TypeVar("T")

# `opened` becomes how many milliseconds after the start of the navigation the newest entry was painted in the window.
# From `watch()` on, `seen(name)` becomes when the text "NAME of the measurement" was painted in the journal, and
# `asked` is when Enter was pressed last. Both are times of the system's clock.
_SCRIPT = r"""(() => {
    const clock = () => performance.timeOrigin + performance.now();
    // What is posted in a frame comes after the frame was painted.
    const painted = () => new Promise((done) => requestAnimationFrame(() => {
        const { port1, port2 } = new MessageChannel();
        port1.onmessage = () => done(clock());
        port2.postMessage(null);
    }));
    const waiting = new Map();
    const slot = (name) => {
        if (!waiting.has(name)) {
            const made = {};
            made.promise = new Promise((done, failed) => {
                made.done = done;
                setTimeout(() => failed(new Error(`${name} was not seen`)), 60000);
            });
            made.promise.catch(() => {});
            waiting.set(name, made);
        }
        return waiting.get(name);
    };
    const seen = (name) => slot(name).promise;
    const bench = globalThis.clewBench = { asked: 0, seen, opened: seen('the newest entry') };
    const look = () => {
        const last = [...document.querySelectorAll('#journal > li[data-seq]')].pop() ?? document.querySelector('svg');
        const place = document.readyState !== 'loading' && last?.getBoundingClientRect();
        if (place && place.height > 0 && place.bottom > 0 && place.bottom <= innerHeight) {
            painted().then((at) => slot('the newest entry').done(at - performance.timeOrigin));
        } else requestAnimationFrame(look);
    };
    requestAnimationFrame(look);
    const known = new Set();
    const note = (node) => {
        for (const [found] of node.textContent.matchAll(/\w+ \d+ (?=of the measurement)/g)) {
            const name = found.trim();
            if (!known.has(name)) painted().then(slot(name).done);
            known.add(name);
        }
    };
    bench.watch = () => {
        new MutationObserver((changes) => changes.forEach((each) => each.addedNodes.forEach(note)))
            .observe(document.getElementById('journal'), { childList: true, subtree: true });
        addEventListener('keydown', (event) => {
            if (event.key === 'Enter') bench.asked = performance.timeOrigin + event.timeStamp;
        }, true);
    };
    // The floor: a script adds a text at some moment, and it is painted.
    bench.add = async () => {
        await new Promise((done) => setTimeout(done, Math.random() * 50));
        const began = clock();
        document.getElementById('notices').append(' text');
        return await painted() - began;
    };
})()"""


def without_browser() -> str:
    """Why there is no browser to measure in; empty where there is one."""
    try:
        found = browser.chromium()
    except browser.NoBrowser as fault:
        return str(fault)
    return "" if found else f"{', '.join(browser.NAMES)}: none of them is here. Run `make browser`."


def in_browser(measure: Callable[[Chromium], T]) -> T:
    """Its result, measured in the thread of a Chromium of its own."""
    program = browser.chromium()
    assert program is not None
    chromium = Chromium(program)
    try:
        return chromium.run(lambda: measure(chromium))
    finally:
        chromium.close()


@contextmanager
def visitor(chromium: Chromium, running: Server) -> Iterator[Visitor]:
    """Someone who has just logged in, with a profile of their own; their pages note what they show."""
    made = Visitor(chromium, running.address)
    try:
        made.enter(running.post("/tickets", {})["link"])
        made.context.add_init_script(_SCRIPT)
        # A browser asks for it beside a picture that is opened alone.
        made.forgive(r"favicon\.ico")
        yield made
        if complaints := made.unforgiven():
            raise Failed(f"The browser complained: {complaints[:3]}")
    finally:
        made.close()


def opened(page: Page, address: str) -> float:
    """Milliseconds until the newest entry was to be seen; returns when the page has settled."""
    page.goto("about:blank")
    page.goto(address)
    taken: float = page.evaluate("clewBench.opened")
    if page.locator("#journal").count():
        page.locator("body[data-ready]").wait_for()
    return taken


def transferred(page: Page) -> int:
    """Bytes that came over the connection for this page, with its scripts and styles and with all headers."""
    taken: int = page.evaluate(
        "['navigation', 'resource'].flatMap(kind => performance.getEntriesByType(kind))"
        ".reduce((sum, each) => sum + each.transferSize, 0)"
    )
    return taken


class Work:
    """What the main thread of a page does, in seconds: `script`, `layout` (with styles) and `all` of its tasks."""

    def __init__(self, page: Page) -> None:
        self._session: CDPSession = page.context.new_cdp_session(page)
        self._session.send("Performance.enable")

    def now(self) -> Mapping[str, float]:
        found: list[Any] = self._session.send("Performance.getMetrics")["metrics"]
        known = {each["name"]: each["value"] for each in found}
        layout = known["LayoutDuration"] + known["RecalcStyleDuration"]
        return {"script": known["ScriptDuration"], "layout": layout, "all": known["TaskDuration"]}
