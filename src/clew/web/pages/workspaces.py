"""Workspaces: the directories that agents work in, what they hold, and which of them are not needed any more."""

from starlette.requests import Request
from starlette.responses import Response

from clew.control.workspaces import clean_workspaces, list_workspaces
from clew.ports.fault import Fault
from clew.web.site import Site, actor_of


def add(site: Site) -> None:
    @site.page("/workspaces")
    async def workspaces(request: Request) -> Response:
        """With `dry`, what cleaning would remove and what it would keep, and why. Nothing is removed here."""
        actor = actor_of(request)
        try:
            found, absent = await list_workspaces(site.services, actor), None
        except Fault as fault:
            found, absent = (), fault
        dry = "dry" in request.query_params and absent is None
        plan = await clean_workspaces(site.services, actor, dry=True) if dry else None
        largest = sorted(found, key=lambda each: each.bytes, reverse=True)
        return site.show(request, "workspaces.html", workspaces=largest, plan=plan, absent=absent)
