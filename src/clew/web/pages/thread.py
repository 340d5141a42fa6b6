"""A thread: its journal as a conversation, with how each run was continued, and why."""

from starlette.requests import Request
from starlette.responses import Response

from clew.control.agents import list_agents
from clew.control.queue import show_queue
from clew.control.runs import list_events
from clew.control.threads import show_thread
from clew.protocol.views import EventView, RunView
from clew.web.conversation import items_of, steps_of, streamed_text
from clew.web.site import Site, actor_of, number

SCREEN = 30
"""Entries on the newest screen."""
_CATCH_UP = 200
_LINES = 500


def add(site: Site) -> None:
    @site.page("/threads/{ref}")
    async def thread(request: Request) -> Response:
        """With `before`, the screen before that entry; with `after`, what came since."""
        actor, ref = actor_of(request), request.path_params["ref"]
        before, after = number(request, "before"), number(request, "after") or 0
        limit = _CATCH_UP if after else SCREEN
        # From that entry itself: what happened before it is on the page already.
        page = await show_thread(site.services, actor, ref, before=before, limit=limit, after=max(0, after - 1))
        live = [run for run in page.runs if run.ended_at is None and run.started_at is not None]
        logs = {run.id: await _log(run, request) for run in live} if before is None else {}
        agents = await list_agents(site.services, actor)
        return site.show(
            request,
            "thread.html",
            page=page,
            items=[item for item in items_of(page, after) if before is None or not item.live],
            # With more new entries than that, a reader could miss some: the page is loaded again.
            gap=bool(after and page.entries and page.entries[0].seq > after),
            waiting=await show_queue(site.services, actor, ref),
            logs=logs,
            steps_of=steps_of,
            streamed_text=streamed_text,
            agents=[agent.name for agent in agents if agent.state != "archived"],
        )

    async def _log(run: RunView, request: Request) -> list[EventView]:
        lines: list[EventView] = []
        while page := await list_events(
            site.services, actor_of(request), run.id, after=lines[-1].seq if lines else 0, limit=_LINES
        ):
            lines += page
        return lines
