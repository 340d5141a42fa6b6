"""Heartbeats: a stable route, a scope for each isolated tick, one tick after a long sleep, the lane's directory."""

import asyncio
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from sqlalchemy import update

from clew.control.agents import change_agent, show_agent
from clew.control.decisions import explain
from clew.control.faults import BadRhythm
from clew.control.issues import open_issue
from clew.control.projects import add_project
from clew.control.runs import retry_run
from clew.control.services import Services
from clew.control.threads import close_thread, reopen_thread, show_thread
from clew.control.timers import run_due
from clew.kernel import FailureKind, LaneScope, Outcome, RouteKey, RouteKind, RunScope
from clew.protocol.orders import Order
from clew.protocol.reports import Failed
from clew.protocol.requests import AgentChange, NewIssue, NewProject, RhythmChange
from clew.protocol.views import Rhythm
from clew.store.engine.database import Database
from clew.store.engine.dialect import read_clock
from clew.store.faults import NoSuchThread, ThreadClosed
from clew.store.schema.tables import schedules, wakes
from tests.control.kit import USER, Office, office
from tests.store.kit import bodies


async def _tick(at: Office, ago: float = 1.0) -> None:
    """Time passes until the heartbeat was due that long ago."""
    due = (await at.services.read(read_clock)) - ago
    put = update(schedules).values(next_due=due, last_due=None)
    await at.services.write(lambda connection: connection.execute(put).rowcount)
    await run_due(at.services, USER, 0.0)


async def _beat(at: Office, native: str) -> Order:
    await _tick(at)
    return await at.serve(native)


@pytest.mark.case("H01", "H02", "H04")
def test_isolated_ticks_have_one_route_and_a_scope_each(database: Database, tmp_path: Path) -> None:
    async def story() -> None:
        async with office(database, tmp_path) as at:
            await at.agent(heartbeat=Rhythm(every=1800))
            orders = [await _beat(at, f"n-{number}") for number in range(4)]
            own = (await show_thread(at.services, USER, "own-ada")).thread.id
            assert {order.route for order in orders} == {RouteKey(RouteKind.THREAD, own)}
            assert [order.plan.situation.scope for order in orders] == [
                RunScope(order.lane, order.run) for order in orders
            ]
            for order in orders:
                # Nothing of the ticks before is told, however many there were.
                assert (order.plan.outcome, bodies(order)) == (Outcome.BLANK, [])
                assert order.plan.reason.code == "scope:isolated"
            assert len({order.session for order in orders}) == 4

    asyncio.run(story())


def test_shared_ticks_go_on_in_one_conversation(database: Database, tmp_path: Path) -> None:
    async def story() -> None:
        async with office(database, tmp_path) as at:
            await at.agent(heartbeat=Rhythm(every=1800, isolated=False))
            first = await _beat(at, "n-1")
            second = await _beat(at, "n-1")
            assert second.plan.situation.scope == LaneScope(first.lane)
            assert (second.plan.outcome, second.session) == (Outcome.RESUME, first.session)

    asyncio.run(story())


def test_a_tick_that_is_tried_again_answers_where_it_would_have(database: Database, tmp_path: Path) -> None:
    async def story() -> None:
        async with office(database, tmp_path) as at:
            await at.agent(heartbeat=Rhythm(every=1800))
            await _tick(at)
            failed = await at.claim_one()
            await at.finish(failed, Failed(FailureKind.PERMANENT, "no"))
            await retry_run(at.services, USER, failed.run)
            again = await at.claim_one()
            assert again.run != failed.run
            assert again.route == failed.route is not None

    asyncio.run(story())


@pytest.mark.case("H10")
def test_a_machine_that_slept_gets_one_tick(database: Database, tmp_path: Path) -> None:
    async def story() -> None:
        async with office(database, tmp_path) as at:
            added = await at.agent(heartbeat=Rhythm(every=60))
            assert added.heartbeat is not None
            assert added.heartbeat.next_at is not None
            await _tick(at, ago=40 * 60 + 5)
            order = await at.serve()
            assert len(order.wakes) == 1
            assert await at.claim() == []
            shown = (await show_agent(at.services, USER, "ada")).heartbeat
            assert shown is not None
            assert shown.next_at is not None
            assert shown.next_at > await at.services.read(read_clock)

    asyncio.run(story())


@pytest.mark.case("W04")
def test_two_servers_that_look_at_the_same_moment_make_one_wake(database: Database, tmp_path: Path) -> None:
    async def story() -> None:
        async with office(database, tmp_path) as at:
            await at.agent(heartbeat=Rhythm(every=60))
            due = (await at.services.read(read_clock)) - 1
            put = update(schedules).values(next_due=due)
            await at.services.write(lambda connection: connection.execute(put).rowcount)
            other = Services(database, tmp_path)
            await asyncio.gather(*(run_due(services, USER, 0.0) for services in (at.services, other) for _ in range(3)))
            (order,) = await at.claim(most=10)
            assert len(order.wakes) == 1

    asyncio.run(story())


