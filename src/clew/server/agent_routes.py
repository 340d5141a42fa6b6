"""The routes of agents and projects: who works, and on what."""

from clew.control.agents import add_agent, change_agent, list_agents, remove_agent, show_agent
from clew.control.first_start import begin
from clew.control.logins import show_login, try_agent
from clew.control.policies import set_agent_policy, set_project_policy, show_agent_policy, show_project_policy
from clew.control.projects import add_project, change_project, list_projects, remove_project, show_project
from clew.control.services import Services
from clew.protocol.checks import LoginView, TrialView
from clew.protocol.policies import PolicyView
from clew.protocol.requests import (
    AgentChange,
    Begin,
    NewAgent,
    NewProject,
    PolicyChange,
    ProjectChange,
)
from clew.protocol.views import (
    AgentView,
    ProjectView,
    ThreadView,
)
from clew.server.router import By, Name, Routes


def add_agent_routes(routes: Routes, services: Services) -> None:
    for add in (_agents, _first_chat, _projects):
        add(routes, services)


def _agents(routes: Routes, services: Services) -> None:
    routes = routes.below("/agents", "agents")

    @routes.get("")
    async def list_all(by: By, removed: bool = False) -> tuple[AgentView, ...]:
        """All agents, sorted by name; removed ones only with `removed`."""
        return await list_agents(services, by, removed)

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

    @routes.delete("/{name}")
    async def remove(by: By, name: Name) -> AgentView:
        """Remove the agent: it is not woken any more. Its threads and runs stay. Refused while it has work."""
        return await remove_agent(services, by, name)

    @routes.get("/{name}/policy")
    async def policy(by: By, name: Name) -> PolicyView:
        """Its policy: when a conversation goes on and when a new one is started."""
        return await show_agent_policy(services, by, name)

    @routes.post("/{name}/policy")
    async def set_policy(by: By, name: Name, asked: PolicyChange) -> PolicyView:
        """Replace its policy. Try it first with /replay."""
        return await set_agent_policy(services, by, name, asked)

    @routes.get("/{name}/login")
    async def login(by: By, name: Name) -> LoginView:
        """Which login its program has, or how it gets one. Names and places only, never a key."""
        return await show_login(services, by, name)

    @routes.post("/{name}/test")
    async def test(by: By, name: Name) -> TrialView:
        """Try one prompt in a session and a directory of its own. No thread is changed."""
        return await try_agent(services, by, name)


def _first_chat(routes: Routes, services: Services) -> None:
    routes = routes.below("/begin", "agents")

    @routes.post("", status_code=201)
    async def begin_chat(by: By, asked: Begin) -> ThreadView:
        """Open a chat with an agent of this provider. If there is none, one is added with the provider's name."""
        return await begin(services, by, asked)


def _projects(routes: Routes, services: Services) -> None:
    routes = routes.below("/projects", "projects")

    @routes.get("")
    async def list_all(by: By) -> tuple[ProjectView, ...]:
        """All projects, sorted by name."""
        return await list_projects(services, by)

    @routes.post("", status_code=201)
    async def add(by: By, asked: NewProject) -> ProjectView:
        """Add a project: a directory on the server's machine, or a URL that git can clone."""
        return await add_project(services, by, asked)

    @routes.get("/{name}")
    async def show(by: By, name: Name) -> ProjectView:
        """One project, by its name."""
        return await show_project(services, by, name)

    @routes.patch("/{name}")
    async def change(by: By, name: Name, asked: ProjectChange) -> ProjectView:
        """Change the fields that are sent; the others stay."""
        return await change_project(services, by, name, asked)

    @routes.delete("/{name}")
    async def remove(by: By, name: Name) -> ProjectView:
        """Remove a project that no thread uses. Its directory is not touched."""
        return await remove_project(services, by, name)

    @routes.get("/{name}/policy")
    async def policy(by: By, name: Name) -> PolicyView:
        """Its policy. In a run of the project, the fields that its agent's policy sets count instead."""
        return await show_project_policy(services, by, name)

    @routes.post("/{name}/policy")
    async def set_policy(by: By, name: Name, asked: PolicyChange) -> PolicyView:
        """Replace its policy. Try it first with /replay."""
        return await set_project_policy(services, by, name, asked)
