"""What all pages share: templates and their parts, addresses, headers, and the page that an error gets."""

import logging
import time
import uuid
from collections.abc import Awaitable, Callable, Mapping
from functools import cached_property, wraps
from http import HTTPStatus
from pathlib import Path
from typing import TYPE_CHECKING, Any

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response
from starlette.routing import Route

from clew import __version__
from clew.control.actor import Actor
from clew.control.services import Services
from clew.ports.fault import Fault

if TYPE_CHECKING:
    from jinja2 import Environment

Endpoint = Callable[[Request], Awaitable[Response]]

log = logging.getLogger("clew.web")

HERE = Path(__file__).parent

POLICY = "; ".join(
    (
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
        "img-src 'self'",
        "connect-src 'self'",
        "worker-src 'self'",
        "manifest-src 'self'",
        "form-action 'self'",
        "base-uri 'none'",
        "frame-ancestors 'none'",
        "require-trusted-types-for 'script'",
        "trusted-types clew",
    )
)
HEADERS: Mapping[str, str] = {
    "content-security-policy": POLICY,
    # Not no-store: with it a browser keeps no page for its back button.
    "cache-control": "private, no-cache",
    # Not no-referrer: with it a browser sends `Origin: null` with a form, which looks like another site's.
    "referrer-policy": "same-origin",
}


class Bug(Fault):
    code = "web:bug"


class Site:
    """`prefix` is the path below which a proxy serves Clew, usually empty. `status_of` is the server's own rule for
    the HTTP status of a fault."""

    def __init__(self, services: Services, prefix: str, status_of: Callable[[Fault], int]) -> None:
        self.services = services
        self.prefix = prefix
        self._status_of = status_of
        self.routes: list[Route] = []
        self.actions: list[Route] = []

    def page(self, path: str) -> Callable[[Endpoint], Endpoint]:
        """Declares a page. What it raises is answered with an error page."""

        def add(endpoint: Endpoint) -> Endpoint:
            self.routes.append(Route(path, self._guarded(endpoint), methods=["GET"]))
            return endpoint

        return add

    def action(self, path: str) -> Callable[[Endpoint], Endpoint]:
        """Declares what a form does in a browser without JavaScript. Of all forms, only that of a message has fields
        (`clew.web.multipart`): the server takes no other body but JSON."""

        def add(endpoint: Endpoint) -> Endpoint:
            self.actions.append(Route(path, self._guarded(endpoint), methods=["POST"]))
            return endpoint

        return add

    def _guarded(self, endpoint: Endpoint) -> Endpoint:
        @wraps(endpoint)
        async def guarded(request: Request) -> Response:
            try:
                return await endpoint(request)
            except Fault as fault:
                return self.error(fault, self._status_of(fault))
            except HTTPException:
                raise
            except Exception:
                bug = uuid.uuid4().hex[:12]
                log.exception("bug %s at %s", bug, request.url.path)
                words = f"This is a bug in Clew. The server's log has the details under {bug}."
                return self.error(Bug(words, "Please report it with those lines."), 500)

        return guarded

    def show(self, request: Request, template: str, status: int = 200, **values: Any) -> Response:
        """A page, or with `?part=NAME` that block of its template, for a page that is open already."""
        found = self._templates.get_template(template)
        known = {**values, "path": request.url.path.removeprefix(self.prefix), "query": request.query_params}
        known |= {"now": time.time(), "request_actor": request.state.actor}
        part = request.query_params.get("part")
        if part is None:
            return HTMLResponse(found.render(known), status, HEADERS)
        block = found.blocks.get(part)
        if block is None:
            raise HTTPException(404)
        return HTMLResponse("".join(block(found.new_context(known))), status, HEADERS)

    def error(self, fault: Fault, status: int) -> Response:
        found = self._templates.get_template("error.html")
        title = HTTPStatus(status).phrase
        body = found.render(fault=fault, title=title, status=status, path="", now=time.time())
        return HTMLResponse(body, status, HEADERS)

    def address(self, path: str) -> str:
        return f"{self.prefix}{path}"

    @cached_property
    def _templates(self) -> "Environment":
        # Imported late: a server that nobody looks at needs no templates.
        from clew.web.template_engine import environment  # noqa: PLC0415

        return environment(HERE / "templates", self.address, __version__)


def actor_of(request: Request) -> Actor:
    """Who asks; the server has checked it."""
    actor: Actor = request.state.actor
    return actor


def number(request: Request, name: str) -> int | None:
    """A number of the query; what is none counts as not given."""
    text = request.query_params.get(name, "")
    return int(text) if text.isascii() and text.isdigit() and len(text) < 10 else None
