"""A thread: its journal as a conversation, with how each run was continued, and why."""

import uuid

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from clew.control.agents import list_agents
from clew.control.queue import show_queue
from clew.control.runs import last_events
from clew.control.threads import show_screen
from clew.protocol.files import LARGEST_FILE, LARGEST_TOGETHER, MOST_FILES
from clew.web.conversation import items_of, steps_of, streamed_text
from clew.web.screen import screen_of
from clew.web.site import Site, actor_of, number

SCREEN = 30
"""Entries on the newest screen."""
LONGEST = 6_000
"""Characters of one entry; more of it is shown when it is asked for."""
_CATCH_UP = 100
_LINES = 100


def add(site: Site) -> None:
    @site.page("/threads/{ref}")
    async def thread(request: Request) -> Response:
        """With `before`, the screen before that entry; with `after`, what came since; with `entry`, that one whole."""
        actor, ref = actor_of(request), request.path_params["ref"]
        if alone := number(request, "entry"):
            page = await show_screen(site.services, actor, ref, before=alone + 1, limit=1)
            if not page.entries or page.entries[0].seq != alone:
                raise HTTPException(404)
            return site.show(request, "entry.html", page=page, entry=page.entries[0])
        before, after = number(request, "before"), number(request, "after") or 0
        limit = _CATCH_UP if after else SCREEN
        # From that entry itself: what happened before it is on the page already.
        page = await show_screen(
            site.services, actor, ref, before=before, limit=limit, after=max(0, after - 1), longest=LONGEST
        )
        newest, texts = screen_of(page)
        page = page if after else newest
        live = [run for run in page.runs if run.ended_at is None and run.started_at is not None]
        logs = (
            {run.id: await last_events(site.services, actor, run.id, _LINES) for run in live} if before is None else {}
        )
        agents = await list_agents(site.services, actor)
        return site.show(
            request,
            "thread.html",
            page=page,
            texts=texts,
            items=[item for item in items_of(page, after) if before is None or not item.live],
            # With more new entries than that, a reader could miss some: the page is loaded again.
            gap=bool(after and page.entries and page.entries[0].seq > after),
            waiting=await show_queue(site.services, actor, ref),
            logs=logs,
            steps_of=steps_of,
            streamed_text=streamed_text,
            key=f"form-{uuid.uuid4().hex}",
            most_files=MOST_FILES,
            largest_file=LARGEST_FILE,
            largest_together=LARGEST_TOGETHER,
            agents=[agent.name for agent in agents if agent.state != "archived"],
        )
