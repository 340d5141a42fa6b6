"""The pages as one application. It answers every path that is not the API's."""

from collections.abc import Callable

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import FileResponse, Response
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles
from starlette.types import Receive, Scope, Send

from clew.control.services import Services
from clew.ports.fault import Fault
from clew.web.pages import (
    agents,
    changes,
    home,
    lineage,
    machines,
    marks,
    run,
    runs,
    say,
    search,
    sessions,
    settings,
    thread,
    usage,
    workspaces,
)
from clew.web.site import HEADERS, HERE, Site

_STATIC = HERE / "static"
_PAGES = (
    home.add,
    thread.add,
    say.add,
    marks.add,
    changes.add,
    lineage.add,
    run.add,
    runs.add,
    agents.add,
    machines.add,
    search.add,
    sessions.add,
    workspaces.add,
    usage.add,
    settings.add,
)


class NoSuchPage(Fault):
    code = "web:no-such-page"


class Pages:
    """All pages, and how a refusal of the server looks to a person in a browser."""

    def __init__(self, services: Services, prefix: str, status_of: Callable[[Fault], int]) -> None:
        self._site = Site(services, prefix, status_of)
        for add in _PAGES:
            add(self._site)
        self._app = Starlette(
            routes=[
                *self._site.routes,
                *self._site.actions,
                Mount("/static", _Static(directory=_STATIC)),
                Route("/sw.js", _worker),
            ],
            exception_handlers={HTTPException: self._missing},
        )

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self._app(scope, receive, send)

    def refusal(self, fault: Fault, status: int) -> Response:
        return self._site.error(fault, status)

    async def _missing(self, request: Request, fault: Exception) -> Response:
        status = fault.status_code if isinstance(fault, HTTPException) else 404
        words = f"There is no page {request.url.path[:80]}."
        return self._site.error(NoSuchPage(words, "The menu has all of them."), status)


class _Static(StaticFiles):
    """Checked for changes at each use, so that a new version is used at once."""

    def file_response(self, *args: object, **options: object) -> Response:
        answer = super().file_response(*args, **options)  # type: ignore[arg-type]
        # A worker works under the policy of its own file.
        answer.headers.update(HEADERS)
        return answer


async def _worker(_: Request) -> Response:
    # At the top, because a service worker sees only requests below its own address.
    return FileResponse(_STATIC / "sw.js", headers=HEADERS)
