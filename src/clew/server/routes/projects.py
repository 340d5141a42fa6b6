"""Projects: what is worked on."""

from clew.control.projects import add_project, change_project, list_projects, show_project
from clew.control.services import Services
from clew.protocol.requests import NewProject, ProjectChange
from clew.protocol.views import ProjectView
from clew.server.asked import Name
from clew.server.calls import Calls
from clew.server.identity import By


def projects(calls: Calls, services: Services) -> None:
    calls = calls.below("/projects", "projects")

    @calls.get("")
    async def list_all(by: By) -> tuple[ProjectView, ...]:
        """Every project, by name."""
        return await list_projects(services, by)

    @calls.post("", status_code=201)
    async def add(by: By, asked: NewProject) -> ProjectView:
        """A new project, from a directory of the server's machine or an address that git can clone."""
        return await add_project(services, by, asked)

    @calls.get("/{name}")
    async def show(by: By, name: Name) -> ProjectView:
        """One project, by its name."""
        return await show_project(services, by, name)

    @calls.patch("/{name}")
    async def change(by: By, name: Name, asked: ProjectChange) -> ProjectView:
        """Change what is named; the rest stays as it is."""
        return await change_project(services, by, name, asked)
