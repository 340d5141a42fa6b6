"""Search: what was written in journals, titles and logs, by its words."""

from starlette.requests import Request
from starlette.responses import Response

from clew.control.search import search
from clew.web.site import Site, actor_of

SCREEN = 30


def add(site: Site) -> None:
    @site.page("/search")
    async def found(request: Request) -> Response:
        """With `thread`, only there; with `before`, results older than that one."""
        asked = {name: request.query_params.get(name, "").strip() or None for name in ("thread", "before")}
        typed = request.query_params.get("q", "").strip()
        page = None
        if typed:
            page = await search(
                site.services,
                actor_of(request),
                typed,
                thread=asked["thread"],
                limit=SCREEN,
                before=asked["before"],
            )
        return site.show(request, "search.html", typed=typed, page=page, thread=asked["thread"])
