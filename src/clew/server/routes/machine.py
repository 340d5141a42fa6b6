"""Routes of the machine: sessions, runtimes, workspaces and checks."""

from dataclasses import dataclass
from typing import Annotated

from pydantic import Field

from clew.control.doctor import examine, list_runtimes
from clew.control.services import Services
from clew.control.sessions import found_sessions, list_sessions
from clew.control.workspaces import clean_workspaces, list_workspaces
from clew.protocol.views import CheckView, CleanedView, FoundSessionView, RuntimeView, SessionView, WorkspaceView
from clew.server.identity import By
from clew.server.params import Filter, Limit
from clew.server.router import Routes


@dataclass(frozen=True, slots=True)
class Clean:
    """Without names, removes workspaces that are merged and clean; named ones are removed in any case."""

    asked: Annotated[tuple[str, ...], Field(max_length=1000)] = ()


def machine(routes: Routes, services: Services) -> None:
    routes = routes.below("", "machine")

    @routes.get("/sessions")
    async def sessions(
        by: By, thread: Filter = None, agent: Filter = None, limit: Limit = 100
    ) -> tuple[SessionView, ...]:
        """Sessions recorded in Clew, newest first."""
        return await list_sessions(services, by, thread, agent, limit)

    @routes.get("/sessions/found")
    async def found(by: By) -> tuple[FoundSessionView, ...]:
        """Sessions that the agent programs on this machine have, recorded in Clew or not."""
        return await found_sessions(services, by)

    @routes.get("/runtimes")
    async def runtimes(by: By) -> tuple[RuntimeView, ...]:
        """Runtimes: each is one provider in one home on one machine."""
        return await list_runtimes(services, by)

    @routes.get("/workspaces")
    async def workspaces(by: By) -> tuple[WorkspaceView, ...]:
        """The directories agents work in, with disk usage."""
        return await list_workspaces(services, by)

    @routes.post("/workspaces/clean")
    async def clean(by: By, asked: Clean) -> tuple[CleanedView, ...]:
        """Remove workspaces that are merged and clean, or those that are named."""
        return await clean_workspaces(services, by, asked.asked)

    @routes.get("/doctor")
    async def doctor(by: By) -> tuple[CheckView, ...]:
        """Check what is installed and works, with a remedy for each problem."""
        return await examine(services, by)
