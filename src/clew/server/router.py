"""What every route is declared with: its path, its parameters, a strict body, and the actor who asks.

FastAPI's own router prepares every route twice: when it is declared and when the router is included. With about fifty
routes that costs 0.1 s of every start, so routes are declared on the application itself.
"""

from collections.abc import Callable
from dataclasses import dataclass, is_dataclass
from typing import Annotated, Any, TypeVar

from fastapi import Depends, FastAPI, Path, Query, Request
from pydantic import AfterValidator, ConfigDict, with_config

from clew.control.actor import Actor
from clew.protocol import requests as asks
from clew.protocol import views
from clew.server.address import with_slashes
from clew.server.misses import check_asked
from clew.server.openapi import PROBLEMS

Endpoint = TypeVar("Endpoint", bound=Callable[..., Any])

BASE = "/api/v1"


_CHECKED = (Depends(check_asked),)


@dataclass(frozen=True, slots=True)
class Routes:
    """Routes under one path prefix, with one tag in the documentation."""

    app: FastAPI
    tag: str
    prefix: str = BASE

    def below(self, path: str, tag: str) -> "Routes":
        return Routes(self.app, tag, self.prefix + path)

    def get(self, path: str, **options: Any) -> Callable[[Endpoint], Endpoint]:
        return self._add("GET", path, options)

    def post(self, path: str, **options: Any) -> Callable[[Endpoint], Endpoint]:
        return self._add("POST", path, options)

    def patch(self, path: str, **options: Any) -> Callable[[Endpoint], Endpoint]:
        return self._add("PATCH", path, options)

    def delete(self, path: str, **options: Any) -> Callable[[Endpoint], Endpoint]:
        return self._add("DELETE", path, options)

    def _add(self, method: str, path: str, options: dict[str, Any]) -> Callable[[Endpoint], Endpoint]:
        def add(endpoint: Endpoint) -> Endpoint:
            merged = {**options, "responses": {**PROBLEMS, **options.get("responses", {})}, "dependencies": _CHECKED}
            self.app.add_api_route(self.prefix + path, endpoint, methods=[method], tags=[self.tag], **merged)
            return endpoint

        return add


MAX_LENGTH = 240
"""A subject has up to 233 characters: github:acme/app#12."""

Name = Annotated[str, Path(min_length=1, max_length=MAX_LENGTH), AfterValidator(with_slashes)]
Filter = Annotated[str | None, Query(max_length=MAX_LENGTH)]
Limit = Annotated[int, Query(ge=1, le=500)]
Seq = Annotated[int, Query(ge=0, le=2**31 - 1)]

strict = with_config(ConfigDict(extra="forbid", allow_inf_nan=False))
"""For request bodies: an unknown field is probably a typo, and ignoring it would silently drop what was asked."""

for _each in (*vars(asks).values(), views.Rhythm):
    if isinstance(_each, type) and is_dataclass(_each):
        strict(_each)


async def _actor(request: Request) -> Actor:
    # Not a plain function: FastAPI would run that in a thread, for every request.
    actor: Actor = request.state.actor
    return actor


By = Annotated[Actor, Depends(_actor)]
