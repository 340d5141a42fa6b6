"""The ASGI application: every route, behind authentication and body checks."""

from dataclasses import dataclass

from fastapi import FastAPI
from fastapi.responses import RedirectResponse
from starlette.types import ASGIApp

from clew import __version__
from clew.control.services import Services
from clew.server.auth import HEALTH, Bound, Guard, Keys, login
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


def make_app(services: Services, keys: Keys, bound: Bound, clients: Live) -> ASGIApp:
    return guarded(make_api(services, keys, bound, clients), keys, bound)


def guarded(api: FastAPI, keys: Keys, bound: Bound) -> ASGIApp:
    """Wraps the API in the middleware that every request passes."""
    return Guard(Bodies(api), keys, bound)


def make_api(services: Services, keys: Keys, bound: Bound, clients: Live) -> FastAPI:
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

    @app.get("/", include_in_schema=False)
    async def first() -> RedirectResponse:
        return RedirectResponse("/docs", status_code=303)

    routes = Routes(app, "server")
    add_routes(routes, services)
    live(routes, clients)
    login(routes, keys, bound)
    return app
