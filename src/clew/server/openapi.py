"""The API's documentation: the OpenAPI document, and a page made from it.

FastAPI's own pages load scripts from another server, and a script on this page could run agents.
"""

import base64
import hashlib
from collections.abc import Iterator, Mapping
from html import escape
from typing import Any

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi
from fastapi.responses import HTMLResponse

from clew.server.problems import MEDIA_TYPE

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
    "description": "An error: `code` for programs, `detail` and `remedy` for people.",
}

_CONTENT = {MEDIA_TYPE: {"schema": {"$ref": "#/components/schemas/Problem"}}}
PROBLEMS: dict[int | str, dict[str, Any]] = {
    "4XX": {
        "description": "The request is invalid, not allowed, not found, or not possible now.",
        "content": _CONTENT,
    },
    "5XX": {"description": "Something Clew needs is unavailable, or there is a bug in Clew.", "content": _CONTENT},
}


def describe(app: FastAPI, *, open_paths: tuple[str, ...]) -> None:
    """Built at the first request."""

    def openapi() -> dict[str, Any]:
        if app.openapi_schema is None:
            app.openapi_schema = _build(app, open_paths)
        return app.openapi_schema

    app.openapi = openapi  # type: ignore[method-assign]


def _build(app: FastAPI, open_paths: tuple[str, ...]) -> dict[str, Any]:
    document = get_openapi(title=app.title, version=app.version, description=app.description, routes=app.routes)
    parts = document.setdefault("components", {})
    parts.setdefault("schemas", {})["Problem"] = _PROBLEM
    parts["securitySchemes"] = {"token": {"type": "http", "scheme": "bearer"}}
    document["security"] = [{"token": []}]
    for path in open_paths:
        for call in document["paths"][path].values():
            call["security"] = []
    return document


_STYLE = """
body { font: 15px/1.5 system-ui, sans-serif; max-width: 60rem; margin: 2rem auto; padding: 0 1rem; }
h2 { margin-top: 2.5rem; } section { border-top: 1px solid #8886; padding: .6rem 0; }
code, pre { font: 13px/1.5 ui-monospace, monospace; } h3 { margin: .3rem 0; font-weight: 500; }
table { border-collapse: collapse; } td { padding: .1rem 1rem .1rem 0; vertical-align: top; }
:root { color-scheme: light dark; }
"""
_HASH = base64.b64encode(hashlib.sha256(_STYLE.encode()).digest()).decode()
_POLICY = f"default-src 'none'; style-src 'sha256-{_HASH}'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"


def show_reference(app: FastAPI) -> None:
    @app.get("/docs", include_in_schema=False)
    async def docs() -> HTMLResponse:
        return HTMLResponse(_page(app.openapi(), str(app.openapi_url)), headers={"content-security-policy": _POLICY})


def _page(described: Mapping[str, Any], source: str) -> str:
    about = described["info"]
    title = f"{about['title']} {about['version']}"
    parts = [
        f"<!doctype html><html lang=en><meta charset=utf-8><title>{escape(title)}</title><style>{_STYLE}</style>",
        f"<h1>{escape(title)}</h1><p>{escape(about.get('description', ''))}</p>",
        f"<p>For programs: <a href='{escape(source)}'><code>{escape(source)}</code></a></p>",
    ]
    by_tag: dict[str, list[str]] = {}
    for path, methods in described["paths"].items():
        for method, call in methods.items():
            shown = "".join(_call(method, path, call))
            by_tag.setdefault((call.get("tags") or ["server"])[0], []).append(shown)
    for tag, calls in by_tag.items():
        parts += (f"<h2>{escape(tag)}</h2>", *calls)
    parts += ("<h2>shapes</h2>", *_shapes(described.get("components", {}).get("schemas", {})))
    return "\n".join((*parts, "</html>"))


def _call(method: str, path: str, call: Mapping[str, Any]) -> Iterator[str]:
    yield f"<section><h3><code>{method.upper()} {escape(path)}</code></h3>"
    yield f"<p>{escape(call.get('description') or call.get('summary', ''))}</p><table>"
    for each in call.get("parameters", ()):
        name = f"{each['name']} ({each['in']})"
        yield f"<tr><td><code>{escape(name)}</code><td>{_kind(each.get('schema', {}))}"
    if body := call.get("requestBody"):
        yield f"<tr><td>body<td>{_kind(_schema(body))}"
    for status, answer in call.get("responses", {}).items():
        if status.startswith("2"):
            yield f"<tr><td>answer<td>{_kind(_schema(answer))}"
    yield "</table></section>"


def _shapes(shapes: Mapping[str, Mapping[str, Any]]) -> Iterator[str]:
    for name, shape in shapes.items():
        needed = shape.get("required", ())
        yield f"<section id='{escape(name)}'><h3><code>{escape(name)}</code></h3>"
        yield f"<p>{escape(shape.get('description', ''))}</p><table>"
        for field, kind in shape.get("properties", {}).items():
            mark = "" if field in needed else " <i>optional</i>"
            yield f"<tr><td><code>{escape(field)}</code>{mark}<td>{_kind(kind)}"
        yield "</table></section>"


def _schema(part: Mapping[str, Any]) -> Mapping[str, Any]:
    content: Mapping[str, Any] = part.get("content", {})
    return next((each.get("schema", {}) for each in content.values()), {})


def _kind(schema: Mapping[str, Any]) -> str:
    match schema:
        case {"$ref": str(ref)}:
            name = escape(ref.rpartition("/")[2])
            return f"<a href='#{name}'><code>{name}</code></a>"
        case {"anyOf": list(ways)}:
            return " or ".join(_kind(way) for way in ways)
        case {"enum": list(values)}:
            return " | ".join(f"<code>{escape(str(value))}</code>" for value in values)
        case {"type": "array"}:
            return f"list of {_kind(schema.get('items', {}))}"
        case {"type": str(kind)}:
            return escape(kind)
        case _:
            return "anything"
