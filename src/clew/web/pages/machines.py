"""Machines: each provider in each home that a machine registered, and the doctor's checks."""

from starlette.requests import Request
from starlette.responses import Response

from clew.control.doctor import examine, list_runtimes
from clew.web.site import Site, actor_of


def add(site: Site) -> None:
    @site.page("/machines")
    async def machines(request: Request) -> Response:
        """With `check`, what the doctor finds: it starts each program once, so it is only asked when it is wanted."""
        actor, query = actor_of(request), request.query_params
        asked = query.get("part") == "checks" or "check" in query
        checks = await examine(site.services, actor) if asked else None
        runtimes = await list_runtimes(site.services, actor)
        names = sorted({each.machine for each in runtimes})
        by_machine = {name: [each for each in runtimes if each.machine == name] for name in names}
        return site.show(request, "machines.html", machines=by_machine, checks=checks)
