"""Marks of a thread, set by forms in a browser without JavaScript. With it, the same forms call the API."""

from urllib.parse import quote, urlencode

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from clew.control.marks import archive_thread, mark_read, mark_unread, pin_thread, unarchive_thread, unpin_thread
from clew.protocol.requests import ReadUpTo
from clew.web.site import Site, actor_of, number

_MARKS = {
    "unread": mark_unread,
    "pin": pin_thread,
    "unpin": unpin_thread,
    "archive": archive_thread,
    "unarchive": unarchive_thread,
}


def add(site: Site) -> None:
    @site.action("/threads/{ref}/marks/{mark}")
    async def mark(request: Request) -> Response:
        """With `home`, back to the home page, to the threads that `only` names; otherwise to the thread."""
        actor, ref, name = actor_of(request), request.path_params["ref"], request.path_params["mark"]
        if name == "read":
            await mark_read(site.services, actor, ref, ReadUpTo(number(request, "entry")))
        elif name in _MARKS:
            await _MARKS[name](site.services, actor, ref)
        else:
            raise HTTPException(404)
        only = request.query_params.get("only")
        home = f"/?{urlencode({'only': only})}" if only else "/"
        back = home if "home" in request.query_params else f"/threads/{quote(ref, safe='')}"
        return RedirectResponse(site.address(back), 303)
