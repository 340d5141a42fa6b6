"""Opening a thread in Chromium: how soon its newest screen is there and how large it is, short beside long."""

from dataclasses import dataclass

from playwright.sync_api import Page

from bench.server import Server
from bench.table import Table, ratio
from bench.timing import ratios, spread
from bench.wakes import served
from bench.web.browser import in_browser, opened, transferred, visitor
from bench.web.long_thread import Threads
from tests.web.chromium import Chromium

PART, OUTPUT = "opening", "output"

_MOST_MS, _MOST_KB, _MOST_NODES = 300, 200, 1_500
_FLOOR = "/static/icon.svg"
_NODES = "document.querySelectorAll('*').length"


@dataclass(slots=True)
class Screens:
    """What was measured of one thread. Times are in milliseconds."""

    first: list[float]
    again: list[float]
    size: int = 0
    nodes: int = 0


def measure(running: Server, threads: Threads, rounds: int) -> Table:
    return in_browser(lambda chromium: _measure(chromium, running, threads, rounds))


def _measure(chromium: Chromium, running: Server, threads: Threads, rounds: int) -> Table:
    found = [Screens([], []) for _ in threads.refs]
    for _ in range(rounds):
        for ref, screens in zip(threads.refs, found, strict=True):
            with visitor(chromium, running) as person:
                screens.first.append(opened(person.page, f"{running.address}/threads/{ref}"))
                screens.size = max(screens.size, transferred(person.page))
                screens.nodes = max(screens.nodes, person.page.evaluate(_NODES))
    floor = []
    with visitor(chromium, running) as person:
        for number in range(rounds + 1):
            for ref, screens in zip(threads.refs, found, strict=True):
                taken = opened(person.page, f"{running.address}/threads/{ref}")
                # The first of all brings the service worker.
                if number:
                    screens.again.append(taken)
            floor.append(opened(person.page, f"{running.address}{_FLOOR}"))
    return _table(threads, found, floor)


def _table(threads: Threads, found: list[Screens], floor: list[float]) -> Table:
    short, long = found
    table = Table(PART, ("what", *threads.names, "ratio", "lowest to highest", "wanted"))
    for name, ours, beside in (
        ("newest screen, a first visit", long.first, short.first),
        ("newest screen, later", long.again, short.again),
    ):
        taken = spread(ours)
        met = table.judge(name, taken.median <= _MOST_MS, f"at most {_MOST_MS} ms", f"{taken.median:.0f} ms")
        shown = [f"{spread(each).median:.0f} ms ({min(each):.0f} to {max(each):.0f})" for each in (beside, ours)]
        table.add(name, *shown, *ratio(ratios(ours, beside)), met)
    table.add("  a small picture of the same server", f"{spread(floor).median:.0f} ms", "", "", "", "")
    size = long.size / 1e3
    met = table.judge("transferred", size <= _MOST_KB, f"at most {_MOST_KB} KB", f"{size:.0f} KB")
    of = f"{long.size / short.size:.2f}"
    table.add("transferred at a first visit", f"{short.size / 1e3:.0f} KB", f"{size:.0f} KB", of, "", met)
    met = table.judge("nodes", long.nodes <= _MOST_NODES, f"at most {_MOST_NODES:,}", f"{long.nodes:,}")
    table.add("elements", f"{short.nodes:,}", f"{long.nodes:,}", f"{long.nodes / short.nodes:.2f}", "", met)
    table.note = (
        f"{len(short.first)} visits of each, by turns. The long thread has {threads.size / 1e6:.1f} MB of texts."
    )
    return table


# ---------------------------------------------------------------- a tool that prints much

_PRINTS = {"a line": "RUN: echo a line", "5 MB": "RUN: head -c 5000000 /dev/zero | tr '\\0' x"}


def measure_output(running: Server) -> Table:
    return in_browser(lambda chromium: _measure_output(chromium, running))


def _measure_output(chromium: Chromium, running: Server) -> Table:
    running.post("/agents", {"name": "tool", "provider": "guide", "mode": "full"})
    table = Table(OUTPUT, ("what", *_PRINTS, "wanted"))
    found = [_printed(chromium, running, script) for script in _PRINTS.values()]
    names = (
        "the page, open while it runs",
        "the page, opened afterwards",
        "its steps, once opened",
        "its output, once opened",
    )
    for at, name in enumerate(names):
        little, much = (each[at] for each in found)
        # Of the same length but for a few digits: the size of the output stands in the page.
        met = (
            "" if at > 2 else table.judge(name, much <= little + 1_000, "1 KB more at most", f"{much - little:,} bytes")
        )
        table.add(name, f"{little / 1e3:.1f} KB", f"{much / 1e3:.1f} KB", met)
    return table


def _printed(chromium: Chromium, running: Server, script: str) -> list[int]:
    """Bytes of a thread's page in which a tool prints: while it is open, as it comes, and what opening it adds."""
    ref = running.post("/chats", {"agent": "tool"})["ref"]
    with visitor(chromium, running) as person:
        page = person.page
        address = f"{running.address}/threads/{ref}"
        page.goto(address)
        page.locator("body[data-ready]").wait_for()
        wake = running.post(f"/threads/{ref}/words", {"text": f"{script}\nSLOW: 2\nSAY: done"})["wake"]["id"]
        page.locator(".step.tool-started:has-text('✓')").wait_for()
        live = page.evaluate("document.documentElement.outerHTML.length")
        served(running, [wake])
        answer = page.goto(address)
        assert answer is not None
        sizes = [live, len(answer.body())]
        page.locator("body[data-ready]").wait_for()
        opens = ("details[id^='s-'] > summary", ".step details > summary")
        return [*sizes, *(_bytes_of_opening(page, summary) for summary in opens)]


def _bytes_of_opening(page: Page, summary: str) -> int:
    """None where it is there already, and only folded."""
    found = page.locator(summary).last
    address = found.evaluate("each => each.parentElement.dataset.load ?? ''")
    if not address:
        return 0
    with page.expect_response(lambda answer: answer.url.endswith(address)) as answered:
        found.click()
    return len(answered.value.body())
