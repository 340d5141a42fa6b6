"""The routes of the work in a thread's worktrees: what changed, committed, merged and proposed."""

from typing import Annotated

from fastapi import Query
from pydantic import Field

from clew.control.services import Services
from clew.control.work import show_diff
from clew.protocol.views import DiffView
from clew.server.router import By, Filter, Name, Routes

Paths = Annotated[list[Annotated[str, Field(min_length=1, max_length=4096)]] | None, Query(max_length=200)]


def add_work_routes(routes: Routes, services: Services) -> None:
    routes = routes.below("/threads/{ref}", "work")

    @routes.get("/diff")
    async def diff(
        by: By,
        ref: Name,
        agent: Filter = None,
        run: Filter = None,
        path: Paths = None,
        stat: bool = False,
    ) -> DiffView:
        """What an agent of the thread changed that the base does not have, committed or not; with `run`, what that run
        changed. `path` narrows it to files or directories. `agent` is the thread's agent by default."""
        return await show_diff(services, by, ref, agent, run, path or (), stat)
