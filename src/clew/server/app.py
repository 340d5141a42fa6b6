"""The ASGI application: every route, behind authentication and body checks."""

from dataclasses import dataclass

from fastapi import FastAPI
from starlette.types import ASGIApp, Receive, Scope, Send

from clew import __version__
from clew.control.services import Services
from clew.server.auth import ENTER, HEALTH, Bound, Guard, Keys, Pages, login
from clew.server.bodies import Bodies
from clew.server.live import Live, live
from clew.server.openapi import describe, show_reference
from clew.server.problems import answer_problems
from clew.server.router import BASE, Routes
from clew.server.routes import add_routes

_ABOUT = """\
A control plane for coding agents. Every call needs the token in the data directory, sent as `Authorization: Bearer …`.
Times are seconds since the epoch. Errors are application/problem+json: `code` is for programs, `detail` and `remedy`
are for people.
"""


@dataclass(frozen=True, slots=True)
class HealthView:
    ready: bool
    version: str


def make_app(services: Services, keys: Keys, bound: Bound, clients: Live, pages: Pages) -> ASGIApp:
    return guarded(make_api(services, keys, bound, clients, pages), keys, bound, pages)


def guarded(api: FastAPI, keys: Keys, bound: Bound, pages: Pages) -> ASGIApp:
    """Wraps the API and the pages in the middleware that every request passes."""
    return Guard(Bodies(_Front(api, pages)), keys, bound, pages)


class _Front:
    """The API has its own paths; the pages have all others."""

    _API = ("/api/", "/docs", HEALTH, ENTER)

    def __init__(self, api: ASGIApp, pages: ASGIApp) -> None:
        self._api, self._pages = api, pages

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        is_api = scope["type"] != "http" or scope["path"].startswith(self._API)
        await (self._api if is_api else self._pages)(scope, receive, send)


def make_api(services: Services, keys: Keys, bound: Bound, clients: Live, pages: Pages) -> FastAPI:
    app = FastAPI(
        title="Clew",
        version=__version__,
        description=_ABOUT,
        openapi_url=f"{BASE}/openapi.json",
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,
        # Send no telemetry, whatever environment variables are set.
        telemetry={
            "tracing": False,
            "metrics": False,
            "logs": False,
            "operation_spans": False,
            "auto_configure": False,
        },
    )
    answer_problems(app)
    describe(app, open_paths=(HEALTH,))
    show_reference(app)

    @app.get(HEALTH, tags=["server"])
    async def health() -> HealthView:
        """Health check. The only call that needs no token."""
        return HealthView(True, __version__)

    routes = Routes(app, "server")
    add_routes(routes, services)
    live(routes, clients)
    login(routes, keys, bound, pages)
    return app
