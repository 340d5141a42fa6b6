"""A real server in this process, clients of its live stream over real sockets, and runs that write lines."""

import asyncio
import itertools
import json
import resource
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self, TypeVar
from urllib.parse import urlencode

from clew.app.http_server import bind, serve_http
from clew.control.threads import open_chat
from clew.control.wakes import say
from clew.protocol.orders import Order
from clew.protocol.reports import RunEventRecord
from clew.protocol.requests import NewChat, Words
from clew.server.app import make_app
from clew.server.auth import Bound, Keys
from clew.server.live import Live
from clew.server.problems import status_of
from clew.store.engine.database import Database
from clew.web.app import Pages
from tests.control.kit import USER, Office, office
from tests.server.kit import TOKEN

T = TypeVar("T")

LONG = 120.0
"""Seconds that anything may take here; a machine may be busy."""


@dataclass(frozen=True)
class Event:
    kind: str
    data: Any
    id: str

    @property
    def line(self) -> tuple[str, int]:
        return self.data["run"], self.data["seq"]


@dataclass
class Client:
    """One connection. `status` and `headers` are those of the answer."""

    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter
    status: int = 0
    headers: dict[str, str] = field(default_factory=dict)
    last: str = ""
    raw: bytes = b""
    _rest: bytes = b""

    @classmethod
    async def open(cls, port: int, query: str, last: str | None, buffer: int | None = None) -> Self:
        reader, writer = await asyncio.open_connection(
            "127.0.0.1", port, **({} if buffer is None else {"limit": buffer})
        )
        head = f"GET /api/v1/live?{query} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nAuthorization: Bearer {TOKEN}\r\n"
        writer.write((head + (f"Last-Event-ID: {last}\r\n" if last else "") + "\r\n").encode())
        client = cls(reader, writer)
        await asyncio.wait_for(client._begin(), LONG)
        return client

    async def _begin(self) -> None:
        status, *headers = (await self.reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
        self.status = int(status.split()[1])
        self.headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in headers)}

    async def body(self) -> Any:
        """The JSON of an answer that is no stream."""
        return json.loads(await self.reader.readexactly(int(self.headers["content-length"])))

    async def next(self, *kinds: str) -> Event:
        """The next event, of these kinds if any are named. Fails at the end of the stream."""
        assert self.status == 200, await self.body()
        async with asyncio.timeout(LONG):
            while True:
                event = await self._event()
                assert event is not None, "the stream ended"
                if not kinds or event.kind in kinds:
                    return event

    async def lines(self, most: int) -> list[Event]:
        return [await self.next("log") for _ in range(most)]

    async def ended(self) -> bool:
        """Whether the server ends the stream in order."""
        async with asyncio.timeout(LONG):
            while await self._event() is not None:
                pass
        return True

    async def close(self) -> None:
        self.writer.close()
        with suppress(OSError):
            await self.writer.wait_closed()

    async def _event(self) -> Event | None:
        while b"\n\n" not in self._rest:
            size = int(await self.reader.readuntil(b"\r\n"), 16)
            self._rest += (await self.reader.readexactly(size + 2))[:-2]
            if not size:
                return None
        self.raw, _, self._rest = self._rest.partition(b"\n\n")
        fields = dict(line.split(": ", 1) for line in self.raw.decode().split("\n"))
        self.last = fields.get("id", self.last)
        return Event(fields["event"], json.loads(fields["data"]), self.last)


@dataclass
class Site:
    """A server on a database, an office beside it that does the agents' work, and how often the store was read."""

    office: Office
    live: Live
    port: int
    reads: int = 0

    async def client(self, query: str = "", last: str | None = None, follow: Sequence[str] = ()) -> Client:
        follows = urlencode([("follow", each) for each in follow])
        return await Client.open(self.port, query or follows, last)


@asynccontextmanager
async def site(database: Database, root: Path) -> AsyncIterator[Site]:
    """Everything anew on the same database: what a restart leaves behind."""
    async with office(database, root) as opened:
        services, listener = opened.services, bind("127.0.0.1", 0)
        bound, live, pages = Bound(listener.getsockname()[1]), Live(services), Pages(services, "", status_of)
        made = Site(opened, live, bound.port)
        services.read = _counted(made, services.read)  # type: ignore[method-assign]
        async with serve_http(make_app(services, Keys(TOKEN), bound, live, pages), listener):
            try:
                yield made
            finally:
                live.close()


def _counted(site: Site, read: Callable[..., Any]) -> Callable[..., Any]:
    async def counted(operation: Any) -> Any:
        site.reads += 1
        return await read(operation)

    return counted


@dataclass
class Writer:
    """A thread in which runs write lines."""

    office: Office
    ref: str
    id: str
    agent: str | None = None
    written: list[tuple[str, int]] = field(default_factory=list)
    """Every line that is durable: its run and its number."""
    order: Order | None = None
    _seq: "itertools.count[int]" = field(default_factory=itertools.count)

    async def begin(self) -> str:
        """A new run, which is now live."""
        await say(self.office.services, USER, self.ref, Words("go on", self.agent))
        self.order = await self.office.claim_one()
        await self.office.prompt(self.order)
        self._seq = itertools.count(1)
        return self.order.run

    async def write(self, lines: int = 1, text: str = "word") -> None:
        assert self.order is not None
        records = [
            RunEventRecord(next(self._seq), "text", json.dumps({"text": text, "final": False})) for _ in range(lines)
        ]
        await self.office.report(self.order, events=tuple(records))
        self.written += ((self.order.run, each.seq) for each in records)

    async def end(self) -> None:
        assert self.order is not None
        assert (await self.office.finish(self.order)).taken

    async def run(self, lines: int) -> str:
        """A whole run, from its begin to its end."""
        run = await self.begin()
        await self.write(lines)
        await self.end()
        return run


async def writer(site: Site, agent: str = "ada", new: bool = True) -> Writer:
    if new:
        await site.office.agent(agent)
    thread = await open_chat(site.office.services, USER, NewChat(agent))
    return Writer(site.office, thread.ref, thread.id)


def allow_sockets(wanted: int) -> None:
    """Both ends of every connection are in this process."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (min(wanted, hard), hard))
