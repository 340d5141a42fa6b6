"""Runs: the newest first, with where the time of each went."""

import asyncio
import time

from starlette.requests import Request
from starlette.responses import Response

from clew.control.agents import list_agents
from clew.control.runs import list_events, list_runs
from clew.kernel import RunState
from clew.protocol.views import RunView
from clew.web.site import Site, actor_of
from clew.web.timeline import bars_of, opened_at, spans_of

SCREEN = 30
_FIRST_LINES = 20
"""Of a log, which has when its session was opened."""


def add(site: Site) -> None:
    @site.page("/runs")
    async def runs(request: Request) -> Response:
        """Filtered by `agent`, `state` and `thread`; with `before`, those older than that run."""
        actor, query = actor_of(request), request.query_params
        chosen = {name: query.get(name, "").strip() or None for name in ("agent", "state", "thread", "before")}
        found = await list_runs(
            site.services, actor, chosen["thread"], chosen["agent"], chosen["state"], SCREEN + 1, chosen["before"]
        )
        shown, now = found[:SCREEN], time.time()
        opened = await asyncio.gather(*(_opened(request, run) for run in shown))
        bars, axis = bars_of([(run, spans_of(run, at, now)) for run, at in zip(shown, opened, strict=True)])
        return site.show(
            request,
            "runs.html",
            bars=bars,
            axis=axis,
            older=shown[-1].ref if len(found) > SCREEN else None,
            chosen=chosen,
            kept={name: text for name, text in chosen.items() if text and name != "before"},
            agents=[agent.name for agent in await list_agents(site.services, actor, removed=True)],
            states=["held", *RunState],
        )

    async def _opened(request: Request, run: RunView) -> float | None:
        if run.started_at is None:
            return None
        return opened_at(await list_events(site.services, actor_of(request), run.id, limit=_FIRST_LINES))
