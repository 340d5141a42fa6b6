"""Routes of agents."""

from clew.control.agents import add_agent, change_agent, list_agents, show_agent
from clew.control.services import Services
from clew.protocol.requests import AgentChange, NewAgent
from clew.protocol.views import AgentView
from clew.server.identity import By
from clew.server.params import Name
from clew.server.router import Routes


def agents(routes: Routes, services: Services) -> None:
    routes = routes.below("/agents", "agents")

    @routes.get("")
    async def list_all(by: By) -> tuple[AgentView, ...]:
        """All agents, sorted by name."""
        return await list_agents(services, by)

    @routes.post("", status_code=201)
    async def add(by: By, asked: NewAgent) -> AgentView:
        """Add an agent. Refused if its program is not installed or does not work."""
        return await add_agent(services, by, asked)

    @routes.get("/{name}")
    async def show(by: By, name: Name) -> AgentView:
        """One agent, by its name."""
        return await show_agent(services, by, name)

    @routes.patch("/{name}")
    async def change(by: By, name: Name, asked: AgentChange) -> AgentView:
        """Change the fields that are sent; the others stay. `paused` pauses or resumes the agent."""
        return await change_agent(services, by, name, asked)
