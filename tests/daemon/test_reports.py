"""Reports: what a run has to say reaches the server, and does not wait until there is more to say."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from clew.daemon.outbox import Outbox
from clew.daemon.reports import Reports
from clew.kernel import Cursor, Directory, NativeId
from clew.protocol.control import ControlPlane
from clew.protocol.orders import ClaimRequest, Order
from clew.protocol.reports import NewSession, Report, Reported
from tests.daemon.kit import QUICK, World, run, until


@asynccontextmanager
async def claimed(place: Path) -> AsyncIterator[tuple[World, Order]]:
    """A run that a test reports on itself: no daemon was started."""
    there = World(place)
    try:
        await there.add_agent()
        there.add_thread()
        there.say("one")
        found = await there.plane.claim(ClaimRequest("by hand", (there.runtime(),)))
        yield there, found.orders[0]
    finally:
        await there.close()


@asynccontextmanager
async def reporting(there: World, order: Order, plane: ControlPlane) -> AsyncIterator[Reports]:
    outbox = Outbox(there.place / "reports.db")
    reports = Reports(order, plane, outbox, QUICK, lambda _: None, lambda _: None)
    try:
        yield reports
    finally:
        await reports.drained()
        outbox.close()


class Slow:
    """A server whose first answer takes until a test lets it go."""

    def __init__(self, plane: ControlPlane) -> None:
        self._plane = plane
        self.answering, self.let_go = asyncio.Event(), asyncio.Event()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._plane, name)

    async def report(self, said: Report) -> Reported:
        reported = await self._plane.report(said)
        self.answering.set()
        await self.let_go.wait()
        return reported


def test_what_is_noted_while_an_answer_is_awaited_is_sent_after_it(tmp_path: Path) -> None:
    async def scene() -> None:
        async with claimed(tmp_path) as (there, order):
            slow = Slow(there.plane)
            async with reporting(there, order, slow) as reports:
                asking = asyncio.create_task(reports.ask())
                await slow.answering.wait()
                reports.log_step("late", "It came meanwhile.")
                reports.flush()
                slow.let_go.set()
                await asking
                await until(lambda: there.steps(order.run) == ["late"], "it is sent")

    run(scene())


def test_a_session_is_recorded_even_where_there_is_nothing_else_to_say(tmp_path: Path) -> None:
    async def scene() -> None:
        async with claimed(tmp_path) as (there, order), reporting(there, order, there.plane) as reports:
            reports.pin(NewSession(Cursor(1, NativeId("n-1")), Directory("/srv/ada"), mode="full"))
            await until(lambda: [each.native_id for each in there.sessions()] == ["n-1"], "it is recorded")

    run(scene())
