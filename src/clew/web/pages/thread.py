"""A thread: its journal as a conversation, with how each run was continued, and why."""

import uuid
from collections.abc import Sequence

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from clew.control.agents import list_agents
from clew.control.approvals import approvals_of
from clew.control.queue import show_queue
from clew.control.runs import last_events
from clew.control.threads import show_screen
from clew.protocol.files import LARGEST_FILE, LARGEST_TOGETHER, MOST_FILES
from clew.protocol.waiting import WaitingView
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
        # Texts take the longest, and only the journal shows them.
        newest, texts = screen_of(page) if request.query_params.get("part") in (None, "turns") else (page, {})
        page = page if after else newest
        live = [run for run in page.runs if run.ended_at is None and run.started_at is not None]
        logs = (
            {run.id: await last_events(site.services, actor, run.id, _LINES) for run in live} if before is None else {}
        )
        asked = [ask for run in live for ask in await approvals_of(site.services, actor, run.id)]
        agents = await list_agents(site.services, actor)
        waiting = await show_queue(site.services, actor, ref)
        return site.show(
            request,
            "thread.html",
            page=page,
            texts=texts,
            items=[item for item in items_of(page, after) if before is None or not item.live],
            # With more new entries than that, a reader could miss some: the page is loaded again.
            gap=bool(after and page.entries and page.entries[0].seq > after),
            waiting=waiting,
            earlier=_moves(waiting),
            # Those of runs that have ended stand among their steps.
            answered=[ask for ask in reversed(asked) if ask.state != "pending"],
            logs=logs,
            steps_of=steps_of,
            streamed_text=streamed_text,
            key=f"form-{uuid.uuid4().hex}",
            most_files=MOST_FILES,
            largest_file=LARGEST_FILE,
            largest_together=LARGEST_TOGETHER,
            agents=[agent.name for agent in agents if agent.state != "archived"],
        )


def _moves(queue: Sequence[WaitingView]) -> dict[str, list[str]]:
    """For each message that can be told before the one before it: the order that makes it so."""
    found: dict[str, list[str]] = {}
    for agent in {each.agent for each in queue}:
        wakes = [each.wake for each in queue if each.agent == agent and "move" in each.can]
        for place in range(1, len(wakes)):
            before, moved = wakes[place - 1 : place + 1]
            found[moved] = [*wakes[: place - 1], moved, before, *wakes[place + 1 :]]
    return found
