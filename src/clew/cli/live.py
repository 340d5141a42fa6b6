"""Following a run or a wake over live events. Every log line comes once and in order, also across a restart."""

import time
from collections.abc import Callable, Generator, Iterator
from dataclasses import dataclass, field
from http.client import HTTPException, HTTPResponse

from clew.cli.answers import read, read_all
from clew.cli.client import NoAnswer, NotRunning, Query, Refused, Server, part
from clew.cli.output import warn
from clew.protocol.views import ApprovalView, EventView, LogView, RunView, WakeView

SILENCE = 30.0
"""Seconds. The server sends a beat every 10, so one that is silent this long is gone."""

PATIENCE = 60.0
"""Seconds to wait for a server that is restarting."""


@dataclass(frozen=True, slots=True)
class Sent:
    kind: str
    data: str


class Outage:
    """Waits while the server is away, up to `patience` seconds; then raises."""

    def __init__(self, patience: float = PATIENCE) -> None:
        self._patience = patience
        self._reached = False
        self._since: float | None = None

    def over(self) -> None:
        if self._since is not None:
            warn("Clew is back.")
        self._reached, self._since = True, None

    def wait(self, fault: Exception) -> None:
        """Raises at once if the server was never reached, or if it refused the request."""
        refused = isinstance(fault, Refused) and fault.status < _ITS_OWN_FAULT
        if not self._reached or refused:
            raise _as_fault(fault)
        if self._since is None:
            self._since = time.monotonic()
            warn(f"Lost the connection to Clew. Waiting up to {self._patience:g} seconds for it.")
        elif time.monotonic() - self._since > self._patience:
            raise _as_fault(fault)
        time.sleep(_PAUSE)


_GONE = (OSError, HTTPException, NotRunning, NoAnswer, Refused)
_ITS_OWN_FAULT = 500
_PAUSE = 0.2


def _as_fault(fault: Exception) -> Exception:
    return (
        NoAnswer(f"Clew does not answer: {fault}.", "Check it with `clew doctor`.")
        if isinstance(fault, OSError | HTTPException)
        else fault
    )


def live(server: Server, query: Query, outage: Outage) -> Generator[Sent]:
    """Every event, without end; reconnects with Last-Event-ID."""
    last: str | None = None
    while True:
        try:
            connection, answer = server.stream("/live", query, last, SILENCE)
            outage.over()
            try:
                for event_id, sent in _events(answer):
                    last = event_id or last
                    yield sent
            finally:
                connection.close()
            # The server ended the stream in order: it is shutting down.
            time.sleep(_PAUSE)
        except _GONE as fault:
            outage.wait(fault)


def _get_retrying(server: Server, path: str, query: Query | None, outage: Outage) -> bytes:
    """A GET that waits for a restarting server."""
    while True:
        try:
            said = server.get(path, query)
        except _GONE as fault:
            outage.wait(fault)
        else:
            outage.over()
            return said


def _events(answer: HTTPResponse) -> Iterator[tuple[str | None, Sent]]:
    """Parses the text/event-stream format."""
    kind, event_id, data = "", None, list[str]()
    while raw := answer.readline():
        line = raw.decode("utf-8", "replace").rstrip("\r\n")
        name, _, value = line.partition(":")
        value = value.removeprefix(" ")
        if not line:
            if data:
                yield event_id, Sent(kind or "message", "\n".join(data))
            kind, data = "", []
        elif name == "event":
            kind = value
        elif name == "id":
            event_id = value
        elif name == "data":
            data.append(value)


RUN_ENDED = frozenset({"succeeded", "failed", "cancelled", "lost"})
WAKE_ENDED = frozenset({"served", "skipped", "cancelled"})


PAGE = 500

LONG = 1.0

Seen = EventView | RunView | ApprovalView


class HeldForPerson(Exception):
    """The run is held until a person fixes the cause."""

    def __init__(self, run: RunView) -> None:
        super().__init__(run.id)
        self.run = run


@dataclass(slots=True)
class RunPosition:
    """How far a run was read. `follow_run` can be left and continued with it."""

    run: str
    seq: int = 0
    state: str = ""
    outage: Outage = field(default_factory=Outage)


def follow_run(server: Server, place: RunPosition) -> Generator[Seen]:
    """The last item is the view of the ended run."""
    stream = live(server, {"run": place.run, "after": place.seq}, place.outage)
    try:
        for sent in stream:
            yield from _seen(server, place, sent)
            if place.state in RUN_ENDED:
                # Its last log lines may not have arrived yet.
                yield from events_after(server, place)
                yield get_run(server, place.run, place.outage)
                return
    finally:
        stream.close()


def _seen(server: Server, place: RunPosition, sent: Sent) -> Iterator[Seen]:
    match sent.kind:
        case "log":
            line = read(LogView, sent.data)
            if line.run == place.run and line.seq > place.seq:
                if line.seq > place.seq + 1:
                    yield from events_after(server, place)
                if line.seq > place.seq:
                    place.seq = line.seq
                    yield EventView(line.seq, line.kind, line.at, line.body)
        case "run":
            run = read(RunView, sent.data)
            if run.id == place.run:
                place.state = run.state
                if run.state not in RUN_ENDED:
                    yield run
        case "approval":
            approval = read(ApprovalView, sent.data)
            if approval.run == place.run:
                yield approval
        case _:
            pass


def events_after(server: Server, place: RunPosition) -> Iterator[EventView]:
    """Log lines after the position, read page by page."""
    while True:
        query = {"after": place.seq, "limit": PAGE}
        page = read_all(EventView, _get_retrying(server, f"/runs/{part(place.run)}/events", query, place.outage))
        for event in page:
            place.seq = event.seq
            yield event
        if len(page) < PAGE:
            return


def get_run(server: Server, run: str, outage: Outage) -> RunView:
    return read(RunView, _get_retrying(server, f"/runs/{part(run)}", None, outage))


def get_wake(server: Server, wake: str, outage: Outage) -> WakeView:
    return read(WakeView, _get_retrying(server, f"/wakes/{part(wake)}", None, outage))


def next_run(
    server: Server, wake: WakeView, after: str | None, report: Callable[[RunView | None, str], None], outage: Outage
) -> WakeView:
    """Waits until the wake has ended, or a run other than `after` serves it. After `LONG` seconds it reports what it
    waits for, and raises HeldForPerson if a person must act."""
    started, pause = time.monotonic(), 0.02
    while wake.state not in WAKE_ENDED and (wake.run is None or wake.run == after):
        time.sleep(pause)
        pause = min(1.0, pause * 1.5)
        wake = get_wake(server, wake.id, outage)
        if time.monotonic() - started > LONG:
            newest = _newest_run(server, wake, outage)
            if newest is not None:
                raise_if_held(newest)
            if newest is not None and newest.state == "waiting":
                report(None, f"{newest.ref} waits for your answer first: `clew approvals`.")
            else:
                report(newest if newest is not None and newest.state == "queued" else None, wake.words)
    return wake


def raise_if_held(run: RunView) -> None:
    if run.held == "person":
        raise HeldForPerson(run)


def _newest_run(server: Server, wake: WakeView, outage: Outage) -> RunView | None:
    """The run that the wake waits for: the newest of its lane. Another agent's in the thread is not its own."""
    newest: dict[str, str | int | None] = {"thread": wake.thread, "agent": wake.agent, "limit": 1}
    return next(iter(read_all(RunView, _get_retrying(server, "/runs", newest, outage))), None)
