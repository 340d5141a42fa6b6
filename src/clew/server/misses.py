"""What a request missed: the address, the method, the field or the parameter that it probably meant."""

import difflib
import json
from collections.abc import Mapping, Sequence
from dataclasses import fields, is_dataclass
from typing import Any, get_args, get_type_hints

from fastapi.routing import APIRoute
from starlette.requests import Request
from starlette.routing import Route

from clew.control.faults import BadRequest

_SHOWN = 100
_CLOSE = 0.8
_VERSIONED = "/api/v1"


def nothing_here(request: Request) -> tuple[str, str]:
    path = request.url.path
    near = difflib.get_close_matches(path, _addresses(request, path), n=1, cutoff=_CLOSE)
    return f"There is nothing at {path[:_SHOWN]}.", f"Did you mean {near[0]}?" if near else ""


def _addresses(request: Request, path: str) -> list[str]:
    """The known paths, with the names of this request filled in: /agents/ada/polcy is compared with
    /agents/ada/policy."""
    found = set[str]()
    for asked in (path, path.rstrip("/"), _VERSIONED + path):
        parts = asked.split("/")
        for route in _routes(request):
            template = route.path.split("/")
            if len(template) == len(parts) and all(parts[1:]):
                pairs = zip(template, parts, strict=True)
                found.add("/".join(part if name.startswith("{") else name for name, part in pairs))
    return sorted(found)


def wrong_method(request: Request) -> tuple[str, str, str]:
    """The words, the remedy, and the methods that the address takes."""
    path = request.scope["path"]
    there = {method for route in _routes(request) if route.path_regex.match(path) for method in route.methods or ()}
    allowed = ", ".join(sorted(there - {"HEAD"}))
    words = f"{request.method} is not possible at {request.url.path[:_SHOWN]}."
    return words, f"It takes {allowed}.", allowed


def _routes(request: Request) -> list[Route]:
    return [route for route in request.app.routes if isinstance(route, Route)]


_NUMBER, _WHOLE, _SWITCH = "This must be a number", "This must be a whole number", "This must be true or false"
_WORDS = {
    "bool_parsing": _SWITCH,
    "bool_type": _SWITCH,
    "dataclass_type": "This must be a JSON object",
    "dict_type": "This must be a JSON object",
    "float_parsing": _NUMBER,
    "float_type": _NUMBER,
    "greater_than_equal": "This must be {ge} or more",
    "int_from_float": _WHOLE,
    "int_parsing": _WHOLE,
    "int_type": _WHOLE,
    "less_than_equal": "This must be {le} or less",
    "list_type": "This must be a list",
    "literal_error": "This must be one of: {expected}",
    "mapping_type": "This must be a JSON object",
    "missing": "This is missing",
    "missing_argument": "This is missing",
    "string_too_long": "This has more than {max_length} characters",
    "string_too_short": "This has fewer than {min_length} characters",
    "string_type": "This must be a text",
    "too_long": "This has more than {max_length} items",
    "tuple_type": "This must be a list",
}


def invalid_words(route: object, error: Mapping[str, Any]) -> str:
    """Why a field is refused, in the words of JSON."""
    if error["type"] != "unexpected_keyword_argument":
        words = _WORDS.get(error["type"])
        said = str(error["msg"]) if words is None else words.format(**error.get("ctx", {}))
        return said + _got(error)
    _, *above, name = error["loc"]
    body = route.body_field if isinstance(route, APIRoute) else None
    there = [] if body is None else _fields_of(body.field_info.annotation, above)
    return f"Unknown field. {_meant(str(name), there)}".strip().rstrip(".")


_SECRET = frozenset({"environment", "add_environment"})
_SHORT = 60


def _got(error: Mapping[str, Any]) -> str:
    """The value that was sent, where it is short, and can be no secret."""
    value = error.get("input")
    if error["type"] in ("missing", "missing_argument") or _SECRET.intersection(map(str, error["loc"])):
        return ""
    if not isinstance(value, str | int | float | bool | None):
        return ""
    shown = json.dumps(value, ensure_ascii=False)
    return f" (got {shown})" if len(shown) <= _SHORT else ""


def _fields_of(kind: Any, above: Sequence[object]) -> list[str]:
    """The fields of a body, or of the object that is `above` in it."""
    for step in above:
        found = [each for each in (kind, *get_args(kind)) if is_dataclass(each)]
        kind = get_type_hints(found[0]).get(str(step)) if found else None
    found = [each for each in (kind, *get_args(kind)) if is_dataclass(each)]
    return [each.name for each in fields(found[0])] if found else []


def _meant(name: str, there: Sequence[str]) -> str:
    near = difflib.get_close_matches(name.lower(), there, n=1)
    if near:
        return f"Did you mean {near[0]}?"
    return f"Use one of: {', '.join(there)}." if there else ""


async def check_asked(request: Request) -> None:
    """An unknown query parameter, or a body where none is read, is refused like an unknown field: what was asked with
    it would be dropped silently."""
    route = request.scope["route"]
    if not isinstance(route, APIRoute):
        return
    known = {each.alias: each for each in route.dependant.query_params}
    for name in request.query_params:
        if name not in known:
            words = f"Unknown query parameter {name[:_SHOWN]!r}."
            raise BadRequest(words, _meant(name, sorted(known)) or "This call takes none.")
        if len(request.query_params.getlist(name)) > 1 and name not in _REPEATED:
            raise BadRequest(f"The query parameter {name!r} is given twice.", "Give it once.")
    takes_bytes = bool((route.openapi_extra or {}).get("requestBody"))
    if route.body_field is None and not takes_bytes and (await request.body()).strip() not in (b"", b"{}"):
        raise BadRequest("This call takes no body.", "Leave it out.")


_REPEATED = frozenset({"follow", "path"})
"""Query parameters that are lists."""
