"""Coming in: a link that is good once becomes the cookie of a browser."""

from dataclasses import dataclass

from fastapi import Request
from fastapi.responses import RedirectResponse, Response

from clew.server.calls import Calls
from clew.server.faults import BadTicket
from clew.server.guard import ENTER, Bound
from clew.server.keys import COOKIE_LASTS, Keys


@dataclass(frozen=True, slots=True)
class LinkView:
    """A link for a browser; it is good once."""

    link: str
    expires_at: float


def link_of(keys: Keys, bound: Bound) -> LinkView:
    ticket, ends = keys.issue_ticket()
    return LinkView(f"{bound.address}{ENTER}?ticket={ticket}", ends)


def entering(calls: Calls, keys: Keys, bound: Bound) -> None:
    calls = calls.below("", "server")

    @calls.app.get(ENTER, include_in_schema=False)
    async def enter(request: Request) -> Response:
        cookie = keys.redeem(request.query_params.get("ticket", ""))
        if cookie is None:
            raise BadTicket("The link was used before, or it is too old.", "Ask for another with `clew up --link`.")
        # The address that is shown afterwards has no ticket in it.
        answer = RedirectResponse("/", status_code=303)
        answer.set_cookie(bound.cookie, cookie, max_age=COOKIE_LASTS, path="/", httponly=True, samesite="strict")
        return answer

    @calls.post("/tickets", status_code=201)
    async def new_link() -> LinkView:
        """A link with which a browser of this machine comes in, once."""
        return link_of(keys, bound)
