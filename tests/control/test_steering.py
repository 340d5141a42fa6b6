"""Words within a turn: who asks for them, what the receipt says, and how it is explained afterwards."""

import asyncio
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from clew.control.decisions import explain
from clew.control.faults import BadRequest
from clew.control.runs import show_run
from clew.control.threads import open_chat, set_overlap, show_thread
from clew.control.wakes import say, show_wake
from clew.kernel import capabilities_to_record
from clew.protocol.machine import AgentProgram
from clew.protocol.orders import ClaimRequest, Order
from clew.protocol.reports import RunEventRecord, Steered
from clew.protocol.requests import NewChat, Words
from clew.protocol.views import WakeView
from clew.store.engine.database import Database
from clew.store.operations.runtimes import register_runtime
from tests.control.kit import ABLE, LOOM, USER, Office, office

STEER = "steer"


async def at_work(at: Office, steers: bool = True) -> Order:
    """A chat in which an agent is at work that takes words meanwhile, or does not."""
    await at.agent()
    if steers:
        found = (await at.laptop.discover(AgentProgram("loom"))).registration
        assert found is not None
        able = replace(found, capabilities=json.dumps(capabilities_to_record(replace(ABLE, steers=True))))
        await at.services.write(lambda connection: register_runtime(connection, able))
    await open_chat(at.services, USER, NewChat("ada"))
    await say(at.services, USER, "chat-1", Words("one"))
    order = await at.claim_one()
    await at.prompt(order, "n-1")
    return order


async def said(at: Office, text: str, **how: Any) -> WakeView:
    spoken = await say(at.services, USER, "chat-1", Words(text, **how))
    assert spoken.wake is not None
    return await show_wake(at.services, USER, spoken.wake.id)


@pytest.mark.case("W13")
def test_one_message_is_steered_and_the_policy_stays(database: Database, tmp_path: Path) -> None:
    async def story() -> None:
        async with office(database, tmp_path) as at:
            order = await at_work(at)
            assert (await said(at, "two", overlap=STEER)).code == "accepted:steered"
            # Its daemon hears of it at once, and asks.
            news = await at.plane.claim(ClaimRequest("daemon-1", (LOOM,), 0, holding=frozenset({order.run}), wait=5.0))
            assert news.news == {order.run}
            reported = await at.report(order, steers=True)
            assert reported.steer is not None
            assert [entry.body for entry in reported.steer.entries] == ["two"]
            assert (await said(at, "three")).code == "accepted:queued"
            assert (await show_thread(at.services, USER, "chat-1")).lanes[0].overlap == "queue"

    asyncio.run(story())


@pytest.mark.case("W13")
def test_news_that_another_report_came_upon_is_passed_on(database: Database, tmp_path: Path) -> None:
    async def story() -> None:
        async with office(database, tmp_path) as at:
            order = await at_work(at)
            claiming = ClaimRequest("daemon-1", (LOOM,), 0)
            await at.plane.claim(replace(claiming, holding=frozenset({order.run})))
            await said(at, "two", overlap=STEER)
            async with asyncio.timeout(10):
                while not (reported := await at.report(order)).news:
                    await asyncio.sleep(0.01)
            assert reported.steer is None
            # Once: whoever asks then has it.
            asked = await at.report(order, steers=True)
            assert (asked.news, asked.steer is not None) == (False, True)

    asyncio.run(story())


