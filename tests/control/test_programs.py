"""Agents in one home, each started in its own way: none is taken for another, whoever is looked at first."""

import asyncio
import hashlib
import json
import random
from collections.abc import Callable
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path

import pytest
from sqlalchemy import select, update

from clew.control.agents import add_agent, change_agent, show_agent
from clew.control.doctor import examine, list_runtimes
from clew.control.faults import BadRequest
from clew.control.programs import offer_agents
from clew.control.sessions import adopt_session
from clew.control.threads import open_chat
from clew.control.wakes import poke
from clew.kernel import AccountId, Capabilities, Outcome, PermissionMode, RuntimeId, capabilities_to_record
from clew.protocol.machine import AgentProgram, Looked
from clew.protocol.requests import Adopt, AgentChange, NewAgent, NewChat, Poke
from clew.store.engine.database import Database
from clew.store.faults import Unreadable
from clew.store.schema.tables import agents, lanes, sessions
from tests.control.kit import ABLE, LAPTOP, LOOM, USER, Laptop, Office, office, session_of


@dataclass
class Keyed(Laptop):
    """A machine on which a program's login, its key and its abilities are in how it is started."""

    chance: random.Random = field(default_factory=lambda: random.Random(5))
    before: dict[str, asyncio.Event] = field(default_factory=dict)
    """Until then the program of that login says nothing."""

    async def discover(self, program: AgentProgram) -> Looked:
        looked = await super().discover(program)
        login, key = program.environment.get("LOGIN"), program.environment.get("KEY")
        if login in self.before:
            await self.before[login].wait()
        for _ in range(self.chance.randrange(20)):
            await asyncio.sleep(0)
        if looked.registration is None:
            return looked
        able = json.dumps(capabilities_to_record(self.able(program)))
        text = json.dumps(asdict(program), sort_keys=True).encode()
        own = replace(
            looked.registration,
            account=None if login is None else AccountId(login),
            credential=None if key is None else hashlib.sha256(key.encode()).hexdigest()[:8],
            capabilities=able,
            program=hashlib.sha256(text).hexdigest()[:16],
        )
        return replace(looked, registration=own)

    def able(self, program: AgentProgram) -> Capabilities:
        modes = program.options.get("modes", "read ask edit full").split()
        return replace(ABLE, modes=frozenset(map(PermissionMode, modes)), steers="steers" in program.options)


def keyed(at: Office, tmp_path: Path) -> Keyed:
    machine = Keyed(tmp_path)
    at.services.connect(machine)
    return machine


@dataclass(frozen=True)
class Seen:
    account: str | None
    credential: str | None
    steers: bool


async def seen_by(at: Office, agent: str) -> Seen:
    """As whom the next run of that agent would work."""
    await poke(at.services, USER, Poke(agent))
    order = await at.claim_one()
    assert order.agent.name == agent
    await at.prompt(order, f"n-{order.run}")
    await at.finish(order)
    here = order.plan.situation.here
    return Seen(here.account, here.credential, here.capabilities.steers)


def digest(key: str) -> str:
    return hashlib.sha256(key.encode()).hexdigest()[:8]


