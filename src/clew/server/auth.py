"""Authentication: who may send a request, and how a browser logs in.

A client sends the token. A browser exchanges a one-time ticket for a cookie that is signed with the token, so it
survives restarts and becomes invalid when it expires or the token is replaced.
"""

import hashlib
import hmac
import secrets
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Protocol
from urllib.parse import urlsplit

from fastapi import Request
from fastapi.responses import RedirectResponse, Response
from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from clew.control.actor import Person
from clew.ports.fault import Fault
from clew.server.problems import BadTicket, Foreign, Unauthorized, problem_of, status_of
from clew.server.router import Routes

TICKET_LASTS = 15 * 60.0
COOKIE_LASTS = 30 * 24 * 3600
"""Both in seconds."""
_MAX_TICKETS = 64


@dataclass(slots=True)
class Keys:
    token: str = field(repr=False)
    clock: Callable[[], float] = time.time
    person: str = "user"
    """Who uses the token. There is one token, so there is one person."""
    _tickets: dict[str, float] = field(default_factory=dict, repr=False)

    def is_token(self, text: str) -> bool:
        return hmac.compare_digest(text.encode("utf-8", "replace"), self.token.encode())

    def issue_ticket(self) -> tuple[str, float]:
        """Returns a ticket and when it expires. With `_MAX_TICKETS` open ones, the oldest is dropped."""
        now = self.clock()
        self._tickets = {digest: ends for digest, ends in self._tickets.items() if ends > now}
        while len(self._tickets) >= _MAX_TICKETS:
            del self._tickets[next(iter(self._tickets))]
        ticket, ends = secrets.token_urlsafe(32), now + TICKET_LASTS
        self._tickets[_digest(ticket)] = ends
        return ticket, ends

    def redeem(self, ticket: str) -> str | None:
        """Exchanges a ticket for a cookie. Works once."""
        ends = self._tickets.pop(_digest(ticket), None)
        if ends is None or ends <= self.clock():
            return None
        payload = f"{int(self.clock()) + COOKIE_LASTS}.{secrets.token_urlsafe(12)}"
        return f"{payload}.{self._sign(payload)}"

    def is_cookie(self, value: str) -> bool:
        payload, _, signature = value.rpartition(".")
        if not hmac.compare_digest(signature.encode("utf-8", "replace"), self._sign(payload).encode()):
            return False
        return int(payload.partition(".")[0]) > self.clock()

    def _sign(self, payload: str) -> str:
        signed = f"clew-cookie:{payload}".encode("utf-8", "replace")
        return hmac.new(self.token.encode(), signed, hashlib.sha256).hexdigest()


def _digest(ticket: str) -> str:
    """Tickets are stored by digest, so the time of the lookup reveals nothing about a ticket."""
    return hashlib.sha256(ticket.encode("utf-8", "replace")).hexdigest()


HEALTH = "/health"
ENTER = "/enter"
_OPEN = frozenset({HEALTH, ENTER, "/sw.js"})
_OPEN_BELOW = "/static/"
"""Need no token: a health check, the exchange of a ticket for a cookie, and how pages look, which the page needs that
says how to log in."""

_SAFE = frozenset({"GET", "HEAD", "OPTIONS", "TRACE"})
_OURS = frozenset({"same-origin", "none"})

HEADERS: Mapping[str, str] = {
    "cache-control": "no-store",
    "content-security-policy": "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "referrer-policy": "no-referrer",
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
}


@dataclass(frozen=True, slots=True)
class Bound:
    """The port the server listens on, and the addresses under which a client may address it. `public` is the one under
    which a proxy serves it, without a slash at its end; usually there is none."""

    port: int
    public: str = ""

    @property
    def origins(self) -> Mapping[str, str]:
        """The host names, and the origin that a page of each has."""
        names = ("127.0.0.1", "localhost", "[::1]")
        hosts = [f"{name}:{self.port}" for name in names]
        # A browser leaves out port 80.
        hosts += names if self.port == 80 else ()
        found = {host: f"http://{host}" for host in hosts}
        if self.public:
            public = urlsplit(self.public)
            found[public.netloc] = f"{public.scheme}://{public.netloc}"
        return found

    @property
    def prefix(self) -> str:
        """The path below which a proxy serves it; usually empty."""
        return urlsplit(self.public).path

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def cookie(self) -> str:
        """Browsers share cookies between the ports of a host, so the name contains the port."""
        return f"clew-{self.port}"


