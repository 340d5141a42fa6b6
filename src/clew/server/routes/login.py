"""Browser login: a link that works once sets the cookie."""

from dataclasses import dataclass

from fastapi import Request
from fastapi.responses import RedirectResponse, Response

from clew.server.auth import COOKIE_LASTS, ENTER, Bound, Keys
from clew.server.problems import BadTicket
from clew.server.router import Routes


@dataclass(frozen=True, slots=True)
class LinkView:
    """A login link for a browser. It works once."""

    link: str
    expires_at: float


def new_link(keys: Keys, bound: Bound) -> LinkView:
    ticket, ends = keys.issue_ticket()
    return LinkView(f"{bound.address}{ENTER}?ticket={ticket}", ends)


def login(routes: Routes, keys: Keys, bound: Bound) -> None:
    routes = routes.below("", "server")

    @routes.app.get(ENTER, include_in_schema=False)
    async def enter(request: Request) -> Response:
        cookie = keys.redeem(request.query_params.get("ticket", ""))
        if cookie is None:
            raise BadTicket("The link was already used, or it has expired.", "Get a new one with `clew up --link`.")
        # Redirected, so that the ticket is not left in the address bar.
        answer = RedirectResponse("/", status_code=303)
        answer.set_cookie(bound.cookie, cookie, max_age=COOKIE_LASTS, path="/", httponly=True, samesite="strict")
        return answer

    @routes.post("/tickets", status_code=201)
    async def create_link() -> LinkView:
        """Create a link that logs in a browser on this machine. It works once, for 15 minutes."""
        return new_link(keys, bound)
