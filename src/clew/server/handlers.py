"""Whatever a request comes to, it is answered in one form."""

import logging
import uuid
from http import HTTPStatus

from fastapi import FastAPI
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from clew.ports.fault import Fault
from clew.server.problem import Problem, problem_of

log = logging.getLogger("clew.server")

_SHOWN = 20


def answer_problems(app: FastAPI) -> None:
    app.exception_handler(Fault)(_fault)
    app.exception_handler(RequestValidationError)(_invalid)
    app.exception_handler(HTTPException)(_refused)
    app.add_middleware(LastResort)


async def _fault(_request: Request, fault: Fault) -> Response:
    answer = problem_of(fault)
    if answer.status_code >= HTTPStatus.INTERNAL_SERVER_ERROR:
        log.warning("%s [%s]", fault, fault.code)
    return answer


async def _invalid(_request: Request, fault: RequestValidationError) -> Response:
    """Which fields, and why: all in `detail`, and one by one for programs. What was sent is not repeated: it may hold
    secrets."""
    errors = [
        {"field": ".".join(str(part) for part in each["loc"]), "words": str(each["msg"])} for each in fault.errors()
    ][:_SHOWN]
    # A person asked for a limit, not for a part of a query.
    named = (f"{each['field'].partition('.')[2] or each['field']}: {each['words']}." for each in errors)
    return Problem(
        HTTPStatus.UNPROCESSABLE_ENTITY,
        "ask:invalid",
        " ".join(named),
        "Send what the documentation of this call says.",
        errors=errors,
    )


async def _refused(_request: Request, fault: HTTPException) -> Response:
    status = HTTPStatus(fault.status_code)
    words = {
        HTTPStatus.NOT_FOUND: "There is nothing at this address.",
        HTTPStatus.METHOD_NOT_ALLOWED: "This address does not take that method.",
    }.get(status, f"{fault.detail}.".replace("..", "."))
    code = f"server:{status.name.lower().replace('_', '-')}"
    return Problem(status, code, words, "See the documentation at /docs.", fault.headers)


class LastResort:
    """What was expected nowhere is a mistake of ours. The answer's id leads to its details, which stay in the log."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        begun = False

        async def watched(message: Message) -> None:
            nonlocal begun
            begun = True
            await send(message)

        try:
            await self._app(scope, receive, watched)
        except Exception:
            mark = uuid.uuid4().hex[:12]
            log.exception("bug %s at %s %s", mark, scope.get("method"), scope.get("path"))
            if begun:
                # The answer cannot be taken back; that it breaks off says that it is not whole.
                raise
            await _bug(mark)(scope, receive, send)


def _bug(mark: str) -> Problem:
    return Problem(
        HTTPStatus.INTERNAL_SERVER_ERROR,
        "server:bug",
        f"This is a bug in Clew. The server's log has the details under {mark}.",
        "Report it with those lines; what was asked may have been done.",
    )
