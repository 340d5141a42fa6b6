"""The lineage of a thread: its sessions over time, what each has seen, and where continuity broke."""

from starlette.requests import Request
from starlette.responses import Response

from clew.control.lineage import show_lineage
from clew.control.threads import show_thread
from clew.web.lineage import BAR, draw
from clew.web.site import Site, actor_of


def add(site: Site) -> None:
    @site.page("/threads/{ref}/lineage")
    async def lineage(request: Request) -> Response:
        actor, ref = actor_of(request), request.path_params["ref"]
        page = await show_thread(site.services, actor, ref, limit=1)
        view = await show_lineage(site.services, actor, ref)
        return site.show(request, "lineage.html", page=page, more=view.more, drawing=draw(view), bar=BAR)
