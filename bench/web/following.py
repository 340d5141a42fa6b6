"""An open thread in Chromium: how soon what is durable is to be seen, and what a line costs, short beside long."""

import re
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from playwright.sync_api import Page

from bench.process import PATIENCE, Failed
from bench.server import Server
from bench.table import Table, ratio
from bench.timing import percentile, ratios, spread
from bench.wakes import served
from bench.web.browser import Work, in_browser, opened, visitor
from bench.web.long_thread import Threads
from tests.web.chromium import Chromium

PART, LINES = "visible", "lines"

_PRINTER = "printer"
_EVERY = 0.05
"""Seconds between two lines that the agent prints. Its daemon reports those of 100 ms together."""
_PAUSE = 0.15
"""Seconds between two entries, and from the last letter of a message to its key."""
_NAMED = re.compile(r"(\w+ \d+) of the measurement")
_WANTED = {"median": 60, "p95": 120, "sent": 100, "ratio": 1.3}


@dataclass(frozen=True, slots=True)
class Amount:
    """Of each round: `lines` of an agent, `entries` of someone else, `messages` that are typed."""

    rounds: int
    lines: int
    entries: int
    messages: int


FULL = Amount(5, 100, 30, 12)
SMALL = Amount(2, 40, 8, 4)


@dataclass(slots=True)
class Seen:
    """Milliseconds of everything that was seen in one thread, and of the work of its page for each line and entry."""

    lines: list[float] = field(default_factory=list)
    entries: list[float] = field(default_factory=list)
    durable: list[float] = field(default_factory=list)
    sent: list[float] = field(default_factory=list)
    line_cost: dict[str, list[float]] = field(default_factory=lambda: {"script": [], "all": []})
    entry_cost: dict[str, list[float]] = field(default_factory=lambda: {"script": [], "all": []})


def measure(running: Server, threads: Threads, amount: Amount) -> Sequence[Table]:
    line = "line $each of the measurement of what is seen"
    # Its prompt is long in a long thread: what does not read it is not heard before it has ended.
    prints = f"cat >/dev/null; for each in $(seq {amount.lines}); do echo {line}; sleep {_EVERY}; done"
    program = ["/bin/sh", "-c", prints]
    running.post("/agents", {"name": _PRINTER, "provider": "command", "program": program, "mode": "full"})
    return in_browser(lambda chromium: _measure(chromium, running, threads, amount))


def _measure(chromium: Chromium, running: Server, threads: Threads, amount: Amount) -> Sequence[Table]:
    found, floor = [Seen() for _ in threads.refs], list[float]()
    for number in range(amount.rounds):
        for ref, seen in zip(threads.refs, found, strict=True):
            with visitor(chromium, running) as person:
                address = f"{running.address}/threads/{ref}"
                opened(person.page, address)
                _cost(person.page, running, ref, amount, seen)
                # Anew, because what notes what is seen costs something, too.
                opened(person.page, address)
                person.page.evaluate("clewBench.watch()")
                _follow(person.page, running, ref, amount, seen, number)
                floor += [person.page.evaluate("clewBench.add()") for _ in range(amount.messages)]
    return _visible(threads, found, floor), _lines(threads, found, amount)


# ---------------------------------------------------------------- what is seen, and when


def _follow(page: Page, running: Server, ref: str, amount: Amount, seen: Seen, number: int) -> None:
    run = _print(running, ref)
    _await_lines(page, amount.lines)
    for line in running.get(f"/runs/{run}/events?limit=500"):
        if line["kind"] == "text" and not line["body"].get("final", True):
            seen.lines.append(_seen(page, _NAMED.findall(line["body"]["text"])[-1]) - line["at"] * 1e3)
    for each in range(amount.entries):
        name = f"note {number * amount.entries + each}"
        running.post(f"/threads/{ref}/words", {"text": f"{name} of the measurement", "wakes": False})
        seen.entries.append(_seen(page, name) - _durable(running, ref, name))
        time.sleep(_PAUSE)
    box = page.locator("#composer textarea")
    for each in range(amount.messages):
        name = f"message {number * amount.messages + each}"
        box.fill(f"{name} of the measurement")
        page.wait_for_timeout(_PAUSE * 1e3)
        box.press("Control+Enter")
        at = _seen(page, name)
        asked: float = page.evaluate("clewBench.asked")
        seen.sent.append(at - asked)
        seen.durable.append(_durable(running, ref, name) - asked)
        _quiet(running, ref)


def _seen(page: Page, name: str) -> float:
    at: float = page.evaluate("name => clewBench.seen(name)", name)
    return at


