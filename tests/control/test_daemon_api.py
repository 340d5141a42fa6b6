"""The control plane of a daemon: it waits, is called, is told of news, and loses nothing when an answer is lost."""

import asyncio
from dataclasses import replace
from pathlib import Path

import pytest
from sqlalchemy import Connection, select, update

from clew.control import daemon_api as planes
from clew.control.actor import Timer
from clew.control.approvals import answer_approval
from clew.control.doctor import list_runtimes
from clew.control.runs import cancel_run, show_run
from clew.control.services import Services
from clew.control.threads import open_chat
from clew.control.timers import run_due, run_timers
from clew.control.wakes import poke, say
from clew.kernel import ApprovalId, Evidence, Outcome, Patience, RunId, RunState
from clew.protocol.control import Claimed, Held, OrphansRequest, RenewRequest
from clew.protocol.orders import ClaimRequest, Order
from clew.protocol.reports import Asked
from clew.protocol.requests import AnswerTo, NewChat, Poke, Words
from clew.store.engine.database import Database
from clew.store.engine.dialect import read_clock
from clew.store.operations import claim as claiming
from clew.store.schema.tables import runs, runtimes
from tests.control.kit import LOOM, USER, WHEEL, Office, held, office
from tests.store.kit import bodies

ASKED = ClaimRequest("daemon-1", (LOOM, WHEEL), 4)
FULL = ClaimRequest("daemon-1", (LOOM, WHEEL), 0)
LONG = 60.0


async def _put(at: Office, statement: object) -> None:
    await at.services.write(lambda connection: connection.execute(statement).rowcount)  # type: ignore[call-overload]


async def _waiting(
    at: Office, asked: ClaimRequest = ASKED, holding: frozenset[RunId] = frozenset()
) -> asyncio.Task[Claimed]:
    """A daemon that waits by now: it has looked once and found nothing."""
    task = asyncio.create_task(at.plane.claim(replace(asked, holding=holding, wait=LONG)))
    await asyncio.sleep(0.1)
    assert not task.done()
    return task


async def _quiet(at: Office, order: Order) -> None:
    """Nothing is told for ever. PostgreSQL may tell it a second time, as it tells other servers."""
    told = [(await at.plane.claim(replace(FULL, holding=held(order), wait=0.2))).news for _ in range(3)]
    assert told[-1] == frozenset()