@pytest.mark.case("S14")
def test_two_agents_in_one_home_are_never_taken_for_one_another(database: Database, tmp_path: Path) -> None:
    async def story() -> None:
        async with office(database, tmp_path) as at:
            keyed(at, tmp_path)
            await at.agent("ada", environment={"LOGIN": "me@work"}, options={"steers": "yes"})
            await at.agent("bob", environment={"KEY": "one"})
            await at.agent("cyd", environment={"KEY": "two"})
            own = {
                "ada": Seen("me@work", None, True),
                "bob": Seen(None, digest("one"), False),
                "cyd": Seen(None, digest("two"), False),
            }
            for _ in range(20):
                assert [each.state for each in await offer_agents(at.services, USER, LAPTOP)] == ["ok"] * 3
                for agent, known in own.items():
                    assert await seen_by(at, agent) == known
            assert [each.accounts for each in await list_runtimes(at.services, USER)] == [("me@work",)]
            kept = (
                select(agents.c.name, sessions.c.account, sessions.c.credential)
                .join_from(sessions, lanes, lanes.c.id == sessions.c.lane_id)
                .join(agents, agents.c.id == lanes.c.agent_id)
                .distinct()
                .order_by(agents.c.name)
            )
            stamped = at.database.read(lambda link: [tuple(row) for row in link.execute(kept)])
            assert stamped == [(name, known.account, known.credential) for name, known in own.items()]
            said = {
                each.name: each.words for each in await examine(at.services, USER) if each.name.startswith("agent ")
            }
            assert said == {
                "agent ada": "loom 1.0, as me@work.",
                "agent bob": "loom 1.0, with a key.",
                "agent cyd": "loom 1.0, with a key.",
            }

    asyncio.run(story())


@pytest.mark.case("S14")
def test_abilities_are_those_of_the_agents_own_options(database: Database, tmp_path: Path) -> None:
    """As with ACP agents of one command line: what one is told it can do is not said of the other."""

    async def story() -> None:
        async with office(database, tmp_path) as at:
            keyed(at, tmp_path)
            await at.agent("ada", mode="read", options={"modes": "read full"})
            await at.agent("bob", mode="full", options={"modes": "full"})
            assert (await change_agent(at.services, USER, "ada", AgentChange(mode="ask"))).mode == "ask"
            with pytest.raises(BadRequest, match=r"nor to a stricter one; it supports: full"):
                await change_agent(at.services, USER, "bob", AgentChange(mode="ask"))
            await poke(at.services, USER, Poke("ada"))
            order = await at.claim_one()
            assert (order.plan.mode, order.plan.outcome) == (PermissionMode.READ, Outcome.BLANK)

    asyncio.run(story())


@pytest.mark.case("S14")
def test_agents_of_an_older_database_wait_until_all_of_their_home_were_looked_at(
    database: Database, tmp_path: Path
) -> None:
    async def story() -> None:
        async with office(database, tmp_path) as at:
            machine = keyed(at, tmp_path)
            await at.agent("ada", environment={"LOGIN": "me@work"})
            await at.agent("bob", environment={"LOGIN": "me@home"})
            await at.agent("cyd", provider="wheel", environment={"LOGIN": "me@home"})
            await at.services.write(lambda connection: connection.execute(update(agents).values(program="")))
            machine.offered.clear()
            machine.before["me@work"] = asyncio.Event()
            starting = asyncio.create_task(offer_agents(at.services, USER, LAPTOP))
            await _until(lambda: len(machine.offered) == 1)
            # Cyd is somewhere else. Bob is known by now, but ada would be taken for bob.
            assert [program.provider for _, program in machine.offered] == ["wheel"]
            machine.before["me@work"].set()
            assert [each.state for each in await starting] == ["ok"] * 3
            assert sorted(program.provider for _, program in machine.offered) == ["loom", "loom", "wheel"]
            assert (await seen_by(at, "ada")).account == "me@work"

    asyncio.run(story())


@pytest.mark.case("S14")
def test_one_whose_program_is_gone_keeps_no_other_of_its_home_waiting(database: Database, tmp_path: Path) -> None:
    class Gone(Keyed):
        async def discover(self, program: AgentProgram) -> Looked:
            if program.environment.get("LOGIN") == "me@work":
                return Looked(program, None, missing="It is gone.")
            return await super().discover(program)

    async def story() -> None:
        async with office(database, tmp_path) as at:
            keyed(at, tmp_path)
            await at.agent("ada", environment={"LOGIN": "me@work"})
            await at.agent("bob", environment={"LOGIN": "me@home"})
            await at.services.write(lambda connection: connection.execute(update(agents).values(program="")))
            at.services.connect(Gone(tmp_path))
            async with asyncio.timeout(20):
                assert [each.state for each in await offer_agents(at.services, USER, LAPTOP)] == ["missing", "ok"]

    asyncio.run(story())


