"""The route of the search."""

from typing import Annotated

from fastapi import Query

from clew.control.search import search
from clew.control.services import Services
from clew.protocol.search import FoundPage
from clew.server.router import By, Filter, Limit, Routes

Typed = Annotated[str, Query(max_length=1000)]


def add_search_routes(routes: Routes, services: Services) -> None:
    @routes.below("/search", "search").get("")
    async def find(
        by: By,
        q: Typed,
        thread: Filter = None,
        agent: Filter = None,
        project: Filter = None,
        kind: Filter = None,
        limit: Limit = 20,
        before: Filter = None,
    ) -> FoundPage:
        """Journal entries, titles of threads and texts of logs that have all the words of `q`, newest first. "Words in
        quotes" stand together, `-word` leaves out, `word*` finds what begins with it. `kind` is entry, title or log;
        `agent` is who wrote it or whose log it is. For the next page, `before` is the `older` of this one."""
        return await search(services, by, q, thread, agent, project, kind, limit, before)
