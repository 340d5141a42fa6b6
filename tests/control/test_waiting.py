"""What a queued run waits for, wherever one looks: its view, its thread, and why."""

import asyncio
from functools import partial
from pathlib import Path

import pytest
from sqlalchemy import Connection, text

from clew.control.agents import change_agent
from clew.control.decisions import explain
from clew.control.doctor import examine
from clew.control.programs import look_again
from clew.control.runs import list_runs
from clew.control.threads import open_chat, show_thread
from clew.control.wakes import say
from clew.kernel import FailureKind, WaitsFor
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
def test_a_provider_package_that_was_removed_is_noticed_without_a_person_looking(
    database: Database, tmp_path: Path
) -> None:
    async def story() -> None:
        async with office(database, tmp_path) as at:
            await at.agent()
            ref = await _say(at)
            at.laptop.removed.add("loom")
            assert await look_again(at.services, USER, LAPTOP) == ()
            run = await _waits(at, ref)
            assert (run.held, run.code) == ("person", "waits:program-gone")
            assert (run.words or "").startswith("ada cannot be started: There is no provider 'loom'.")
            check = {each.name: each for each in await examine(at.services, USER)}["agent ada"]
            assert check.state == "missing"
            assert check.remedy == (
                "Install the package of the provider loom again, or give ada another one: "
                "`clew agent edit ada --provider NAME`."
            )
            at.laptop.removed.clear()
            assert [each.name for each in await look_again(at.services, USER, LAPTOP)] == ["agent ada"]
            assert (await _waits(at, ref)).code == "waits:next"

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


@pytest.mark.case("R13")
def test_doctor_warns_of_an_agent_whose_runs_are_held_in_the_words_of_the_run(
    database: Database, tmp_path: Path
) -> None:
    async def story() -> None:
        async with office(database, tmp_path) as at:
            await at.agent(most=2)
            first, second = await _say(at), await _say(at)
            order = await at.claim_one()
            await at.prompt(order, "n1")
            reset = await at.services.read(read_clock) + 3 * 3600
            await at.finish(order, Failed(FailureKind.USAGE_LIMIT, "You have hit your limit.", reset))
            run = await _waits(at, first)
            check = {each.name: each for each in await examine(at.services, USER)}["agent ada"]
            assert (check.state, check.until) == ("warning", run.not_before)
            assert check.words == f"{run.ref} in {first} waits: {run.words}"
            assert check.remedy == f"See `clew why {run.ref}`."
            # One that is next in line is as it should be.
            assert (await _waits(at, second)).code == "waits:next"

    asyncio.run(story())


@pytest.mark.case("R13")
def test_a_directory_that_is_in_use_has_no_countdown(database: Database, tmp_path: Path) -> None:
    async def story() -> None:
        async with office(database, tmp_path) as at:
            await at.agent()
            ref = await _say(at)
            order = await at.claim_one()
            why = "/srv/web is in use: bob works there. The run starts when it is free."
            end = Returned(why, "workspace:in-use", WaitsFor.ANOTHER_TRY)
            assert (await at.plane.finish(Finish(order.run, order.attempt, end))).taken
            run = await _waits(at, ref)
            assert (run.held, run.words, run.not_before) == ("another-try", why, None)
            assert (await show_thread(at.services, USER, ref)).thread.until is None

    asyncio.run(story())


@pytest.mark.case("R13")
def test_a_hold_for_a_person_that_ends_by_a_command_names_no_other(database: Database, tmp_path: Path) -> None:
    async def story() -> None:
        async with office(database, tmp_path) as at:
            await at.agent()
            ref = await _say(at)
            order = await at.claim_one()
            why = "a person works there by hand. It goes on after `clew checkout issue-1 --agent ada --done`."
            end = Returned(why, "place:checked-out", WaitsFor.PERSON)
            assert (await at.plane.finish(Finish(order.run, order.attempt, end))).taken
            run = await _waits(at, ref)
            assert run.words == f"{why} Or `clew cancel {run.ref}`."

    asyncio.run(story())


@pytest.mark.case("R13")
def test_a_run_that_succeeds_lets_others_of_its_agent_go_that_wait_for_the_model(
    database: Database, tmp_path: Path
) -> None:
    async def story() -> None:
        async with office(database, tmp_path) as at:
            for name in ("ada", "bob"):
                await at.agent(name, most=5)
            reset = await at.services.read(read_clock) + 3 * 3600
            failures = [
                Failed(FailureKind.OUTAGE, "500"),
                Failed(FailureKind.USAGE_LIMIT, "You have hit your limit.", reset),
                Failed(FailureKind.OUTAGE, "500"),
                Failed(FailureKind.TRANSIENT, "the tool broke"),
            ]
            waiting = []
            for number, failed in enumerate([*failures, failures[0]]):
                ref = await _say(at, agent="bob" if number == len(failures) else "ada")
                order = await at.claim_one()
                await at.prompt(order, f"n{number}")
                await at.finish(order, failed)
                waiting.append(ref)
                for table in ("runs", "wakes"):
                    later = text(f"UPDATE {table} SET not_before = 9e9 WHERE not_before > 0")
                    database.write(partial(Connection.execute, statement=later)).result()
            held = [await _waits(at, ref) for ref in waiting]
            assert [run.held for run in held] == ["time"] * 5
            await _say(at)
            await at.serve("n9")
            # Two at once, and each of them two more: they do not all start together.
            codes = [(await _waits(at, ref)).code for ref in waiting]
            assert codes == ["waits:next", "waits:behind", "waits:not-yet", "waits:not-yet", "waits:not-yet"]
            first, second = await at.claim(most=9)
            assert (first.run, second.run) == (held[0].id, held[1].id)
            await at.prompt(first, "n0")
            await at.finish(first)
            assert [order.run for order in await at.claim(most=9)] == [held[2].id]
            # One that failed for another reason, and another agent's, wait on.
            assert [(await _waits(at, ref)).code for ref in waiting[3:]] == ["waits:not-yet"] * 2

    asyncio.run(story())
