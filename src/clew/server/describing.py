"""The description for programs: OpenAPI, with the key that every call needs and the shape of what goes wrong."""

from typing import Any

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi

from clew.server.problem import MEDIA_TYPE

_TEXT = {"type": "string"}
_PROBLEM = {
    "type": "object",
    "required": ["type", "title", "status", "detail", "code", "remedy"],
    "properties": {
        **dict.fromkeys(("type", "title", "detail", "code", "remedy"), _TEXT),
        "status": {"type": "integer"},
        "errors": {
            "type": "array",
            "items": {"type": "object", "properties": {"field": _TEXT, "words": _TEXT}},
        },
    },
    "description": "What went wrong: `code` for programs, `detail` and `remedy` for people.",
}

_CONTENT = {MEDIA_TYPE: {"schema": {"$ref": "#/components/schemas/Problem"}}}
PROBLEMS: dict[int | str, dict[str, Any]] = {
    "4XX": {"description": "It was not understood, not allowed, not found or cannot be done now.", "content": _CONTENT},
    "5XX": {"description": "Something is away, or Clew made a mistake.", "content": _CONTENT},
}


def describe(app: FastAPI, *, open_paths: tuple[str, ...]) -> None:
    """Made when somebody asks for it."""

    def openapi() -> dict[str, Any]:
        if app.openapi_schema is None:
            app.openapi_schema = _described(app, open_paths)
        return app.openapi_schema

    app.openapi = openapi  # type: ignore[method-assign]


def _described(app: FastAPI, open_paths: tuple[str, ...]) -> dict[str, Any]:
    said = get_openapi(title=app.title, version=app.version, description=app.description, routes=app.routes)
    parts = said.setdefault("components", {})
    parts.setdefault("schemas", {})["Problem"] = _PROBLEM
    parts["securitySchemes"] = {"token": {"type": "http", "scheme": "bearer"}}
    said["security"] = [{"token": []}]
    for path in open_paths:
        for call in said["paths"][path].values():
            call["security"] = []
    return said
