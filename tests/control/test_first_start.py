"""The first start: one step from an installed program to a chat with it."""

import asyncio
from pathlib import Path

import pytest

from clew.control.agents import change_agent, expressible_modes, list_agents
from clew.control.doctor import examine_programs, list_providers
from clew.control.faults import BadRequest, NotNow
from clew.control.first_start import begin
from clew.kernel import PermissionMode
from clew.protocol.requests import AgentChange, Begin
from clew.store.engine.database import Database
from tests.control.kit import USER, office


def test_an_agent_is_added_once_and_each_chat_is_with_it(database: Database, tmp_path: Path) -> None:
    async def story() -> None:
        async with office(database, tmp_path) as at:
            first, second = [await begin(at.services, USER, Begin("loom")) for _ in range(2)]
            assert (first.ref, second.ref, first.assignee, second.assignee) == ("chat-1", "chat-2", "loom", "loom")
            assert [agent.name for agent in await list_agents(at.services, USER)] == ["loom"]
            await change_agent(at.services, USER, "loom", AgentChange(paused=True))
            with pytest.raises(NotNow, match="paused"):
                await begin(at.services, USER, Begin("loom"))
            with pytest.raises(BadRequest, match="no provider"):
                await begin(at.services, USER, Begin("nothing"))

    asyncio.run(story())


@pytest.mark.case("A01")
def test_what_is_installed_and_which_modes_an_agent_can_have(database: Database, tmp_path: Path) -> None:
    async def story() -> None:
        async with office(database, tmp_path) as at:
            await at.agent()
            providers = await list_providers(at.services, USER)
            assert "loom" in providers
            assert {check.name for check in await examine_programs(at.services, USER)} <= set(providers)
            modes = await expressible_modes(at.services, USER, "ada")
            assert modes == tuple(sorted(modes))
            assert PermissionMode.EDIT in modes

    asyncio.run(story())
