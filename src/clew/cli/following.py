"""A run, or whatever runs serve a wake, followed to the end: every log line once and in order, whatever breaks."""

import time
from collections.abc import Callable, Generator, Iterator
from dataclasses import dataclass, field

from clew.cli.client import Server, part
from clew.cli.reading import read, read_all
from clew.cli.streaming import Absence, Sent, live, look
from clew.protocol.views import ApprovalView, EventView, LogView, RunView, ThreadPage, WakeView

ENDED = frozenset({"succeeded", "failed", "cancelled", "lost"})
OVER = frozenset({"served", "skipped", "cancelled"})

PERSON = "person"

PAGE = 500

LONG = 1.0

Seen = EventView | RunView | ApprovalView


class HeldForPerson(Exception):
    """The run does not go on before somebody has mended what holds it."""

    def __init__(self, run: RunView) -> None:
        super().__init__(run.id)
        self.run = run


@dataclass(slots=True)
class Place:
    """How far somebody has read in a run. Following may be left and taken up again with it."""

    run: str
    seq: int = 0
    state: str = ""
    absence: Absence = field(default_factory=Absence)


def follow_run(server: Server, place: Place) -> Generator[Seen]:
    """Ends with the run's last view."""
    stream = live(server, {"run": place.run, "after": place.seq}, place.absence)
    try:
        for sent in stream:
            yield from _seen(server, place, sent)
            if place.state in ENDED:
                # Its view may have overtaken its last lines.
                yield from events_after(server, place)
                yield see_run(server, place.run, place.absence)
                return
    finally:
        stream.close()


def _seen(server: Server, place: Place, sent: Sent) -> Iterator[Seen]:
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
                if run.state not in ENDED:
                    yield run
        case "approval":
            approval = read(ApprovalView, sent.data)
            if approval.run == place.run:
                yield approval
        case _:
            pass


def events_after(server: Server, place: Place) -> Iterator[EventView]:
    """What the log holds after that place, a page at a time."""
    while True:
        query = {"after": place.seq, "limit": PAGE}
        page = read_all(EventView, look(server, f"/runs/{part(place.run)}/events", query, place.absence))
        for event in page:
            place.seq = event.seq
            yield event
        if len(page) < PAGE:
            return


def see_run(server: Server, run: str, absence: Absence) -> RunView:
    return read(RunView, look(server, f"/runs/{part(run)}", None, absence))


def see_wake(server: Server, wake: str, absence: Absence) -> WakeView:
    return read(WakeView, look(server, f"/wakes/{part(wake)}", None, absence))


def next_run(
    server: Server, wake: WakeView, after: str | None, say: Callable[[str], None], absence: Absence
) -> WakeView:
    """Waits until the wake is over, or another run than `after` has it. A long wait says what for, and ends where only
    a person can end it."""
    begun, pause, said = time.monotonic(), 0.02, ""
    while wake.state not in OVER and (wake.run is None or wake.run == after):
        time.sleep(pause)
        pause = min(1.0, pause * 1.5)
        wake = see_wake(server, wake.id, absence)
        if time.monotonic() - begun > LONG:
            page = read(ThreadPage, look(server, f"/threads/{part(wake.thread)}", {"limit": 1}, absence))
            if page.thread.status == "held":
                _lane_must_go_on(server, wake, absence)
            words = page.thread.words or wake.words
            if words != said:
                say(words)
            said = words
    return wake


def must_go_on(run: RunView) -> None:
    if run.held == PERSON:
        raise HeldForPerson(run)


def _lane_must_go_on(server: Server, wake: WakeView, absence: Absence) -> None:
    newest: dict[str, str | int | None] = {"thread": wake.thread, "agent": wake.agent, "limit": 1}
    for run in read_all(RunView, look(server, "/runs", newest, absence)):
        must_go_on(run)