@pytest.mark.case("W13")
def test_news_stays_where_the_report_that_came_upon_it_could_not_be_kept(
    database: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def story() -> None:
        async with office(database, tmp_path) as at:
            order = await at_work(at)
            holding = frozenset({order.run})
            await at.plane.claim(ClaimRequest("daemon-1", (LOOM,), 0, holding=holding))
            await said(at, "two", overlap=STEER)
            news = await at.plane.claim(ClaimRequest("daemon-1", (LOOM,), 0, holding=holding, wait=5.0))
            assert news.news == holding
            await said(at, "three", overlap=STEER)
            # Until it is heard of.
            await asyncio.sleep(0.3)

            async def full(_: object) -> None:
                raise OSError("no space left")

            with monkeypatch.context() as patch:
                patch.setattr(at.services, "write", full)
                with pytest.raises(OSError, match="no space"):
                    await at.report(order)
            assert (await at.report(order)).news is True

    asyncio.run(story())


@pytest.mark.case("W13")
@pytest.mark.parametrize(
    ("how", "code"),
    [
        ({}, "accepted:steered"),
        ({"fresh": True}, "accepted:queued"),
        ({"overlap": "queue"}, "accepted:queued"),
        ({"overlap": "reject"}, "skipped:overlap"),
        ({"overlap": "interrupt"}, "accepted:interrupts"),
    ],
)
def test_a_lane_that_steers_says_of_each_message_what_became_of_it(
    database: Database, tmp_path: Path, how: dict[str, Any], code: str
) -> None:
    async def story() -> None:
        async with office(database, tmp_path) as at:
            await at_work(at)
            lane = await set_overlap(at.services, USER, "chat-1", "ada", STEER)
            assert lane.overlap == STEER
            assert (await said(at, "two", **how)).code == code

    asyncio.run(story())


@pytest.mark.case("W13")
def test_where_the_agent_cannot_the_receipt_says_that_it_waits(database: Database, tmp_path: Path) -> None:
    async def story() -> None:
        async with office(database, tmp_path) as at:
            order = await at_work(at, steers=False)
            assert (await said(at, "two", overlap=STEER)).code == "accepted:queued"
            await at.finish(order)
            assert (await said(at, "three", overlap=STEER)).code == "accepted:lane-free"

    asyncio.run(story())


@pytest.mark.case("W13")
@pytest.mark.parametrize(
    ("how", "words"),
    [
        ({"wakes": False}, "wakes no agent"),
        ({"fresh": True}, "steers cannot start fresh"),
        ({"overlap": "wait"}, "Unknown overlap policy"),
    ],
)
def test_what_makes_no_sense_is_refused(database: Database, tmp_path: Path, how: dict[str, Any], words: str) -> None:
    async def story() -> None:
        async with office(database, tmp_path) as at:
            await at_work(at)
            with pytest.raises(BadRequest, match=words):
                await say(at.services, USER, "chat-1", Words("two", **{"overlap": STEER, **how}))
            assert len((await show_thread(at.services, USER, "chat-1")).entries) == 1

    asyncio.run(story())


@pytest.mark.case("W13", "W15")
def test_why_says_what_a_run_was_told_on_the_way(database: Database, tmp_path: Path) -> None:
    async def story() -> None:
        async with office(database, tmp_path) as at:
            order = await at_work(at)
            two = await said(at, "two", overlap=STEER)
            reported = await at.report(order, steers=True)
            assert reported.steer is not None
            assert (await explain(at.services, USER, two.id)).wakes[0].code == "carried:steering"
            line = {"taken": True, "wakes": [two.id], "entries": [2], "text": "two"}
            await at.report(
                order,
                steered=Steered(True, reported.steer.through),
                events=(RunEventRecord(1, "steer", json.dumps(line)), RunEventRecord(2, "steer", "no JSON")),
            )
            await at.finish(order)
            run = await explain(at.services, USER, order.run)
            assert [(each.wakes, each.text, each.taken) for each in run.steered] == [
                ((two.id,), "two", True),
                ((), "", False),
            ]
            assert run.headline.startswith("blank:") or run.headline.startswith("reseed:")
            wake = await explain(at.services, USER, two.id)
            named = (await show_run(at.services, USER, order.run)).ref
            assert wake.wakes[0].words == f"{named} served it."
            words = f"{named} told its agent during the turn."
            assert (wake.headline, wake.subject) == (f"steered: {words} [carried:steered]", two.id)
            first = next(each for each in run.wakes if each.id != two.id)
            assert (await explain(at.services, USER, first.id)).headline == run.headline

    asyncio.run(story())