def test_a_daemon_that_waits_is_called_when_there_is_work(
    database: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(planes, "POLL", LONG)

    async def story() -> None:
        async with office(database, tmp_path) as at:
            await at.agent()
            waiting = await _waiting(at)
            await poke(at.services, USER, Poke("ada", text="hello"))
            claimed = await asyncio.wait_for(waiting, 10)
            assert [bodies(order) for order in claimed.orders] == [["hello"]]

    asyncio.run(story())


@pytest.fixture
def looks(monkeypatch: pytest.MonkeyPatch) -> list[ClaimRequest]:
    """Every look for work that is made by a claim itself."""
    made: list[ClaimRequest] = []

    def claim(connection: Connection, asked: ClaimRequest) -> tuple[Order, ...]:
        made.append(asked)
        return claiming.claim(connection, asked)

    monkeypatch.setattr(planes, "claim", claim)
    return made


def test_what_is_said_to_an_agent_whose_daemon_waits_is_claimed_at_once(
    database: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, looks: list[ClaimRequest]
) -> None:
    monkeypatch.setattr(planes, "POLL", LONG)

    async def story() -> None:
        async with office(database, tmp_path) as at:
            await at.agent()
            await open_chat(at.services, USER, NewChat("ada"))
            await say(at.services, USER, "chat-1", Words("hello"))
            await at.serve("n-1")
            waiting = await _waiting(at)
            looks.clear()
            spoken = await say(at.services, USER, "chat-1", Words("and again"))
            claimed = await asyncio.wait_for(waiting, 10)
            assert [bodies(order) for order in claimed.orders] == [["and again"]]
            assert spoken.wake is not None
            assert [wake.id for order in claimed.orders for wake in order.wakes] == [spoken.wake.id]
            # It was called, and looked once.
            assert len(looks) == 1

    asyncio.run(story())


def test_a_daemon_that_waits_looks_no_more_often_than_it_has_to(
    database: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, looks: list[ClaimRequest]
) -> None:
    monkeypatch.setattr(planes, "POLL", 0.1)

    async def story() -> None:
        async with office(database, tmp_path) as at:
            await at.agent()
            looks.clear()
            await at.plane.claim(replace(ASKED, wait=0.55))
            # However slow the machine is; who rings at itself looks thousands of times.
            assert len(looks) <= 7

    asyncio.run(story())


def test_a_question_that_is_called_off_is_handed_nothing(
    database: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(planes, "POLL", LONG)

    async def story() -> None:
        async with office(database, tmp_path) as at:
            await at.agent()
            await open_chat(at.services, USER, NewChat("ada"))
            await say(at.services, USER, "chat-1", Words("hello"))
            await at.serve("n-1")
            waiting = await _waiting(at)
            waiting.cancel()
            await asyncio.wait((waiting,))
            await say(at.services, USER, "chat-1", Words("and again"))
            assert bodies(await at.claim_one()) == ["and again"]

    asyncio.run(story())


def test_a_daemon_looks_by_itself_when_nobody_calls_it(
    database: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(planes, "POLL", 0.05)

    async def story() -> None:
        async with office(database, tmp_path) as at:
            await at.agent()
            await poke(at.services, USER, Poke("ada"))
            await _put(at, update(runs).values(not_before=(await at.services.read(read_clock)) + 0.3))
            claimed = await asyncio.wait_for(at.plane.claim(replace(ASKED, wait=LONG)), 20)
            assert len(claimed.orders) == 1

    asyncio.run(story())


def test_a_claim_that_finds_nothing_ends_when_its_time_is_over(database: Database, tmp_path: Path) -> None:
    async def story() -> None:
        async with office(database, tmp_path) as at:
            await at.agent()
            claimed = await at.plane.claim(replace(ASKED, wait=0.05))
            assert (claimed.orders, claimed.news) == ((), frozenset())

    asyncio.run(story())


@pytest.mark.case("L03")
def test_a_daemon_is_told_of_a_cancelled_run_and_of_no_report_of_its_own(
    database: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(planes, "POLL", LONG)

    async def story() -> None:
        async with office(database, tmp_path) as at:
            await at.agent()
            await poke(at.services, USER, Poke("ada"))
            order = await at.claim_one()
            waiting = await _waiting(at, FULL, held(order))
            await at.prompt(order, "n-1")
            for _ in range(3):
                await at.report(order)
            # Longer than hints are paced: what the daemon says itself is no news to it.
            await asyncio.sleep(0.3)
            assert not waiting.done()
            stopped = await cancel_run(at.services, USER, order.run)
            assert (stopped.taken, stopped.state) == (True, "stopping")
            assert (await asyncio.wait_for(waiting, 10)).news == {order.run}
            assert (await at.report(order)).stop == "run:by-user"
            await _quiet(at, order)

    asyncio.run(story())


def test_news_that_came_while_no_claim_waited_are_told_by_the_next(database: Database, tmp_path: Path) -> None:
    async def story() -> None:
        async with office(database, tmp_path) as at:
            await at.agent()
            await poke(at.services, USER, Poke("ada"))
            order = await at.claim_one()
            await at.prompt(order)
            await at.report(order, asks=(Asked(ApprovalId("ap-1"), "May I?"),))
            await answer_approval(at.services, USER, "ap-1", AnswerTo(False, "no"))
            assert (await at.plane.claim(replace(FULL, holding=held(order), wait=LONG))).news == {order.run}
            (answer,) = (await at.report(order, answered=True)).answers
            assert (answer.approval, answer.state, answer.words) == ("ap-1", "denied", "no")
            await _quiet(at, order)

    asyncio.run(story())


@pytest.mark.case("R02")
def test_an_order_whose_answer_was_lost_comes_again_after_its_lease(database: Database, tmp_path: Path) -> None:
    async def story() -> None:
        async with office(database, tmp_path) as at:
            await at.agent()
            await poke(at.services, USER, Poke("ada", text="hello"))
            lost = await at.claim_one()
            assert await run_due(at.services, USER, 0.0) == 0
            assert await at.claim() == []
            await _put(at, update(runs).values(lease_until=1.0))
            assert await run_due(at.services, USER, 0.0) == 1
            again = await at.claim_one()
            assert (again.run, again.attempt, bodies(again)) == (lost.run, 2, ["hello"])

    asyncio.run(story())


def test_a_question_that_waits_hears_of_a_run_that_another_of_its_daemon_took(
    database: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(planes, "POLL", LONG)

    async def story() -> None:
        async with office(database, tmp_path) as at:
            await at.agent()
            waits = await _waiting(at, FULL)
            await poke(at.services, USER, Poke("ada"))
            order = await at.claim_one()
            assert not waits.done()
            await cancel_run(at.services, USER, order.run)
            async with asyncio.timeout(10):
                assert (await waits).news == held(order)

    asyncio.run(story())


def test_every_runtime_of_a_daemon_is_heard_by_its_own_question(database: Database, tmp_path: Path) -> None:
    async def story() -> None:
        async with office(database, tmp_path) as at:
            await at.agent()
            await at.agent("eve", provider="wheel")
            await _put(at, update(runtimes).values(seen_at=1.0))
            for runtime in (LOOM, WHEEL):
                await at.plane.claim(ClaimRequest("daemon-1", (runtime,), 1, wait=0.05))
            shown = await list_runtimes(at.services, USER)
            assert [(each.online, each.live, each.waiting) for each in shown] == [(True, 0, 0), (True, 0, 0)]

    asyncio.run(story())


@pytest.mark.case("R03")
def test_a_daemon_that_lost_its_lease_overwrites_nothing(database: Database, tmp_path: Path) -> None:
    async def story() -> None:
        async with office(database, tmp_path) as at:
            await at.agent()
            await poke(at.services, USER, Poke("ada"))
            lost = await at.claim_one()
            await _put(at, update(runs).values(lease_until=1.0))
            await run_due(at.services, USER, 0.0)
            again = await at.claim_one()
            told = await at.report(lost, opens=True)
            assert (told.held, told.words) == (
                False,
                f"Attempt 1 does not hold run {lost.run}, which is claimed at attempt 2.",
            )
            assert not (await at.finish(lost)).taken
            renewed = await at.plane.renew(RenewRequest((LOOM,), (Held(lost.run, 1), Held(again.run, 2)), Patience()))
            assert renewed.held == {again.run}
            await at.prompt(again)
            assert (await at.finish(again)).state is RunState.SUCCEEDED

    asyncio.run(story())


@pytest.mark.case("R04")
def test_a_renewed_lease_lasts_as_long_as_its_daemon_says(database: Database, tmp_path: Path) -> None:
    """A daemon with a lease of five minutes renews every hundred seconds."""

    async def story() -> None:
        async with office(database, tmp_path) as at:
            await at.agent()
            await poke(at.services, USER, Poke("ada"))
            order = await at.claim_one()
            before = await at.services.read(read_clock)
            await at.plane.renew(RenewRequest((LOOM,), (Held(order.run, order.attempt),), Patience(lease=300.0)))
            after = await at.services.read(read_clock)
            (until,) = await at.services.read(lambda link: link.scalars(select(runs.c.lease_until)).all())
            assert before + 300.0 <= until <= after + 300.0

    asyncio.run(story())


@pytest.mark.case("R04")
def test_a_silent_runtime_is_shown_offline_and_its_run_kept_through_its_grace(
    database: Database, tmp_path: Path
) -> None:
    async def story() -> None:
        async with office(database, tmp_path) as at:
            await at.agent()
            await poke(at.services, USER, Poke("ada"))
            order = await at.claim_one()
            await at.prompt(order, "n-1")
            (shown,) = await list_runtimes(at.services, USER)
            assert (shown.id, shown.machine, shown.online, shown.live) == (LOOM, "the laptop", True, 1)
            clock = await at.services.read(read_clock)
            await _put(at, update(runtimes).where(runtimes.c.id == LOOM).values(seen_at=clock - 300))
            await _put(at, update(runs).values(lease_until=clock - 240))
            (shown,) = await list_runtimes(at.services, USER)
            assert not shown.online
            await run_due(at.services, USER, 0.0)
            assert (await show_run(at.services, USER, order.run)).state == "running"
            await _put(at, update(runtimes).where(runtimes.c.id == LOOM).values(seen_at=clock - 3000))
            assert await run_due(at.services, USER, 0.0) == 1
            lost = await show_run(at.services, USER, order.run)
            assert (lost.state, lost.code) == ("lost", "run:lease-lost")
            # A server that was down itself has heard nobody, and does not hold it against them.
            again = await at.claim_one()
            await at.prompt(again)
            await _put(at, update(runs).where(runs.c.id == again.run).values(lease_until=1.0))
            await run_due(at.services, USER, await at.services.read(read_clock))
            assert (await show_run(at.services, USER, again.run)).state == "running"

    asyncio.run(story())


@pytest.mark.case("R05")
def test_a_daemon_that_restarts_settles_what_it_had_and_the_retry_resumes(database: Database, tmp_path: Path) -> None:
    async def story() -> None:
        async with office(database, tmp_path) as at:
            await at.agent()
            await open_chat(at.services, USER, NewChat("ada"))
            await say(at.services, USER, "chat-1", Words("hello"))
            order = await at.claim_one()
            await at.prompt(order, "n-1")
            (ended,) = await at.plane.end_orphans(OrphansRequest("daemon-1", (LOOM, WHEEL)))
            assert (ended.run, ended.state) == (order.run, RunState.LOST)
            waits = await show_run(at.services, USER, order.run)
            assert waits.state == "lost"
            await _put(at, update(runs).where(runs.c.state == "queued").values(not_before=None))
            # Whether the agent took the prompt is asked before anything is sent.
            asks = await at.claim_one()
            assert (asks.plan.outcome, [each.run for each in asks.questions]) == (Outcome.HOLD, [order.run])
            await at.answer(asks, Evidence.CUT_OFF)
            again = await at.claim_one()
            assert (again.plan.outcome, again.session) == (Outcome.RESUME, order.session)
            assert (
                await at.plane.end_orphans(OrphansRequest("daemon-1", (LOOM, WHEEL), (Held(again.run, again.attempt),)))
                == ()
            )

    asyncio.run(story())


def test_time_goes_on_after_a_failure(
    database: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("clew.control.timers.EVERY", 0.01)
    fails = [3]

    async def story() -> None:
        async with office(database, tmp_path) as at:
            await at.agent()
            await poke(at.services, USER, Poke("ada"))
            order = await at.claim_one()
            await _put(at, update(runs).values(lease_until=1.0))
            read = at.services.read

            async def failing(operation: object) -> object:
                if fails[0]:
                    fails[0] -= 1
                    raise OSError("the disk is away")
                return await read(operation)  # type: ignore[arg-type]

            monkeypatch.setattr(at.services, "read", failing)
            monkeypatch.setattr("clew.control.timers.read_clock", lambda _: 0.0)
            time_goes = asyncio.create_task(run_timers(at.services, Timer("server")))
            other = Services(database, tmp_path)
            for _ in range(500):
                await asyncio.sleep(0.02)
                if (await show_run(other, USER, order.run)).state == "queued":
                    break
            assert (await show_run(other, USER, order.run)).state == "queued"
            time_goes.cancel()

    with caplog.at_level("WARNING", "clew.timers"):
        asyncio.run(story())
    assert [record.message for record in caplog.records if record.name == "clew.timers"] == [
        "heartbeats, leases and approvals wait: OSError('the disk is away')"
    ]
