"""What is said of one run: its log in batches, what must be known soon, what is asked, and its end. All in order."""

import asyncio
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from clew.daemon.delivering import Carrier, until_answered
from clew.daemon.letters import letter_of
from clew.daemon.limits import Limits
from clew.daemon.outbox import Kept, Outbox
from clew.daemon.telling import STEP, TEXT, THOUGHT, line_of, line_of_steer, written
from clew.kernel import ApprovalId
from clew.ports.events import Event
from clew.ports.fault import Fault
from clew.protocol.control import ControlPlane
from clew.protocol.orders import Order
from clew.protocol.reports import (
    Asked,
    End,
    Finish,
    Finished,
    NewSession,
    Report,
    Reported,
    Returned,
    RunEventRecord,
    Steer,
    Steered,
)

_PARTS = frozenset({TEXT, THOUGHT})
_TRIES = 5
"""How often something is asked that the server answers with a fault, and is there to do so."""


class Reporting:
    """`heard` is told every answer; `refused_pin`, that the session is another lane's."""

    def __init__(
        self,
        order: Order,
        plane: ControlPlane,
        outbox: Outbox,
        limits: Limits,
        heard: Callable[[Reported], None],
        refused_pin: Callable[[Fault], None],
    ) -> None:
        self._order, self._plane, self._outbox, self._limits = order, plane, outbox, limits
        self._heard, self._refused_pin = heard, refused_pin
        self._carrier = Carrier(plane, limits)
        self._seq = order.logged
        self._lines: list[tuple[str, dict[str, Any]]] = []
        self._pin: NewSession | None = None
        self._tool_ran = self._tool_said = self._answered = self._look = False
        self._steered: Steered | None = None
        self._asks: list[Asked] = []
        self._opened = False
        self._timer: asyncio.TimerHandle | None = None
        self._sending: asyncio.Task[None] | None = None
        self._waiting: list[tuple[Report, Kept | None]] = []
        self._silenced = self._asking = False
        self.may_steer: Callable[[], bool] = lambda: False
        """Whether something could be told within the turn now."""

    # ---------------------------------------------------------------- what is noted

    def step(self, what: str, words: str) -> None:
        self._note(STEP, {"what": what, "words": words})

    def tell(self, event: Event, asked_as: ApprovalId | None = None) -> None:
        self._note(*line_of(event, asked_as))

    def tell_steered(self, steer: Steer, taken: bool) -> None:
        self._note(*line_of_steer(steer, taken))

    def pin(self, new: NewSession) -> None:
        """A session that can be found again by now: written down at once."""
        self._pin = new
        self.flush()

    def tool_ran(self) -> None:
        """Before anything else is done about the run: what has run is not run again."""
        if not self._tool_said:
            self._tool_ran = self._tool_said = True
            self.flush()

    def asks(self, asked: Asked) -> None:
        self._asks.append(asked)
        self.flush()

    def answered(self) -> None:
        self._answered = True
        self.flush()

    def steered(self, became: Steered) -> None:
        """Said at once: the end of the run comes after it. More may have come meanwhile: it is asked for."""
        self._steered, self._look = became, True
        self.flush()

    def look(self) -> None:
        """The server has something to say: it is asked for it."""
        self._look = True
        self.flush()

    # ---------------------------------------------------------------- what is said

    def flush(self) -> None:
        """What was noted goes on its way."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._silenced:
            return
        report = self._drafted()
        if report is not None:
            self._waiting.append((report, self._outbox.put([letter_of(report)]) if _says_something(report) else None))
        self._start_sending()

    async def ask(self, **said: Any) -> Reported:
        """Say it now, after all that was said before, and wait for the answer. A fault is raised when the session to be
        pinned is another lane's: nothing was taken then."""
        await self.sent()
        self._asking = True
        try:
            return await self._ask(said)
        finally:
            self._asking = False
            self._start_sending()

    async def _ask(self, said: dict[str, Any]) -> Reported:
        drafted = self._drafted() or Report(self._order.run, self._order.attempt)
        asked = replace(drafted, patience=self._limits.patience, **said)
        opens, tries = not self._opened, 0

        async def say() -> Reported:
            nonlocal tries
            tries += 1
            if not opens:
                return await self._plane.report(asked)
            if tries == 1:
                return await self._plane.report(replace(asked, opens=True))
            # Whether the first was taken is not known: that it opens can be said twice, all else then without it.
            await self._plane.report(Report(asked.run, asked.attempt, opens=True, patience=asked.patience))
            return await self._plane.report(asked)

        try:
            reported = await until_answered(f"run {self._order.run}", say, self._limits, tries=_TRIES)
        except Fault:
            self._waiting.append((replace(drafted, pin=None), None))
            raise
        self._opened = True
        self._heard(reported)
        return reported

    async def finish(self, end: End) -> Finished:
        """The end of it: kept before it is said, and said until it was taken."""
        self._silence()
        finish = Finish(self._order.run, self._order.attempt, end, self._pin)
        self._pin = None
        report = self._drafted()
        kept = self._outbox.put([letter_of(each) for each in (report, finish) if each is not None])
        await self.sent()
        await kept.safe
        if report is None:
            finished = await self._carrier.finish(finish)
        elif isinstance(end, Returned):
            # Nothing is taken of a run that is in the queue again.
            await self._carrier.report(report)
            finished = await self._carrier.finish(finish)
        else:
            # A log may be completed after the end, so neither waits for the other.
            _, finished = await asyncio.gather(self._carrier.report(report), self._carrier.finish(finish))
        self._outbox.drop(kept.ids)
        return finished

    async def abandon(self) -> None:
        """The run is somebody else's by now: nothing more is said of it."""
        self._silence()
        if self._sending is not None:
            self._sending.cancel()
            await asyncio.wait([self._sending])
        self._outbox.drop_run(self._order.run)

    # ---------------------------------------------------------------- inside

    def _silence(self) -> None:
        self._silenced = True
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _note(self, kind: str, body: dict[str, Any]) -> None:
        last = self._lines[-1] if self._lines else None
        if last is not None and kind in _PARTS and _continues(last, kind, body):
            last[1]["text"] += body["text"]
            return
        self._lines.append((kind, body))
        if len(self._lines) >= self._limits.batch:
            self.flush()
        elif self._timer is None and not self._silenced:
            self._timer = asyncio.get_running_loop().call_later(self._limits.pace, self.flush)

    def _drafted(self) -> Report | None:
        """All that was noted since the last time, if anything was."""
        look, self._look = self._look, False
        said = self._lines or self._asks or self._answered or self._tool_ran or self._steered is not None
        if not (look or said or self._pin is not None):
            return None
        events = tuple(self._record(kind, body) for kind, body in self._lines)
        report = Report(
            self._order.run,
            self._order.attempt,
            pin=self._pin,
            tool_ran=self._tool_ran,
            asks=tuple(self._asks),
            answered=self._answered,
            steers=look and self.may_steer(),
            steered=self._steered,
            events=events,
            patience=self._limits.patience,
        )
        self._lines, self._asks, self._pin, self._steered = [], [], None, None
        self._tool_ran = self._answered = False
        return report

    def _record(self, kind: str, body: dict[str, Any]) -> RunEventRecord:
        self._seq += 1
        return RunEventRecord(self._seq, kind, written(body))

    def _start_sending(self) -> None:
        """Nothing is sent beside what is asked: what it depends on would be said twice, or in another order."""
        if self._waiting and not self._asking and (self._sending is None or self._sending.done()):
            self._sending = asyncio.create_task(self._send(), name=f"reports of {self._order.run}")

    async def sent(self) -> None:
        """Until nothing is on its way."""
        self._start_sending()
        while self._sending is not None and not self._sending.done():
            await asyncio.wait([self._sending])

    async def _send(self) -> None:
        while self._waiting:
            report, kept = self._waiting.pop(0)
            if kept is not None:
                await kept.safe
            # That it opens is not kept: whoever starts anew opens anew.
            first, self._opened = not self._opened, True
            reported = await self._carrier.report(replace(report, opens=first), self._refused_pin)
            if kept is not None:
                self._outbox.drop(kept.ids)
            self._heard(reported)


def _continues(last: tuple[str, dict[str, Any]], kind: str, body: dict[str, Any]) -> bool:
    """Whether it is the next part of the same message."""
    return last[0] == kind and not last[1].get("final", False) and not body.get("final", False)


def _says_something(report: Report) -> bool:
    said = report.events or report.asks or report.answered or report.tool_ran or report.steered is not None
    return bool(said or report.pin is not None)
