"""The application: every call of the API behind its guard."""

from dataclasses import dataclass

from fastapi import FastAPI
from fastapi.responses import RedirectResponse
from starlette.types import ASGIApp

from clew import __version__
from clew.control.services import Services
from clew.server.bodies import Bodies
from clew.server.calls import BASE, Calls
from clew.server.describing import describe
from clew.server.entering import entering
from clew.server.guard import HEALTH, Bound, Guard
from clew.server.handlers import answer_problems
from clew.server.keys import Keys
from clew.server.live import Live, live
from clew.server.reference import show_reference
from clew.server.routes.agents import agents
from clew.server.routes.approvals import approvals
from clew.server.routes.machine import machine
from clew.server.routes.projects import projects
from clew.server.routes.runs import runs
from clew.server.routes.threads import threads
from clew.server.routes.wakes import wakes

_ABOUT = """\
The control plane of coding agents. Every call needs the token of the data directory, as `Authorization: Bearer …`.
Times are seconds since the epoch. What goes wrong is application/problem+json: `code` is for programs, `detail` and
`remedy` are for people.
"""


@dataclass(frozen=True, slots=True)
class HealthView:
    ready: bool
    version: str


def make_app(services: Services, keys: Keys, bound: Bound, clients: Live) -> ASGIApp:
    return guarded(make_api(services, keys, bound, clients), keys, bound)


def guarded(api: FastAPI, keys: Keys, bound: Bound) -> ASGIApp:
    """Nothing reaches the calls but through these."""
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
        # Nothing is sent to anybody, whatever the environment says.
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
        """Whether the server is there. This alone needs no token."""
        return HealthView(True, __version__)

    @app.get("/", include_in_schema=False)
    async def first() -> RedirectResponse:
        return RedirectResponse("/docs", status_code=303)

    calls = Calls(app, "server")
    for put in (agents, projects, threads, wakes, runs, approvals, machine):
        put(calls, services)
    live(calls, clients)
    entering(calls, keys, bound)
    return app
