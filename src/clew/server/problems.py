"""Errors of the API: the server's own faults, HTTP statuses, and every error as application/problem+json."""

import logging
import uuid
from collections.abc import Mapping, Sequence
from http import HTTPStatus

import orjson
from fastapi import FastAPI
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from clew.control.faults import BadRequest, Conflict, NotFound, Unavailable
from clew.ports.fault import Fault
from clew.server.misses import invalid_words, nothing_here, wrong_method


class ServerFault(Fault):
    code = "server"


class Foreign(ServerFault):
    """The request is for another host, or a browser sent it from another site's page."""

    code = "server:foreign"


class Unauthorized(ServerFault):
    code = "server:unauthorized"


class BadTicket(ServerFault):
    code = "server:ticket"


class BodyTooLarge(ServerFault):
    code = "server:body-too-large"


class NotJson(ServerFault):
    code = "server:not-json"


class WrongMediaType(ServerFault):
    code = "server:media-type"


class NotUnderstood(ServerFault):
    code = "server:not-understood"


MEDIA_TYPE = "application/problem+json"

_BY_KIND: Mapping[type[Fault], HTTPStatus] = {
    NotFound: HTTPStatus.NOT_FOUND,
    Conflict: HTTPStatus.CONFLICT,
    BadRequest: HTTPStatus.UNPROCESSABLE_ENTITY,
    Unavailable: HTTPStatus.SERVICE_UNAVAILABLE,
}

_NO_SUCH = "no-such-"

# By a fault's whole code, or by the part before the colon.
_STATUSES: Mapping[str, HTTPStatus] = {
    "source": HTTPStatus.UNPROCESSABLE_ENTITY,
    "git": HTTPStatus.SERVICE_UNAVAILABLE,
    "provider:unknown": HTTPStatus.UNPROCESSABLE_ENTITY,
    "daemon:no-such-home": HTTPStatus.UNPROCESSABLE_ENTITY,
    "program:bad-options": HTTPStatus.UNPROCESSABLE_ENTITY,
    "program:bad-arguments": HTTPStatus.UNPROCESSABLE_ENTITY,
    "program:malformed-id": HTTPStatus.UNPROCESSABLE_ENTITY,
    "program:too-slow": HTTPStatus.GATEWAY_TIMEOUT,
    "server:body-too-large": HTTPStatus.REQUEST_ENTITY_TOO_LARGE,
    "server:foreign": HTTPStatus.FORBIDDEN,
    "server:media-type": HTTPStatus.UNSUPPORTED_MEDIA_TYPE,
    "server:not-json": HTTPStatus.BAD_REQUEST,
    "server:not-understood": HTTPStatus.BAD_REQUEST,
    "server:ticket": HTTPStatus.FORBIDDEN,
    "server:unauthorized": HTTPStatus.UNAUTHORIZED,
    "store:bad-text": HTTPStatus.UNPROCESSABLE_ENTITY,
    "store:busy": HTTPStatus.SERVICE_UNAVAILABLE,
    "store:closed": HTTPStatus.SERVICE_UNAVAILABLE,
    "store:disk-full": HTTPStatus.INSUFFICIENT_STORAGE,
    "store:not-a-database": HTTPStatus.INTERNAL_SERVER_ERROR,
    "store:unreachable": HTTPStatus.SERVICE_UNAVAILABLE,
    "store:unreadable": HTTPStatus.INTERNAL_SERVER_ERROR,
}


def status_of(fault: Fault) -> HTTPStatus:
    """409 for a fault that is not listed: the request is valid but cannot be done in the current state."""
    for kind, status in _BY_KIND.items():
        if isinstance(fault, kind):
            return status
    first, _, rest = fault.code.partition(":")
    if rest.startswith(_NO_SUCH) and fault.code not in _STATUSES:
        return HTTPStatus.NOT_FOUND
    return _STATUSES.get(fault.code) or _STATUSES.get(first) or HTTPStatus.CONFLICT


