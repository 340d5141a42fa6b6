"""Routes of projects."""

from clew.control.projects import add_project, change_project, list_projects, show_project
from clew.control.services import Services
from clew.protocol.requests import NewProject, ProjectChange
from clew.protocol.views import ProjectView
from clew.server.identity import By
from clew.server.params import Name
from clew.server.router import Routes


def projects(routes: Routes, services: Services) -> None:
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
