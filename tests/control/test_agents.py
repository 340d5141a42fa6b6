"""Agents: only one whose program is there is added; its secrets are kept and never shown; it can move."""

import asyncio
import json
from pathlib import Path

import pytest
from sqlalchemy import select

from clew.control.agents import add_agent, change_agent, list_agents, show_agent
from clew.control.faults import BadName, BadRequest, BadRhythm, NoMachine, NotInstalled
from clew.control.issues import open_issue
from clew.control.programs import offer_agents
from clew.control.threads import show_thread
from clew.kernel import Outcome, PermissionMode
from clew.ports.fault import Fault
from clew.protocol.requests import AgentChange, NewAgent, NewIssue
from clew.protocol.views import Rhythm
from clew.store.engine.database import Database
from clew.store.faults import NameTaken, NoSuchAgent
from clew.store.schema.tables import agents
from tests.control.kit import LAPTOP, LOOM, USER, WHEEL, office


def test_an_agent_is_added_with_its_runtime_and_offered(database: Database, tmp_path: Path) -> None:
    async def story() -> None:
        async with office(database, tmp_path) as at:
            secret = {"API_KEY": "s3cret"}
            added = await at.agent(
                mode="ask", model="m-1", instructions="Be brief.", options={"color": "no"}, environment=secret
            )
            assert (added.name, added.state, added.provider, added.runtime) == ("ada", "active", "loom", LOOM)
            assert (added.mode, added.model, added.instructions) == ("ask", "m-1", "Be brief.")
            assert added.environment_names == ("API_KEY",)
            assert "s3cret" not in repr(added)
            assert added.home == str(tmp_path / "homes" / "ada")
            ((runtime, program),) = at.laptop.offered
            assert (runtime, program.environment, program.options) == (LOOM, secret, {"color": "no"})
            assert await list_agents(at.services, USER) == (added,) == (await show_agent(at.services, USER, "ada"),)
            assert (await show_thread(at.services, USER, "own-ada")).thread.assignee == "ada"

    asyncio.run(story())


def test_what_cannot_be_an_agent_is_refused_with_what_to_do(database: Database, tmp_path: Path) -> None:
    async def story() -> None:
        async with office(database, tmp_path) as at:
            await at.agent()
            with pytest.raises(NameTaken, match="already an agent 'ada'"):
                await at.agent()
            with pytest.raises(NotInstalled, match=r"no program spindle on the path.*clew doctor"):
                await at.agent("eve", provider="spindle")
            with pytest.raises(BadRequest, match=r"no provider 'lume'.*loom, spindle, wheel"):
                await at.agent("eve", provider="lume")
            for name in ("", "Ada", "a b", "-a", "a" * 41, "a/b", "a\n"):
                with pytest.raises(BadName):
                    await at.agent(name)
            with pytest.raises(BadRequest, match="Unknown permission mode"):
                await at.agent("eve", mode="root")
            with pytest.raises(BadRequest, match="0 runs"):
                await at.agent("eve", most=0)
            with pytest.raises(BadRequest, match="variable"):
                await at.agent("eve", environment={"A=B": "c"})
            assert [agent.name for agent in await list_agents(at.services, USER)] == ["ada"]
            at.services.machines.clear()
            with pytest.raises(NoMachine):
                await at.agent("eve")

    asyncio.run(story())


def test_an_unknown_agent_is_answered_with_what_there_is(database: Database, tmp_path: Path) -> None:
    async def story() -> None:
        async with office(database, tmp_path) as at:
            with pytest.raises(NoSuchAgent, match="Add one with"):
                await show_agent(at.services, USER, "ada")
            for name in ("ada", "grace", "barbara"):
                await at.agent(name)
            with pytest.raises(NoSuchAgent, match=r"no agent 'grase'.*Did you mean grace"):
                await show_agent(at.services, USER, "grase")
            with pytest.raises(NoSuchAgent, match="There is ada, barbara, grace"):
                await show_agent(at.services, USER, "zzz")

    asyncio.run(story())


def test_a_change_leaves_what_it_does_not_name(database: Database, tmp_path: Path) -> None:
    async def story() -> None:
        async with office(database, tmp_path) as at:
            await at.agent(model="m-1", environment={"KEY": "one", "OTHER": "two"})
            changed = await change_agent(at.services, USER, "ada", AgentChange(instructions="Be brief.", most=3))
            assert (changed.model, changed.instructions, changed.most) == ("m-1", "Be brief.", 3)
            change = AgentChange(model="", add_environment={"NEW": "three"}, remove_environment=("KEY",))
            changed = await change_agent(at.services, USER, "ada", change)
            assert (changed.model, changed.environment_names) == (None, ("NEW", "OTHER"))
            kept = at.database.read(lambda connection: connection.execute(select(agents.c.settings)).scalar_one())
            assert json.loads(kept)["environment"] == {"OTHER": "two", "NEW": "three"}
            assert (await change_agent(at.services, USER, "ada", AgentChange(paused=True))).state == "paused"
            assert (await change_agent(at.services, USER, "ada", AgentChange(paused=False))).state == "active"

    asyncio.run(story())


def test_an_environment_that_is_given_replaces_the_one_there_was(database: Database, tmp_path: Path) -> None:
    async def story() -> None:
        async with office(database, tmp_path) as at:
            await at.agent(environment={"KEY": "one", "OTHER": "two"}, home={"HOME": "/srv/a"}, options={"a": "1"})
            changed = await change_agent(at.services, USER, "ada", AgentChange(environment={"OTHER": "three"}))
            # A key that is not named any more is not used any more.
            assert at.laptop.offered[-1][1].environment == {"OTHER": "three"}
            assert changed.home_variables == {"HOME": "/srv/a"}
            changed = await change_agent(at.services, USER, "ada", AgentChange(home={}, options={"b": "2"}))
            assert (changed.home_variables, changed.options) == ({}, {"b": "2"})
            with pytest.raises(BadRequest, match=r"ada has no variable 'KEY'.*It has OTHER"):
                await change_agent(at.services, USER, "ada", AgentChange(remove_environment=("KEY",)))
            both = AgentChange(environment={}, add_environment={"KEY": "one"})
            with pytest.raises(BadRequest, match="cannot be replaced and changed at once"):
                await change_agent(at.services, USER, "ada", both)

    asyncio.run(story())