async def _until(met: Callable[[], bool]) -> None:
    async with asyncio.timeout(20):
        while not met():
            await asyncio.sleep(0.005)


@pytest.mark.case("S14", "S17")
def test_who_changes_an_agent_while_it_is_looked_at_has_the_last_word(database: Database, tmp_path: Path) -> None:
    async def story() -> None:
        async with office(database, tmp_path) as at:
            machine = keyed(at, tmp_path)
            await at.agent("ada", environment={"LOGIN": "me@work"})
            machine.before["me@work"] = asyncio.Event()
            starting = asyncio.create_task(offer_agents(at.services, USER, LAPTOP))
            await asyncio.sleep(0.05)
            await change_agent(at.services, USER, "ada", AgentChange(environment={"LOGIN": "me@home"}))
            machine.before["me@work"].set()
            await starting
            assert (await seen_by(at, "ada")).account == "me@home"

    asyncio.run(story())


@pytest.mark.case("S14")
def test_a_session_is_adopted_as_its_new_agents_own(database: Database, tmp_path: Path) -> None:
    async def story() -> None:
        async with office(database, tmp_path) as at:
            machine = keyed(at, tmp_path)
            await at.agent("ada", environment={"LOGIN": "me@work"})
            await at.agent("bob", environment={"LOGIN": "me@home"})
            machine.found[RuntimeId(LOOM)] = [session_of("mine")]
            chat = await open_chat(at.services, USER, NewChat("ada"))
            await adopt_session(at.services, USER, chat.ref, Adopt("ada", LOOM, "mine"))
            kept = at.database.read(lambda link: link.execute(select(sessions.c.account)).scalars().all())
            assert list(kept) == ["me@work"]

    asyncio.run(story())


@pytest.mark.case("S15")
def test_a_person_allows_history_across_accounts_and_takes_it_back(database: Database, tmp_path: Path) -> None:
    async def story() -> None:
        async with office(database, tmp_path) as at:
            keyed(at, tmp_path)
            added = await at.agent("ada", environment={"LOGIN": "me@work"})
            assert not added.across_accounts
            await at.services.write(
                lambda connection: connection.execute(update(agents).values(policy='{"parallel": true}'))
            )
            assert (await change_agent(at.services, USER, "ada", AgentChange(across_accounts=True))).across_accounts
            assert (await change_agent(at.services, USER, "ada", AgentChange(most=2))).across_accounts
            await poke(at.services, USER, Poke("ada"))
            policy = (await at.claim_one()).plan.situation.policy
            assert (policy.history_across_accounts, policy.parallel) == (True, True)
            assert not (
                await change_agent(at.services, USER, "ada", AgentChange(across_accounts=False))
            ).across_accounts
            assert not (await show_agent(at.services, USER, "ada")).across_accounts
            bob = await add_agent(at.services, USER, NewAgent("bob", "loom", across_accounts=True))
            assert bob.across_accounts

    asyncio.run(story())


@pytest.mark.case("S15")
def test_a_policy_that_cannot_be_read_is_not_replaced(database: Database, tmp_path: Path) -> None:
    async def story() -> None:
        async with office(database, tmp_path) as at:
            await at.agent("ada")
            await at.services.write(
                lambda connection: connection.execute(update(agents).values(policy='{"parallel": 3}'))
            )
            with pytest.raises(Unreadable, match="of agents cannot be read"):
                await change_agent(at.services, USER, "ada", AgentChange(across_accounts=True))
            assert not (await show_agent(at.services, USER, "ada")).across_accounts
            await at.services.write(lambda connection: connection.execute(update(agents).values(policy="{}")))

    asyncio.run(story())
