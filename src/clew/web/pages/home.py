"""Home: what needs the person, what runs now, what sleeps and when it wakes, and the threads."""

from starlette.requests import Request
from starlette.responses import Response

from clew.control.agents import list_agents
from clew.control.doctor import examine_programs
from clew.control.overview import show_overview
from clew.control.projects import list_projects
from clew.control.threads import list_threads
from clew.web.site import Site, actor_of

_KINDS = ("issue", "chat", "subject", "own")


def add(site: Site) -> None:
    @site.page("/")
    async def home(request: Request) -> Response:
        actor, asked = actor_of(request), request.query_params
        overview = await show_overview(site.services, actor)
        agents = [each for each in await list_agents(site.services, actor) if each.state != "archived"]
        chosen = {name: asked[name] for name in ("kind", "agent", "state") if asked.get(name)}
        threads = await list_threads(
            site.services, actor, chosen.get("kind"), chosen.get("state", "open"), chosen.get("agent")
        )
        # For the page alone: its parts are read again at each change, and to look for programs takes a moment.
        new = not (overview.threads or chosen or asked.get("part"))
        return site.show(
            request,
            "home.html",
            programs=await examine_programs(site.services, actor) if new else None,
            overview=overview,
            threads=[each for each in threads if each.kind != "own" or chosen.get("kind") == "own"],
            agents=agents,
            projects=await list_projects(site.services, actor),
            beats=sorted(
                (each for each in agents if each.heartbeat and each.heartbeat.next_at),
                key=lambda each: (each.heartbeat and each.heartbeat.next_at) or 0.0,
            ),
            kinds=_KINDS,
            chosen=chosen,
        )
