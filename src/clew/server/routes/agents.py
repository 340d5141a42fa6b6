"""Agents: who works."""

from clew.control.agents import add_agent, change_agent, list_agents, show_agent
from clew.control.services import Services
from clew.protocol.requests import AgentChange, NewAgent
from clew.protocol.views import AgentView
from clew.server.asked import Name
from clew.server.calls import Calls
from clew.server.identity import By


def agents(calls: Calls, services: Services) -> None:
    calls = calls.below("/agents", "agents")

    @calls.get("")
    async def list_all(by: By) -> tuple[AgentView, ...]:
        """Every agent, by name."""
        return await list_agents(services, by)

    @calls.post("", status_code=201)
    async def add(by: By, asked: NewAgent) -> AgentView:
        """A new agent. Its program is looked for first: one that could not work is not added."""
        return await add_agent(services, by, asked)

    @calls.get("/{name}")
    async def show(by: By, name: Name) -> AgentView:
        """One agent, by its name."""
        return await show_agent(services, by, name)

    @calls.patch("/{name}")
    async def change(by: By, name: Name, asked: AgentChange) -> AgentView:
        """Change what is named; the rest stays as it is. `paused` stops and starts it."""
        return await change_agent(services, by, name, asked)
