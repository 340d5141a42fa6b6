"""Problems: what went wrong as application/problem+json, with a status that fits."""

from collections.abc import Mapping, Sequence
from http import HTTPStatus

import orjson
from starlette.responses import Response

from clew.control.faults import BadRequest, Conflict, NotFound, Unavailable
from clew.ports.fault import Fault

MEDIA_TYPE = "application/problem+json"

_BY_KIND: Mapping[type[Fault], HTTPStatus] = {
    NotFound: HTTPStatus.NOT_FOUND,
    Conflict: HTTPStatus.CONFLICT,
    BadRequest: HTTPStatus.UNPROCESSABLE_ENTITY,
    Unavailable: HTTPStatus.SERVICE_UNAVAILABLE,
}

_NO_SUCH = "no-such-"

# By the whole code of a fault of another part, or by its first word.
_STATUSES: Mapping[str, HTTPStatus] = {
    "source": HTTPStatus.UNPROCESSABLE_ENTITY,
    "git": HTTPStatus.SERVICE_UNAVAILABLE,
    "provider:unknown": HTTPStatus.UNPROCESSABLE_ENTITY,
    "program:bad-options": HTTPStatus.UNPROCESSABLE_ENTITY,
    "program:bad-arguments": HTTPStatus.UNPROCESSABLE_ENTITY,
    "program:malformed-id": HTTPStatus.UNPROCESSABLE_ENTITY,
    "program:too-slow": HTTPStatus.GATEWAY_TIMEOUT,
    "server:body-too-large": HTTPStatus.REQUEST_ENTITY_TOO_LARGE,
    "server:busy": HTTPStatus.SERVICE_UNAVAILABLE,
    "server:foreign": HTTPStatus.FORBIDDEN,
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
    """One that is not named here says that what was asked cannot be done as things are."""
    for kind, status in _BY_KIND.items():
        if isinstance(fault, kind):
            return status
    first, _, rest = fault.code.partition(":")
    if rest.startswith(_NO_SUCH):
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
        said: dict[str, object] = {
            "type": f"urn:clew:problem:{code}",
            "title": HTTPStatus(status).phrase,
            "status": status,
            "detail": _sayable(words),
            "code": code,
            "remedy": _sayable(remedy),
        }
        if errors:
            said["errors"] = [{name: _sayable(value) for name, value in each.items()} for each in errors]
        super().__init__(orjson.dumps(said), status, dict(headers or {}))


def problem_of(fault: Fault, headers: Mapping[str, str] | None = None) -> Problem:
    return Problem(status_of(fault), fault.code, fault.words, fault.remedy, headers)


def _sayable(text: str) -> str:
    """What was asked may be repeated in an answer; half a character of it cannot be sent."""
    return text.encode("utf-8", "replace").decode("utf-8")
