"""Sessions: those that Clew knows, and those found in the agents' own stores, which a thread can continue."""

from starlette.requests import Request
from starlette.responses import Response

from clew.control.agents import list_agents
from clew.control.sessions import found_sessions, list_sessions
from clew.control.threads import list_threads
from clew.web.site import Site, actor_of

_FOUND = 100
"""The newest found ones that are shown."""


def add(site: Site) -> None:
    @site.page("/sessions")
    async def sessions(request: Request) -> Response:
        """Filtered by `agent` and `thread`. With `found`, also the sessions in the agents' own stores: each program is
        asked, so that takes a moment."""
        actor, query = actor_of(request), request.query_params
        chosen = {name: query.get(name, "").strip() or None for name in ("agent", "thread")}
        asked = query.get("part") == "found" or "found" in query
        found = await found_sessions(site.services, actor) if asked else ()
        newest = sorted(found, key=lambda each: each.updated_at or 0.0, reverse=True)
        return site.show(
            request,
            "sessions.html",
            sessions=await list_sessions(site.services, actor, chosen["thread"], chosen["agent"]),
            asked=asked,
            found=[each for each in newest if each.thread is None][:_FOUND],
            known=sum(1 for each in found if each.thread is not None),
            agents=await list_agents(site.services, actor),
            threads=await list_threads(site.services, actor, state="open") if asked else (),
            chosen=chosen,
        )