def _durable(running: Server, ref: str, name: str) -> float:
    """When it was written in the database, in milliseconds."""
    entries = running.get(f"/threads/{ref}?limit=5")["entries"]
    (at,) = (entry["at"] for entry in entries if entry["text"] == f"{name} of the measurement")
    return float(at) * 1e3


def _print(running: Server, ref: str) -> str:
    """Has the agent print its lines; returns the run, which has ended."""
    said = running.post(f"/threads/{ref}/words", {"text": "go", "agent": _PRINTER})
    (wake,) = served(running, [said["wake"]["id"]])
    return str(wake["run"])


def _quiet(running: Server, ref: str) -> None:
    until = time.monotonic() + PATIENCE
    while running.get(f"/threads/{ref}?limit=1")["thread"]["status"] != "idle":
        if time.monotonic() > until:
            raise Failed(f"{ref} was not idle after {PATIENCE:.0f} s.")
        time.sleep(0.05)


def _await_lines(page: Page, lines: int) -> None:
    page.locator("#journal > li", has_text=f"line {lines} of the measurement").last.wait_for()


# ---------------------------------------------------------------- what it costs


def _cost(page: Page, running: Server, ref: str, amount: Amount, seen: Seen) -> None:
    work = Work(page)
    before = work.now()
    _print(running, ref)
    _await_lines(page, amount.lines)
    _note(seen.line_cost, before, work.now(), amount.lines)
    before = work.now()
    for each in range(amount.entries):
        text = f"entry {each} at {time.time()}"
        running.post(f"/threads/{ref}/words", {"text": text, "wakes": False})
        page.locator("#journal > li", has_text=text).wait_for()
    _note(seen.entry_cost, before, work.now(), amount.entries)


def _note(cost: dict[str, list[float]], before: Mapping[str, float], after: Mapping[str, float], count: int) -> None:
    for kind, found in cost.items():
        found.append((after[kind] - before[kind]) / count * 1e3)


# ---------------------------------------------------------------- tables


def _visible(threads: Threads, found: Sequence[Seen], floor: Sequence[float]) -> Table:
    heads = [f"{name}, {share}" for name in threads.names for share in ("p50", "p95")]
    table = Table(PART, ("what", *heads, "wanted"))
    lines, entries = [each.lines for each in found], [each.entries for each in found]
    for name, taken in (("a line of an agent: durable to seen", lines), ("an entry: durable to seen", entries)):
        slowest = [max(percentile(each, share) for each in taken) for share in (0.5, 0.95)]
        met = slowest[0] <= _WANTED["median"] and slowest[1] <= _WANTED["p95"]
        wanted = f"at most {_WANTED['median']} and {_WANTED['p95']} ms"
        reached = " and ".join(f"{each:.0f} ms" for each in slowest)
        table.add(name, *_cells(taken), table.judge(name, met, wanted, reached))
    sent = [each.sent for each in found]
    slow = max(percentile(each, 0.95) for each in sent)
    name = "a message: from its key until it is shown as durable"
    wanted = table.judge(name, slow <= _WANTED["sent"], f"at most {_WANTED['sent']} ms", f"{slow:.0f} ms")
    table.add(name, *_cells(sent), wanted)
    table.add("  until it was durable", *_cells([each.durable for each in found]), "")
    alone = [f"{percentile(floor, share):.0f} ms" for share in (0.5, 0.95)]
    table.add("a text that a script adds: until it is painted", *alone, *alone, "")
    counts = [sum(map(len, taken)) for taken in (lines, entries, sent)]
    table.note = "{} reports of lines, {} entries and {} messages.".format(*counts)
    return table


def _cells(taken: Sequence[Sequence[float]]) -> list[str]:
    return [f"{percentile(each, share):.0f} ms" for each in taken for share in (0.5, 0.95)]


def _lines(threads: Threads, found: Sequence[Seen], amount: Amount) -> Table:
    table = Table(LINES, ("what", *threads.names, "ratio", "lowest to highest", "wanted"))
    short, long = found
    for what, ours, beside in (
        ("a line of an agent", long.line_cost, short.line_cost),
        ("an entry", long.entry_cost, short.entry_cost),
    ):
        for kind, words in (("script", "its scripts"), ("all", "all of its main thread")):
            of = ratios(ours[kind], beside[kind])
            met = ""
            if kind == "script":
                wanted = f"at most {_WANTED['ratio']}"
                met = table.judge(what, of.median <= _WANTED["ratio"], wanted, f"{of.median:.2f}")
            shown = [f"{spread(each[kind]).median:.2f} ms" for each in (beside, ours)]
            table.add(f"{what}: {words}", *shown, *ratio(of), met)
    table.note = f"{amount.rounds} rounds of {amount.lines} lines and {amount.entries} entries, by turns."
    return table