def test_a_home_that_is_not_there_is_refused_unless_it_is_to_be_made(database: Database, tmp_path: Path) -> None:
    async def story() -> None:
        async with office(database, tmp_path) as at:
            at.laptop.missing_homes.add("/srv/typo")
            with pytest.raises(Fault, match="/srv/typo does not exist"):
                await at.agent(home={"HOME": "/srv/typo"})
            assert await list_agents(at.services, USER) == ()
            await at.agent()
            with pytest.raises(Fault, match="/srv/typo does not exist"):
                await change_agent(at.services, USER, "ada", AgentChange(home={"HOME": "/srv/typo"}))
            change = AgentChange(home={"HOME": "/srv/typo"}, create_home=True)
            assert (await change_agent(at.services, USER, "ada", change)).home_variables == {"HOME": "/srv/typo"}

    asyncio.run(story())


@pytest.mark.case("A01")
def test_a_mode_that_its_program_cannot_be_kept_to_is_refused_and_never_widened(
    database: Database, tmp_path: Path
) -> None:
    async def story() -> None:
        async with office(database, tmp_path) as at:
            at.laptop.modes = frozenset({PermissionMode.FULL})
            with pytest.raises(BadRequest, match="nor to a stricter one; it supports: full"):
                await add_agent(at.services, USER, NewAgent("tests", "loom"))
            assert (await add_agent(at.services, USER, NewAgent("tests", "loom", mode="full"))).mode == "full"
            with pytest.raises(BadRequest, match="cannot limit its program to the mode ask"):
                await change_agent(at.services, USER, "tests", AgentChange(mode="ask"))
            assert (await show_agent(at.services, USER, "tests")).mode == "full"

    asyncio.run(story())


def test_an_agent_that_moves_to_another_provider_takes_what_waits_along(database: Database, tmp_path: Path) -> None:
    async def story() -> None:
        async with office(database, tmp_path) as at:
            await at.agent()
            await open_issue(at.services, USER, NewIssue("Mend it", assignee="ada"))
            await at.serve("n-1")
            await open_issue(at.services, USER, NewIssue("Mend that too", assignee="ada"))
            moved = await change_agent(at.services, USER, "ada", AgentChange(provider="wheel"))
            assert (moved.provider, moved.runtime) == ("wheel", WHEEL)
            assert at.laptop.offered[-1][0] == WHEEL
            order = await at.claim_one()
            assert (order.runtime, order.plan.outcome) == (WHEEL, Outcome.BLANK)
            with pytest.raises(NotInstalled):
                await change_agent(at.services, USER, "ada", AgentChange(provider="spindle"))
            assert (await show_agent(at.services, USER, "ada")).provider == "wheel"

    asyncio.run(story())


@pytest.mark.parametrize(
    "rhythm",
    [
        Rhythm(),
        Rhythm(every=60, cron="* * * * *"),
        Rhythm(every=0),
        Rhythm(every=-60),
        Rhythm(every=1),
        Rhythm(every=14.9),
        Rhythm(every=367 * 86_400),
        Rhythm(cron="* * * * * *"),
        Rhythm(every=float("nan")),
        Rhythm(cron="never"),
        Rhythm(cron="0 0 31 2 *"),
        Rhythm(every=60, zone="Mars/Olympus"),
        Rhythm(every=60, zone="../etc/passwd"),
    ],
)
def test_a_rhythm_that_makes_no_sense_is_refused(database: Database, tmp_path: Path, rhythm: Rhythm) -> None:
    async def story() -> None:
        async with office(database, tmp_path) as at:
            with pytest.raises(BadRhythm) as told:
                await at.agent(heartbeat=rhythm)
            assert told.value.words
            assert told.value.remedy
            assert await list_agents(at.services, USER) == ()
            await at.agent(heartbeat=Rhythm(every=15))

    asyncio.run(story())


def test_at_the_start_every_agent_is_offered_and_one_that_is_gone_stops_no_other(
    database: Database, tmp_path: Path
) -> None:
    async def story() -> None:
        async with office(database, tmp_path) as at:
            await at.agent("ada")
            await at.agent("bob", provider="wheel")
            await add_agent(at.services, USER, NewAgent("cyd", "loom", home={"HOME": "/srv/other"}))
            at.laptop.offered.clear()
            at.laptop.gone.add("wheel")
            checks = await offer_agents(at.services, USER, LAPTOP)
            assert [(each.name, each.state) for each in checks] == [
                ("agent ada", "ok"),
                ("agent bob", "missing"),
                ("agent cyd", "ok"),
            ]
            assert len(at.laptop.offered) == 2
            assert len({runtime for runtime, _ in at.laptop.offered}) == 2

    asyncio.run(story())


def test_a_change_of_nothing_is_refused(database: Database, tmp_path: Path) -> None:
    async def story() -> None:
        async with office(database, tmp_path) as at:
            await at.agent()
            with pytest.raises(BadRequest, match="Nothing is to be changed: a field that is null"):
                await change_agent(at.services, USER, "ada", AgentChange(mode=None))
            assert (await change_agent(at.services, USER, "ada", AgentChange(paused=False))).state == "active"

    asyncio.run(story())
