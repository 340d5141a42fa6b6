"""Putting calls into the application.

FastAPI builds what a route needs once when it is declared and once more when its router is included; at half a
hundred routes that is a tenth of a second of every start. So calls are declared on the application itself.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

from fastapi import FastAPI

from clew.server.describing import PROBLEMS

Call = TypeVar("Call", bound=Callable[..., Any])

BASE = "/api/v1"


@dataclass(frozen=True, slots=True)
class Calls:
    """Calls of one kind, below one path."""

    app: FastAPI
    tag: str
    prefix: str = BASE

    def below(self, path: str, tag: str) -> "Calls":
        return Calls(self.app, tag, self.prefix + path)

    def get(self, path: str, **options: Any) -> Callable[[Call], Call]:
        return self._add("GET", path, options)

    def post(self, path: str, **options: Any) -> Callable[[Call], Call]:
        return self._add("POST", path, options)

    def patch(self, path: str, **options: Any) -> Callable[[Call], Call]:
        return self._add("PATCH", path, options)

    def delete(self, path: str, **options: Any) -> Callable[[Call], Call]:
        return self._add("DELETE", path, options)

    def _add(self, method: str, path: str, options: dict[str, Any]) -> Callable[[Call], Call]:
        def put(call: Call) -> Call:
            said = {**options, "responses": {**PROBLEMS, **options.get("responses", {})}}
            self.app.add_api_route(self.prefix + path, call, methods=[method], tags=[self.tag], **said)
            return call

        return put