def test_a_heartbeat_that_is_tied_to_a_projects_thread_works_in_its_directory(
    database: Database, tmp_path: Path
) -> None:
    async def story() -> None:
        async with office(database, tmp_path) as at:
            await at.agent()
            (tmp_path / "maze" / ".git").mkdir(parents=True)
            await add_project(at.services, USER, NewProject("maze", str(tmp_path / "maze")))
            await open_issue(at.services, USER, NewIssue("Watch it", project="maze"))
            changed = await change_agent(
                at.services, USER, "ada", AgentChange(heartbeat=RhythmChange(every=300, thread="issue-1"))
            )
            assert changed.heartbeat is not None
            assert changed.heartbeat.thread == "issue-1"
            await _tick(at)
            order = await at.claim_one()
            assert order.plan.workspace is not None
            assert order.plan.workspace.directory.path.startswith(str(tmp_path / "work"))
            assert order.thread.number == 1
            await at.prompt(order)
            await at.finish(order)
            # A closed thread is not woken by its timer either.
            await close_thread(at.services, USER, "issue-1")
            assert (await show_agent(at.services, USER, "ada")).heartbeat.next_at is None  # type: ignore[union-attr]
            await run_due(at.services, USER, 0.0)
            await _tick(at)
            assert await at.claim() == []
            await reopen_thread(at.services, USER, "issue-1")
            await _tick(at)
            assert len(await at.claim()) == 1

    asyncio.run(story())


def test_what_is_not_named_of_a_heartbeat_stays(database: Database, tmp_path: Path) -> None:
    async def story() -> None:
        async with office(database, tmp_path) as at:
            await open_issue(at.services, USER, NewIssue("Look after it"))
            await at.agent(heartbeat=Rhythm(every=1800, isolated=False, thread="issue-1"))

            async def after(**change: Any) -> Rhythm:
                beat = (
                    await change_agent(at.services, USER, "ada", AgentChange(heartbeat=RhythmChange(**change)))
                ).heartbeat
                assert beat is not None
                return replace(beat, next_at=None, last_at=None)

            kept = Rhythm(every=3600, isolated=False, thread="issue-1")
            assert await after(every=3600) == kept
            assert await after(cron="0 9 * * *") == replace(kept, every=None, cron="0 9 * * *")
            assert await after(zone="Asia/Tokyo") == replace(kept, every=None, cron="0 9 * * *", zone="Asia/Tokyo")
            assert await after(every=3600) == replace(kept, zone="Asia/Tokyo")
            assert await after(isolated=True) == replace(kept, zone="Asia/Tokyo", isolated=True)
            assert await after(thread="") == replace(kept, zone="Asia/Tokyo", isolated=True, thread=None)

    asyncio.run(story())


def test_a_heartbeat_can_be_changed_and_taken_away(database: Database, tmp_path: Path) -> None:
    async def story() -> None:
        async with office(database, tmp_path) as at:
            await at.agent(heartbeat=Rhythm(every=60))
            changed = await change_agent(
                at.services, USER, "ada", AgentChange(heartbeat=RhythmChange(every=7200, isolated=False))
            )
            assert changed.heartbeat is not None
            assert (changed.heartbeat.every, changed.heartbeat.isolated) == (7200, False)
            rhythm = RhythmChange(cron="0 9 * * 1-5", zone="Europe/Berlin")
            changed = await change_agent(at.services, USER, "ada", AgentChange(heartbeat=rhythm))
            assert changed.heartbeat is not None
            assert (changed.heartbeat.every, changed.heartbeat.zone) == (None, "Europe/Berlin")
            assert changed.heartbeat.isolated is False
            assert changed.heartbeat.next_at is not None
            due = datetime.fromtimestamp(changed.heartbeat.next_at, ZoneInfo("Europe/Berlin"))
            assert (due.hour, due.minute, due.weekday() < 5) == (9, 0, True)
            assert (await change_agent(at.services, USER, "ada", AgentChange(no_heartbeat=True))).heartbeat is None
            with pytest.raises(BadRhythm, match="The agent has no heartbeat to change"):
                await change_agent(at.services, USER, "ada", AgentChange(heartbeat=RhythmChange(isolated=True)))
            await run_due(at.services, USER, 0.0)
            assert await at.claim() == []
            with pytest.raises(NoSuchThread):
                await change_agent(
                    at.services, USER, "ada", AgentChange(heartbeat=RhythmChange(every=60, thread="issue-9"))
                )
            await open_issue(at.services, USER, NewIssue("Closed"))
            await close_thread(at.services, USER, "issue-1")
            with pytest.raises(ThreadClosed):
                await change_agent(
                    at.services, USER, "ada", AgentChange(heartbeat=RhythmChange(every=60, thread="issue-1"))
                )

    asyncio.run(story())


def test_a_paused_agents_ticks_leave_receipts_and_wake_nobody(database: Database, tmp_path: Path) -> None:
    async def story() -> None:
        async with office(database, tmp_path) as at:
            await at.agent(heartbeat=Rhythm(every=60))
            await change_agent(at.services, USER, "ada", AgentChange(paused=True))
            await _tick(at)
            assert await at.claim() == []
            assert (await show_thread(at.services, USER, "own-ada")).runs == ()

    asyncio.run(story())


@pytest.mark.case("H08")
def test_a_tick_on_a_busy_lane_is_left_to_the_next(database: Database, tmp_path: Path) -> None:
    async def story() -> None:
        async with office(database, tmp_path) as at:
            await at.agent(heartbeat=Rhythm(every=60), most=2)
            await _tick(at)
            going = await at.claim_one()
            await at.prompt(going)
            await _tick(at)
            assert await at.claim() == []
            skipped = await at.services.read(
                lambda connection: connection.execute(wakes.select().where(wakes.c.state == "skipped")).one()
            )
            assert (await explain(at.services, USER, skipped.id)).headline.startswith(
                "skipped: The lane is busy; this tick is left to the next one"
            )
            await at.finish(going)
            await _tick(at)
            assert len(await at.claim()) == 1

    asyncio.run(story())