class Pages(Protocol):
    """The pages, as the server knows them."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None: ...

    def refusal(self, fault: Fault, status: int) -> Response:
        """A fault as a page."""
        ...


class Guard:
    """Middleware in front of every path, existing or not. It also keeps other sites' pages out: the Host, Origin and
    Sec-Fetch-Site headers of a browser must name this server, and no CORS header lets others read an answer."""

    def __init__(self, app: ASGIApp, keys: Keys, bound: Bound, pages: Pages) -> None:
        self._app = app
        self._keys = keys
        self._bound = bound
        self._pages = pages
        self._origins = bound.origins

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        if scope["type"] != "http":
            await send({"type": "websocket.close", "code": 1008})
            return

        async def send_guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in HEADERS.items():
                    headers.setdefault(name, value)
            await send(message)

        # A proxy may leave its prefix in the path, or take it away.
        prefix = self._bound.prefix
        if prefix and scope["path"].startswith(f"{prefix}/"):
            raw = (scope.get("raw_path") or scope["path"].encode()).removeprefix(prefix.encode())
            scope = {**scope, "path": scope["path"].removeprefix(prefix), "raw_path": raw}
        try:
            self._admit(scope)
            scope.setdefault("state", {})["actor"] = Person(self._keys.person)
        except Fault as fault:
            asked = {"www-authenticate": "Bearer"} if isinstance(fault, Unauthorized) else {}
            answer = self._pages.refusal(fault, status_of(fault)) if wants_page(scope) else problem_of(fault, asked)
            await answer(scope, receive, send_guarded)
        else:
            await self._app(scope, receive, send_guarded)

    def _admit(self, scope: Scope) -> None:
        headers = Headers(raw=scope["headers"])
        self._check_origin(headers)
        if scope["path"] in _OPEN or scope["path"].startswith(_OPEN_BELOW):
            return
        tokens = headers.getlist("authorization")
        if tokens:
            kind, _, token = tokens[0].partition(" ")
            if len(tokens) == 1 and kind.lower() == "bearer" and self._keys.is_token(token.strip()):
                return
            raise Unauthorized(
                "The token does not belong to this server.", "Use the token in the server's data directory."
            )
        if any(self._keys.is_cookie(value) for value in _cookies(headers, self._bound.cookie)):
            # Browsers send Origin or Sec-Fetch-Site with every change; a request with neither is not from one.
            if scope["method"] in _SAFE or headers.getlist("origin") or headers.getlist("sec-fetch-site"):
                return
            raise Foreign("A change with a cookie needs an Origin header.", "Use the token.")
        raise Unauthorized(
            "This needs the server's token.",
            "In a browser, use `clew open`. A program sends the data directory's token as `Authorization: Bearer …`.",
        )

    def _check_origin(self, headers: Headers) -> None:
        hosts = headers.getlist("host")
        if len(hosts) != 1 or hosts[0].lower() not in self._origins:
            raise Foreign(
                "The request is for another host.",
                f"Use {self._bound.address}; for a proxy, name its address with `clew up --public`.",
            )
        for origin in headers.getlist("origin"):
            if origin.lower() != self._origins[hosts[0].lower()]:
                raise Foreign("The request comes from another site's page.", f"Use {self._bound.address} itself.")
        for site in headers.getlist("sec-fetch-site"):
            if site.lower() not in _OURS:
                raise Foreign(
                    "The request comes from another site's page.", "Type the address into the browser yourself."
                )


def wants_page(scope: Scope) -> bool:
    """Whether a person's browser asks for a page, and not a program for an answer of the API."""
    return "text/html" in Headers(raw=scope["headers"]).get("accept", "")


def _cookies(headers: Headers, name: str) -> list[str]:
    """All values of that name: another server on this host may have set one too."""
    pairs = (pair.partition("=") for header in headers.getlist("cookie") for pair in header.split(";"))
    return [value.strip() for key, _, value in pairs if key.strip() == name]


@dataclass(frozen=True, slots=True)
class LinkView:
    """A login link for a browser. It works once."""

    link: str
    expires_at: float


def new_link(keys: Keys, bound: Bound) -> LinkView:
    ticket, ends = keys.issue_ticket()
    return LinkView(f"{bound.public or bound.address}{ENTER}?ticket={ticket}", ends)


def login(routes: Routes, keys: Keys, bound: Bound, pages: Pages) -> None:
    routes = routes.below("", "server")

    @routes.app.get(ENTER, include_in_schema=False)
    async def enter(request: Request) -> Response:
        cookie = keys.redeem(request.query_params.get("ticket", ""))
        if cookie is None:
            fault = BadTicket("The link was already used, or it has expired.", "Get a new one with `clew open`.")
            if wants_page(request.scope):
                return pages.refusal(fault, status_of(fault))
            raise fault
        # Redirected, so that the ticket is not left in the address bar.
        answer = RedirectResponse(_within(request.query_params.get("to", "/"), bound.prefix), status_code=303)
        answer.set_cookie(
            bound.cookie,
            cookie,
            max_age=COOKIE_LASTS,
            path=f"{bound.prefix}/",
            httponly=True,
            samesite="strict",
            secure=bound.public.startswith("https:"),
        )
        return answer

    @routes.post("/tickets", status_code=201)
    async def create_link() -> LinkView:
        """Create a link that logs in a browser on this machine. It works once, for 15 minutes."""
        return new_link(keys, bound)


def _within(path: str, prefix: str) -> str:
    """A page of this server: a link must not lead elsewhere."""
    is_ours = path.startswith("/") and not path.startswith(("//", "/\\"))
    return f"{prefix}{path if is_ours else '/'}"
