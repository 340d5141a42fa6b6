"""Home: what needs the person, what runs now, what sleeps and when it wakes, and the threads."""

import asyncio
from collections.abc import Mapping, Sequence

from starlette.requests import Request
from starlette.responses import Response

from clew.control.actor import Actor
from clew.control.agents import list_agents
from clew.control.doctor import examine_programs
from clew.control.overview import show_overview
from clew.control.projects import list_projects
from clew.control.runs import last_events
from clew.control.threads import list_threads
from clew.protocol.views import RunView, ThreadView
from clew.web.conversation import last_words
from clew.web.site import Site, actor_of

_KINDS = ("issue", "chat", "subject", "own")
_LINES = 30
"""Of a log, to say what its agent does now."""


def add(site: Site) -> None:
    @site.page("/")
    async def home(request: Request) -> Response:
        actor, asked = actor_of(request), request.query_params
        overview = await show_overview(site.services, actor)
        agents = [each for each in await list_agents(site.services, actor) if each.state != "archived"]
        chosen = {name: asked[name] for name in ("kind", "agent", "state", "only") if asked.get(name)}
        threads = await _threads(actor, chosen)
        everything = threads if not chosen else await _threads(actor, {})
        # For the page alone: its parts are read again at each change, and to look for programs takes a moment.
        new = not (overview.threads or overview.archived or chosen or asked.get("part"))
        return site.show(
            request,
            "home.html",
            programs=await examine_programs(site.services, actor) if new else None,
            overview=overview,
            threads=threads,
            titles={each.ref: each.title for each in (*everything, *overview.unread)},
            doing=await _doing(actor, overview.live),
            agents=agents,
            projects=await list_projects(site.services, actor),
            beats=sorted(
                (each for each in agents if each.heartbeat and each.heartbeat.next_at),
                key=lambda each: (each.heartbeat and each.heartbeat.next_at) or 0.0,
            ),
            kinds=_KINDS,
            chosen=chosen,
        )

    async def _doing(actor: Actor, runs: Sequence[RunView]) -> dict[str, str]:
        """What each run does now, by its id: the last line of its log."""
        logs = await asyncio.gather(*(last_events(site.services, actor, run.id, _LINES) for run in runs))
        return {run.id: last_words(log) for run, log in zip(runs, logs, strict=True)}

    async def _threads(actor: Actor, chosen: Mapping[str, str]) -> list[ThreadView]:
        """Those that the filter leaves, the pinned ones first."""
        only = chosen.get("only")
        state = chosen.get("state", None if only == "archived" else "open")

        async def found(only: str | None) -> tuple[ThreadView, ...]:
            kind, agent = chosen.get("kind"), chosen.get("agent")
            return await list_threads(site.services, actor, kind, state, agent, only=only)

        listed = await found(only)
        if only is None:
            # A pinned thread may be older than all that are listed.
            listed = tuple({each.id: each for each in (*await found("pinned"), *listed)}.values())
        return [each for each in listed if each.kind != "own" or "kind" in chosen or only in ("pinned", "archived")]
