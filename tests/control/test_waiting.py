"""What a queued run waits for, wherever one looks: its view, its thread, and why."""

import asyncio
from pathlib import Path

import pytest
from sqlalchemy import text

from clew.control.agents import change_agent
from clew.control.decisions import explain
from clew.control.doctor import examine
from clew.control.programs import look_again
from clew.control.runs import list_runs
from clew.control.threads import open_chat, show_thread
from clew.control.wakes import say
from clew.kernel import FailureKind
from clew.protocol.reports import Failed, Finish, Returned
from clew.protocol.requests import AgentChange, NewChat, Words
from clew.protocol.views import RunView
from clew.store.engine.database import Database
from clew.store.engine.dialect import read_clock
from tests.control.kit import LAPTOP, USER, Office, office

GONE = "no program loom on the path."


async def _say(at: Office, ref: str = "", agent: str = "ada") -> str:
    """In a new chat, or in that one; its name."""
    if not ref:
        ref = (await open_chat(at.services, USER, NewChat(agent))).ref
    await say(at.services, USER, ref, Words("hello"))
    return ref


async def _waits(at: Office, ref: str) -> RunView:
    """The newest run of the thread; what it waits for is said in the same words everywhere."""
    (run,) = await list_runs(at.services, USER, thread=ref, limit=1)
    page = await show_thread(at.services, USER, ref)
    assert (page.thread.words, page.thread.status) == (run.words, "held" if run.held else "queued")
    assert f"{run.words} [{run.code}]" in (await explain(at.services, USER, run.id)).headline
    return run


@pytest.mark.case("R13")
def test_a_program_that_is_gone_is_named_and_its_return_is_noticed(database: Database, tmp_path: Path) -> None:
    async def story() -> None:
        async with office(database, tmp_path) as at:
            await at.agent()
            at.laptop.gone.add("loom")
            checks = {each.name: each for each in await examine(at.services, USER)}
            assert (checks["agent ada"].state, checks["agent ada"].words) == ("missing", GONE)
            ref = await _say(at)
            run = await _waits(at, ref)
            assert (run.held, run.code) == ("person", "waits:program-gone")
            assert run.words is not None
            assert run.words.startswith(f"ada cannot be started: {GONE}")
            assert await at.claim() == []
            assert await look_again(at.services, USER, LAPTOP) == ()
            at.laptop.gone.discard("loom")
            (found,) = await look_again(at.services, USER, LAPTOP)
            assert (found.name, found.state) == ("agent ada", "ok")
            assert (await _waits(at, ref)).code == "waits:next"
            await at.serve()

    asyncio.run(story())


@pytest.mark.case("R13")
def test_a_program_that_is_gone_when_a_run_opens_it_holds_every_run_of_its_agent(
    database: Database, tmp_path: Path
) -> None:
    async def story() -> None:
        async with office(database, tmp_path) as at:
            await at.agent(most=2)
            first, second = await _say(at), await _say(at)
            order = await at.claim_one()
            end = Returned("loom is not there. Install it.", "program:missing", program_gone=True)
            assert (await at.plane.finish(Finish(order.run, order.attempt, end))).taken
            assert [(await _waits(at, ref)).code for ref in (first, second)] == ["waits:program-gone"] * 2
            assert await at.claim(most=2) == []
            # Doctor looks at once.
            await examine(at.services, USER)
            assert len(await at.claim(most=2)) == 2

    asyncio.run(story())


@pytest.mark.case("R13")
def test_an_agent_that_is_paused_or_full_is_named(database: Database, tmp_path: Path) -> None:
    async def story() -> None:
        async with office(database, tmp_path) as at:
            await at.agent()
            first = await _say(at)
            await at.claim_one()
            second = await _say(at)
            full = await _waits(at, second)
            assert (full.held, full.code) == (None, "waits:agent-full")
            assert full.words == f"ada is busy in {first}; it may have 1 run at once."
            await change_agent(at.services, USER, "ada", AgentChange(paused=True))
            paused = await _waits(at, second)
            assert (paused.held, paused.code) == ("person", "waits:agent-paused")
            assert paused.words == "ada is paused. Resume it with `clew agent resume ada`."

    asyncio.run(story())


@pytest.mark.case("R13")
def test_a_machine_that_is_away_is_named(database: Database, tmp_path: Path) -> None:
    async def story() -> None:
        async with office(database, tmp_path) as at:
            await at.agent()
            database.write(lambda tx: tx.execute(text("UPDATE runtimes SET seen_at = seen_at - 3600"))).result()
            run = await _waits(at, await _say(at))
            assert (run.held, run.code) == (None, "waits:machine-away")
            assert run.words == "Machine the laptop is gone; the run starts when Clew runs there again."

    asyncio.run(story())


@pytest.mark.case("R13")
def test_a_run_that_waits_for_its_time_is_held_until_then_and_says_why(database: Database, tmp_path: Path) -> None:
    async def story() -> None:
        async with office(database, tmp_path) as at:
            await at.agent()
            ref = await _say(at)
            order = await at.claim_one()
            await at.prompt(order, "n1")
            reset = await at.services.read(read_clock) + 3 * 3600
            await at.finish(order, Failed(FailureKind.USAGE_LIMIT, "You have hit your limit.", reset))
            run = await _waits(at, ref)
            assert (run.held, run.code) == ("time", "waits:not-yet")
            assert run.words == "Failed. Waiting for the usage limit to reset: You have hit your limit."
            assert run.not_before is not None
            assert reset <= run.not_before <= reset + 120
            assert (await show_thread(at.services, USER, ref)).thread.until == run.not_before

    asyncio.run(story())
