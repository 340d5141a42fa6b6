"""The reports of one run: its log in batches, what must be known at once, and its end. They arrive in order."""

import asyncio
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from clew.daemon.limits import Limits
from clew.daemon.log_lines import STEP, TEXT, THOUGHT, line_of, line_of_steer, written
from clew.daemon.outbox import Outbox, Stored, letter_of
from clew.daemon.uplink import Carrier, until_answered
from clew.kernel import ApprovalId
from clew.ports.events import Event
from clew.ports.fault import Fault
from clew.ports.work import Work
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
"""How often a call is repeated that a server which can be reached answers with a fault."""


class Reports:
    """`on_answer` gets every answer of the server. `on_pin_refused`: another lane has the reported session."""

    def __init__(
        self,
        order: Order,
        plane: ControlPlane,
        outbox: Outbox,
        limits: Limits,
        on_answer: Callable[[Reported], None],
        on_pin_refused: Callable[[Fault], None],
    ) -> None:
        self._order, self._plane, self._outbox, self._limits = order, plane, outbox, limits
        self._on_answer, self._on_pin_refused = on_answer, on_pin_refused
        self._carrier = Carrier(plane, limits)
        self._seq = order.logged
        self._lines: list[tuple[str, dict[str, Any]]] = []
        self._pin: NewSession | None = None
        self._tool_ran = self._tool_reported = self._answered = self._poll = False
        self._steered: Steered | None = None
        self._questions: list[Asked] = []
        self._opened = False
        self._timer: asyncio.TimerHandle | None = None
        self._sending: asyncio.Task[None] | None = None
        self._waiting: list[tuple[Report, Stored | None]] = []
        self._silenced = self._asking = False
        self.may_steer: Callable[[], bool] = lambda: False
        """Whether a message could be delivered within the turn now."""

    # ---------------------------------------------------------------- what is noted

    def log_step(self, what: str, words: str) -> None:
        self._log(STEP, {"what": what, "words": words})

    def log_event(self, event: Event, asked_as: ApprovalId | None = None) -> None:
        self._log(*line_of(event, asked_as))

    def log_steer(self, steer: Steer, taken: bool) -> None:
        self._log(*line_of_steer(steer, taken))

    def pin(self, new: NewSession) -> None:
        """A session that can be found again now: reported at once."""
        self._pin = new
        self.flush()

    def note_tool(self) -> None:
        """A tool runs: reported at once, because a run that has used tools is not repeated."""
        if not self._tool_reported:
            self._tool_ran = self._tool_reported = True
            self.flush()

    def add_question(self, asked: Asked) -> None:
        self._questions.append(asked)
        self.flush()

    def note_answered(self) -> None:
        self._answered = True
        self.flush()

    def note_steered(self, became: Steered) -> None:
        """Reported at once, before the end of the run. More messages may have come meanwhile, so they are requested."""
        self._steered, self._poll = became, True
        self.flush()

    def poll_server(self) -> None:
        """The server has news: the answer to a report brings it."""
        self._poll = True
        self.flush()

    # ---------------------------------------------------------------- what is sent

    def flush(self) -> None:
        """Send what was noted."""
        self._cancel_timer()
        if self._silenced:
            return
        report = self._draft()
        if report is not None:
            stored = self._outbox.put([letter_of(report)]) if _says_something(report) else None
            self._waiting.append((report, stored))
        self._start_sending()

    async def ask(self, **said: Any) -> Reported:
        """Report this now, after everything before it, and wait for the answer. A fault is raised when another lane has
        the session to be pinned: the server has recorded nothing then."""
        await self.drained()
        self._asking = True
        try:
            return await self._ask(said)
        finally:
            self._asking = False
            self._start_sending()

    async def _ask(self, said: dict[str, Any]) -> Reported:
        drafted = self._draft() or Report(self._order.run, self._order.attempt)
        asked = replace(drafted, patience=self._limits.patience, **said)
        opens, tries = not self._opened, 0

        async def report() -> Reported:
            nonlocal tries
            tries += 1
            if not opens:
                return await self._plane.report(asked)
            if tries == 1:
                return await self._plane.report(replace(asked, opens=True))
            # Whether the first try arrived is not known: `opens` may be repeated alone, the rest goes without it.
            await self._plane.report(Report(asked.run, asked.attempt, opens=True, patience=asked.patience))
            return await self._plane.report(asked)

        try:
            reported = await until_answered(f"run {self._order.run}", report, self._limits, tries=_TRIES)
        except Fault:
            # Before what was noted meanwhile: the lines of a log become durable in their order.
            self._waiting.insert(0, (replace(drafted, pin=None), None))
            raise
        self._opened = True
        self._on_answer(reported)
        return reported

    async def finish(self, end: End, work: Work | None = None) -> Finished:
        """Report the end: it is in the outbox before it is sent, and sent until the server has it."""
        self._silence()
        finish = Finish(self._order.run, self._order.attempt, end, self._pin, work=work)
        self._pin = None
        report = self._draft()
        stored = self._outbox.put([letter_of(each) for each in (report, finish) if each is not None])
        await self.drained()
        await stored.safe
        if report is None:
            finished = await self._carrier.finish(finish)
        elif isinstance(end, Returned):
            # Reports of a run that is in the queue again are refused, so the report goes first.
            await self._carrier.report(report)
            finished = await self._carrier.finish(finish)
        else:
            # A log may be completed after the end, so neither waits for the other.
            _, finished = await asyncio.gather(self._carrier.report(report), self._carrier.finish(finish))
        self._outbox.drop(stored.ids)
        return finished

    async def abandon(self) -> None:
        """Another attempt holds the run: nothing more is reported."""
        self._silence()
        if self._sending is not None:
            self._sending.cancel()
            await asyncio.wait([self._sending])
        self._outbox.drop_attempt(self._order.run, self._order.attempt)

    async def drained(self) -> None:
        """Wait until every report has been answered."""
        self._start_sending()
        while self._sending is not None and not self._sending.done():
            await asyncio.wait([self._sending])

    # ---------------------------------------------------------------- inside

    def _silence(self) -> None:
        self._silenced = True
        self._cancel_timer()

    def _cancel_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _log(self, kind: str, body: dict[str, Any]) -> None:
        last = self._lines[-1] if self._lines else None
        if last is not None and kind in _PARTS and _continues(last, kind, body):
            last[1]["text"] += body["text"]
            return
        self._lines.append((kind, body))
        if len(self._lines) >= self._limits.batch:
            self.flush()
        elif self._timer is None and not self._silenced:
            self._timer = asyncio.get_running_loop().call_later(self._limits.pace, self.flush)

    def _draft(self) -> Report | None:
        """A report of everything that was noted since the last one; None where there is nothing."""
        poll, self._poll = self._poll, False
        report = Report(
            self._order.run,
            self._order.attempt,
            pin=self._pin,
            tool_ran=self._tool_ran,
            asks=tuple(self._questions),
            answered=self._answered,
            steered=self._steered,
            events=tuple(self._record(kind, body) for kind, body in self._lines),
            patience=self._limits.patience,
        )
        if not poll and not _says_something(report):
            return None
        self._lines, self._questions, self._pin, self._steered = [], [], None, None
        self._tool_ran = self._answered = False
        return replace(report, steers=poll and self.may_steer())

    def _record(self, kind: str, body: dict[str, Any]) -> RunEventRecord:
        self._seq += 1
        return RunEventRecord(self._seq, kind, written(body))

    def _start_sending(self) -> None:
        """Nothing is sent while `ask` waits: reports would overtake it, or repeat what it depends on."""
        if self._waiting and not self._asking and (self._sending is None or self._sending.done()):
            self._sending = asyncio.create_task(self._send(), name=f"reports of {self._order.run}")

    async def _send(self) -> None:
        while self._waiting:
            report, stored = self._waiting.pop(0)
            if stored is not None:
                await stored.safe
            # `opens` is not in the outbox: after a restart the run is opened anew.
            first, self._opened = not self._opened, True
            reported = await self._carrier.report(replace(report, opens=first), self._on_pin_refused)
            if stored is not None:
                self._outbox.drop(stored.ids)
            self._on_answer(reported)


def _continues(last: tuple[str, dict[str, Any]], kind: str, body: dict[str, Any]) -> bool:
    """Whether it is the next part of the same message."""
    return last[0] == kind and not last[1].get("final", False) and not body.get("final", False)


def _says_something(report: Report) -> bool:
    said = report.events or report.asks or report.answered or report.tool_ran or report.steered is not None
    return bool(said or report.pin is not None)
