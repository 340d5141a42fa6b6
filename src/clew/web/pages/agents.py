"""Agents: who works, what is installed, and everything that can be set for one."""

from collections.abc import Mapping

from starlette.requests import Request
from starlette.responses import Response

from clew.control.agents import expressible_modes, list_agents, show_agent
from clew.control.doctor import examine_programs, list_machines, list_providers
from clew.control.logins import show_login
from clew.control.runs import list_runs
from clew.ports.fault import Fault
from clew.web.modes import meanings
from clew.web.site import Site, actor_of

_RUNS = 5


def add(site: Site) -> None:
    @site.page("/agents")
    async def agents(request: Request) -> Response:
        actor = actor_of(request)
        asked = request.query_params.get("part") == "installed"
        found = await examine_programs(site.services, actor) if asked else ()
        listed = await list_agents(site.services, actor, removed="removed" in request.query_params)
        return site.show(request, "agents.html", agents=listed, programs=found)

    @site.page("/agents/new")
    async def new_agent(request: Request) -> Response:
        """With `provider`, its modes are explained; `name` fills the name in."""
        actor, query = actor_of(request), request.query_params
        programs = await examine_programs(site.services, actor)
        providers = await list_providers(site.services, actor)
        ready = [check.name for check in programs if check.state in ("ok", "warning") and check.name != "guide"]
        chosen = query.get("provider") or (ready[0] if ready else "guide")
        return site.show(
            request,
            "agent_new.html",
            programs=programs,
            providers=providers,
            machines=await list_machines(site.services, actor),
            chosen=chosen,
            modes=meanings(chosen),
        )

    @site.page("/agents/{name}")
    async def agent(request: Request) -> Response:
        actor, name = actor_of(request), request.path_params["name"]
        found = await show_agent(site.services, actor, name)
        try:
            login = (await show_login(site.services, actor, name)).words
        except Fault as fault:
            login = fault.words
        return site.show(
            request,
            "agent.html",
            agent=found,
            login=login,
            modes=meanings(found.provider, await expressible_modes(site.services, actor, name)),
            providers=await list_providers(site.services, actor),
            runs=await list_runs(site.services, actor, agent=name, limit=_RUNS),
            pairs=_pairs,
        )


def _pairs(values: Mapping[str, str]) -> str:
    """As a form has them: NAME=value, one a line."""
    return "\n".join(f"{name}={text}" for name, text in values.items())
