"""Registration of routes.

FastAPI's own router prepares every route twice: when it is declared and when the router is included. With about fifty
routes that costs 0.1 s of every start, so routes are declared on the application itself.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

from fastapi import FastAPI

from clew.server.openapi import PROBLEMS

Endpoint = TypeVar("Endpoint", bound=Callable[..., Any])

BASE = "/api/v1"


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
            merged = {**options, "responses": {**PROBLEMS, **options.get("responses", {})}}
            self.app.add_api_route(self.prefix + path, endpoint, methods=[method], tags=[self.tag], **merged)
            return endpoint

        return add