class Problem(Response):
    media_type = MEDIA_TYPE

    def __init__(
        self,
        status: int,
        code: str,
        words: str,
        remedy: str = "",
        headers: Mapping[str, str] | None = None,
        errors: Sequence[Mapping[str, str]] = (),
    ) -> None:
        body: dict[str, object] = {
            "type": f"urn:clew:problem:{code}",
            "title": HTTPStatus(status).phrase,
            "status": status,
            "detail": _encodable(words),
            "code": code,
            "remedy": _encodable(remedy),
        }
        if errors:
            body["errors"] = [{name: _encodable(value) for name, value in each.items()} for each in errors]
        super().__init__(orjson.dumps(body), status, dict(headers or {}))


def problem_of(fault: Fault, headers: Mapping[str, str] | None = None) -> Problem:
    return Problem(status_of(fault), fault.code, fault.words, fault.remedy, headers)


def _encodable(text: str) -> str:
    """Replaces lone surrogates: a value of the request that the message quotes may contain them."""
    return text.encode("utf-8", "replace").decode("utf-8")


log = logging.getLogger("clew.server")

_MAX_ERRORS = 20


def answer_problems(app: FastAPI) -> None:
    app.exception_handler(Fault)(_fault)
    app.exception_handler(RequestValidationError)(_invalid)
    app.exception_handler(HTTPException)(_refused)
    app.add_middleware(_LastResort)


async def _fault(_request: Request, fault: Fault) -> Response:
    answer = problem_of(fault)
    if answer.status_code >= HTTPStatus.INTERNAL_SERVER_ERROR:
        log.warning("%s [%s]", fault, fault.code)
    return answer


async def _invalid(request: Request, fault: RequestValidationError) -> Response:
    """`detail` has every field and reason in one text, `errors` one by one. Values are not quoted: they may be
    secrets."""
    route = request.scope.get("route")
    errors = [
        {"field": ".".join(str(part) for part in each["loc"]), "words": invalid_words(route, each)}
        for each in fault.errors()
    ][:_MAX_ERRORS]
    # `limit`, not `query.limit`.
    named = (
        f"{each['field'].partition('.')[2] or each['field']}: {each['words']}.".replace("?.", "?") for each in errors
    )
    return Problem(
        HTTPStatus.UNPROCESSABLE_ENTITY,
        "ask:invalid",
        " ".join(named),
        "See the documentation of this call at /docs.",
        errors=errors,
    )


async def _refused(request: Request, fault: HTTPException) -> Response:
    status, headers = HTTPStatus(fault.status_code), fault.headers
    words, remedy = f"{fault.detail}.".replace("..", "."), ""
    if status is HTTPStatus.NOT_FOUND:
        words, remedy = nothing_here(request)
    if status is HTTPStatus.METHOD_NOT_ALLOWED:
        words, remedy, allowed = wrong_method(request)
        headers = {**(headers or {}), "Allow": allowed}
    code = f"server:{status.name.lower().replace('_', '-')}"
    return Problem(status, code, words, f"{remedy} See the documentation at /docs.".strip(), headers)


class _LastResort:
    """Answers an unexpected exception with an id; the details are in the server's log under that id."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        started = False

        async def send_watched(message: Message) -> None:
            nonlocal started
            started = True
            await send(message)

        try:
            await self._app(scope, receive, send_watched)
        except Exception:
            bug_id = uuid.uuid4().hex[:12]
            log.exception("bug %s at %s %s", bug_id, scope.get("method"), scope.get("path"))
            if started:
                # The status was sent already. Breaking off tells the client that the answer is incomplete.
                raise
            await _bug(bug_id)(scope, receive, send)


def _bug(bug_id: str) -> Problem:
    return Problem(
        HTTPStatus.INTERNAL_SERVER_ERROR,
        "server:bug",
        f"This is a bug in Clew. The server's log has the details under {bug_id}.",
        "Please report it with those lines. The request may have been carried out.",
    )
