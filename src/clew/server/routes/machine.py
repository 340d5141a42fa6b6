"""The machine: agents' sessions and programs on it, and the directories they work in."""

from dataclasses import dataclass
from typing import Annotated

from pydantic import Field

from clew.control.doctor import examine, list_runtimes
from clew.control.services import Services
from clew.control.sessions import found_sessions, list_sessions
from clew.control.workspaces import clean_workspaces, list_workspaces
from clew.protocol.views import CheckView, CleanedView, FoundSessionView, RuntimeView, SessionView, WorkspaceView
from clew.server.asked import Filter, Limit
from clew.server.calls import Calls
from clew.server.identity import By


@dataclass(frozen=True, slots=True)
class Clean:
    """Without names, what is merged and clean is removed; what is named is removed even so."""

    asked: Annotated[tuple[str, ...], Field(max_length=1000)] = ()


def machine(calls: Calls, services: Services) -> None:
    calls = calls.below("", "machine")

    @calls.get("/sessions")
    async def sessions(
        by: By, thread: Filter = None, agent: Filter = None, limit: Limit = 100
    ) -> tuple[SessionView, ...]:
        """Sessions that Clew knows, newest first."""
        return await list_sessions(services, by, thread, agent, limit)

    @calls.get("/sessions/found")
    async def found(by: By) -> tuple[FoundSessionView, ...]:
        """Sessions that the agents of this machine have, whether Clew knows them or not."""
        return await found_sessions(services, by)

    @calls.get("/runtimes")
    async def runtimes(by: By) -> tuple[RuntimeView, ...]:
        """Where agents can run."""
        return await list_runtimes(services, by)

    @calls.get("/workspaces")
    async def workspaces(by: By) -> tuple[WorkspaceView, ...]:
        """The directories that agents work in, with their use of the disk."""
        return await list_workspaces(services, by)

    @calls.post("/workspaces/clean")
    async def clean(by: By, asked: Clean) -> tuple[CleanedView, ...]:
        """Remove those that are merged and clean, and those that are named."""
        return await clean_workspaces(services, by, asked.asked)

    @calls.get("/doctor")
    async def doctor(by: By) -> tuple[CheckView, ...]:
        """What is installed, what works, and what to do about the rest."""
        return await examine(services, by)
