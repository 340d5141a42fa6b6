"""Many pages that follow one thread while an agent streams in it: memory of each, and when each line arrives."""

import asyncio
import re
import resource
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from bench.process import PATIENCE, Failed
from bench.server import Server, server
from bench.table import Table
from bench.timing import percentile
from bench.wakes import served

PART = "live"

_WARM_UP = 20
"""Pages that are open before the memory is measured: the first of all loads what all of them use."""
_SETTLE = 2.0
_LOG = re.compile(rb'\nevent: log\ndata: (\{"run":"\w+","seq":(\d+),"kind":"[\w-]+","at":([\d.]+))')


@dataclass(frozen=True, slots=True)
class Amount:
    pages: int
    lines: int
    """That the agent prints, one every 50 ms. Its daemon reports those of 100 ms together."""


FULL = Amount(500, 400)
SMALL = Amount(50, 60)


@dataclass(slots=True, eq=False)
class Page(asyncio.Protocol):
    """A page's connection. `taken` are the milliseconds of each line from its writing to its arrival."""

    request: bytes
    taken: list[float] = field(default_factory=list)
    lines: list[int] = field(default_factory=list)
    begun: "asyncio.Future[None]" = field(default_factory=lambda: asyncio.get_running_loop().create_future())
    _rest: bytes = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        transport.write(self.request)

    def data_received(self, data: bytes) -> None:
        now = time.time()
        self._rest += data
        # Chunks of the transfer may cut an event, never the text that is searched for here.
        whole, end, self._rest = self._rest.rpartition(b"\n\n")
        if b"event: changed" in whole and not self.begun.done():
            self.begun.set_result(None)
        for found in _LOG.finditer(whole + end):
            self.lines.append(int(found[2]))
            self.taken.append((now - float(found[3])) * 1e3)

    def connection_lost(self, fault: Exception | None) -> None:
        if not self.begun.done():
            self.begun.set_exception(Failed(f"A page was cut off before it began: {fault}."))


def measure(root: Path, amount: Amount) -> Table:
    _allow_sockets(amount.pages + 200)
    table = Table(PART, ("what", "reached", "wanted"))
    with server(root / "live") as running:
        each, taken = asyncio.run(_watch(running, amount))
    middle, slow = percentile(taken, 0.5), percentile(taken, 0.95)
    met = table.judge("memory of a page", each <= 40, "40 KB at most", f"{each:.0f} KB")
    table.add(f"memory of each of {amount.pages} pages", f"{each:.0f} KB", met)
    table.add("durable to received, median", f"{middle:.0f} ms", "")
    met = table.judge("durable to received, p95", slow <= 200, "200 ms at most", f"{slow:.0f} ms")
    table.add("durable to received, p95", f"{slow:.0f} ms", met)
    table.note = f"{len(taken):,} lines arrived."
    return table


async def _watch(running: Server, amount: Amount) -> tuple[float, list[float]]:
    """Kilobytes of a page, and milliseconds of every line at every page. Fails unless each page has every line once."""
    thread, prints = _thread(running, amount.lines)
    warm = await _open(running, thread, _WARM_UP)
    await asyncio.sleep(_SETTLE)
    before = running.megabytes()
    pages = await _open(running, thread, amount.pages)
    await asyncio.sleep(_SETTLE)
    each = (running.megabytes() - before) * 1024 / amount.pages
    said = await asyncio.to_thread(running.post, f"/threads/{thread}/words", {"text": prints})
    (wake,) = await asyncio.to_thread(served, running, [said["wake"]["id"]])
    log = await asyncio.to_thread(running.get, f"/runs/{wake['run']}/events?limit=500")
    wanted = [line["seq"] for line in log]
    until = time.monotonic() + PATIENCE
    while any(len(page.lines) < len(wanted) for page in pages):
        if time.monotonic() > until:
            raise Failed(f"Some of {amount.pages} pages did not get all {len(wanted)} lines in {PATIENCE:.0f} s.")
        await asyncio.sleep(0.05)
    if any(page.lines != wanted for page in (*warm, *pages)):
        raise Failed("Not every page got every line once and in order.")
    return each, [taken for page in pages for taken in page.taken]


def _thread(running: Server, lines: int) -> tuple[str, str]:
    """A chat with an agent that prints, and the message that starts it."""
    prints = f"for each in $(seq {lines}); do echo line $each of what an agent says while it works; sleep 0.05; done"
    program = ["/bin/sh", "-c", prints]
    running.post("/agents", {"name": "printer", "provider": "command", "program": program, "mode": "full"})
    return running.post("/chats", {"agent": "printer"})["ref"], "go"


async def _open(running: Server, thread: str, many: int) -> Sequence[Page]:
    host, _, port = running.address.removeprefix("http://").partition(":")
    headers = f"Host: {host}:{port}\r\nAuthorization: Bearer {running.token}\r\nAccept: text/event-stream\r\n"
    request = f"GET /api/v1/live?follow={thread} HTTP/1.1\r\n{headers}\r\n".encode()
    loop = asyncio.get_running_loop()
    pages = []
    for _ in range(many):
        _, page = await loop.create_connection(lambda: Page(request), host, int(port))
        async with asyncio.timeout(PATIENCE):
            await page.begun
        pages.append(page)
    return pages


def _allow_sockets(wanted: int) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (min(wanted, hard), hard))
