"""The guard: it stands before every path there is, those that are not there included.

A page of another site cannot speak to the server through a person's browser: what a browser sends names the host it
was for and the site it is from, and both must be ours. Nothing says to a browser that others may read the answers.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from starlette.datastructures import MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from clew.control.actor import Person
from clew.ports.fault import Fault
from clew.server.faults import Foreign, Unauthorized
from clew.server.keys import Keys
from clew.server.problem import problem_of

HEALTH = "/health"
ENTER = "/enter"
_OPEN = frozenset({HEALTH, ENTER})
"""Without a key: one says that the server is there, the other takes a ticket for a key."""

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
    """Where the server listens: the names by which its own machine may call it, and no other machine."""

    port: int

    @property
    def hosts(self) -> frozenset[str]:
        names = ("127.0.0.1", "localhost", "[::1]")
        # A browser leaves out the port that is usual.
        bare = names if self.port == 80 else ()
        return frozenset((*(f"{name}:{self.port}" for name in names), *bare))

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def cookie(self) -> str:
        """A browser keeps cookies by host, whatever the port: each server has its own name for it."""
        return f"clew-{self.port}"


class Guard:
    def __init__(self, app: ASGIApp, keys: Keys, bound: Bound) -> None:
        self._app = app
        self._keys = keys
        self._bound = bound
        self._hosts = bound.hosts

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

        try:
            self._admit(scope)
            scope.setdefault("state", {})["actor"] = Person(self._keys.person)
        except Unauthorized as fault:
            await problem_of(fault, {"www-authenticate": "Bearer"})(scope, receive, send_guarded)
        except Fault as fault:
            await problem_of(fault)(scope, receive, send_guarded)
        else:
            await self._app(scope, receive, send_guarded)

    def _admit(self, scope: Scope) -> None:
        said = _Said(scope["headers"])
        self._from_here(said)
        if scope["path"] in _OPEN:
            return
        keys = said.all("authorization")
        if keys:
            kind, _, token = keys[0].partition(" ")
            if len(keys) == 1 and kind.lower() == "bearer" and self._keys.is_token(token.strip()):
                return
            raise Unauthorized("The token is not this server's.", "Use the one in its data directory.")
        if any(self._keys.is_cookie(value) for value in said.cookies(self._bound.cookie)):
            # A browser says where a change comes from; what has its cookie and does not say so is none.
            if scope["method"] in _SAFE or said.all("origin") or said.all("sec-fetch-site"):
                return
            raise Foreign("A change that is asked for with a cookie must say where it is from.", "Use the token.")
        raise Unauthorized(
            "This needs the server's token.",
            "Send `Authorization: Bearer …` with the token of its data directory, or open the link of `clew up`.",
        )

    def _from_here(self, said: "_Said") -> None:
        hosts = said.all("host")
        if len(hosts) != 1 or hosts[0].lower() not in self._hosts:
            raise Foreign("The request is for another host.", f"Use {self._bound.address}.")
        for origin in said.all("origin"):
            if origin.lower() != f"http://{hosts[0].lower()}":
                raise Foreign("The request comes from another site's page.", f"Use {self._bound.address} itself.")
        for site in said.all("sec-fetch-site"):
            if site.lower() not in _OURS:
                raise Foreign(
                    "The request comes from another site's page.", "Type the address into the browser yourself."
                )


class _Said:
    def __init__(self, headers: Iterable[tuple[bytes, bytes]]) -> None:
        self._headers = tuple(headers)

    def all(self, name: str) -> list[str]:
        wanted = name.encode()
        return [value.decode("latin-1") for key, value in self._headers if key.lower() == wanted]

    def cookies(self, name: str) -> list[str]:
        """Every value under that name: another server of this host may have put one of its own beside ours."""
        pairs = (pair.partition("=") for header in self.all("cookie") for pair in header.split(";"))
        return [value.strip() for key, _, value in pairs if key.strip() == name]
