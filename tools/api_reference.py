"""Write docs/api-reference.md from the application itself: every call, body and answer, live event and log line.

    make reference                          write the page
    python -m tools.api_reference           print it

A test compares the page with the code, and another sends every example of it to a real server (tools/api_examples.py).
"""

import ast
import importlib
import inspect
import json
import pkgutil
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import is_dataclass
from enum import StrEnum
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter

import clew.protocol
import clew.server
from clew.control.services import Services
from clew.kernel import (
    AgentState,
    ApprovalState,
    AuthorKind,
    Claim,
    Evidence,
    OriginKind,
    Outcome,
    Overlap,
    Resumability,
    RunState,
    SessionState,
    WakeReason,
    WakeState,
)
from clew.ports.workspaces import CleanReason, ListedState, SourceKind
from clew.protocol.live import BeatView, ChangedView
from clew.protocol.stage import Stage
from clew.protocol.views import LogView
from clew.server.app import make_api
from clew.server.auth import Bound, Keys
from clew.server.live import Live
from clew.server.problems import status_of
from clew.server.router import BASE
from clew.store.queries.threads import KINDS, STATES
from clew.testing import temporary_store
from clew.web.app import Pages
from tools.api_examples import EXAMPLES, Example
from tools.api_fields import MEANINGS
from tools.log_lines import LogLine, log_lines

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "api-reference.md"

Json = Mapping[str, Any]

EVENTS = {
    "beat": BeatView.__name__,
    "changed": ChangedView.__name__,
    "log": LogView.__name__,
    "thread": "ThreadView",
    "run": "RunView",
    "approval": "ApprovalView",
}
"""The live events, and the shape of the `data` of each."""

VALUES: Mapping[str, Sequence[str]] = {
    f"{shape}.{name}": [each.value for each in values]
    for (shape, name), values in {
        ("AgentView", "state"): AgentState,
        ("ApprovalView", "state"): ApprovalState,
        ("CleanedView", "code"): CleanReason,
        ("DecisionView", "outcome"): Outcome,
        ("EntryView", "author_kind"): AuthorKind,
        ("EvidenceView", "state"): Evidence,
        ("LaneView", "overlap"): Overlap,
        ("ProjectView", "kind"): SourceKind,
        ("RunView", "claim"): Claim,
        ("RunView", "decision"): Outcome,
        ("RunView", "state"): RunState,
        ("SessionView", "resumability"): Resumability,
        ("ThreadView", "stage"): Stage,
        ("WakeView", "origin"): OriginKind,
        ("WakeView", "reason"): WakeReason,
        ("WakeView", "state"): WakeState,
        ("WorkspaceView", "state"): ListedState,
    }.items()
} | {
    "SessionView.state": [*(each.value for each in SessionState), "damaged"],
    "ThreadView.kind": KINDS,
    "ThreadView.state": STATES,
    "ThreadView.status": ["idle", "queued", "running", "waiting", "held"],
}
"""The values of fields that are plain text in the code of the views."""

HEAD = f"""\
# API reference

Every call of the HTTP API with its body and its answer, every live event, and every line of a run's log.
[api.md](api.md) is the introduction. This page is made from the code by `make reference`: do not edit it. A test sends
every example to a real server.

All paths are below `{BASE}`, except `/health`. A field with a default may be left out. An answer always has all of its
fields. In the examples, a name in braces such as `{{wake}}` is an id from an earlier answer.
"""

BODY_HEAD = "| field | type | default | meaning |\n|---|---|---|---|"
SHAPE_HEAD = "| field | type | meaning |\n|---|---|---|"


@cache
def openapi() -> dict[str, Any]:
    """What a running server answers at `/api/v1/openapi.json`."""
    with temporary_store() as store:
        services = Services(store, ROOT)
        return make_api(services, Keys("-"), Bound(4747), Live(services), Pages(services, "", status_of)).openapi()


def page() -> str:
    described = openapi()
    shapes: dict[str, Json] = described["components"]["schemas"]
    parts = [HEAD, "## Calls\n"]
    tag = ""
    for path, methods in described["paths"].items():
        for method, call in methods.items():
            if call["tags"][0] != tag:
                tag = call["tags"][0]
                parts.append(f"### {tag}\n")
            parts += _call(f"{method.upper()} {path.removeprefix(BASE)}", call, shapes)
    parts += ["## Shapes\n", "What bodies and answers are made of. Times are seconds since the epoch.\n"]
    calls = [call for methods in described["paths"].values() for call in methods.values()]
    bodies = {_name(_schema(call["requestBody"])) for call in calls if "requestBody" in call and not _is_bytes(call)}
    answered = _reached([call["responses"] for call in calls], shapes)
    for name in sorted(set(shapes) - bodies - _UNUSED):
        parts += [f"### `{name}`\n", *_shape(name, shapes[name], is_body=name not in answered)]
    parts += _live()
    return "\n".join(parts).rstrip() + "\n"


_UNUSED = {"HTTPValidationError", "ValidationError"}
"""What FastAPI adds of its own. Clew answers with `Problem` instead."""


def _call(name: str, call: Json, shapes: Mapping[str, Json]) -> Iterator[str]:
    yield f"#### `{name}`\n"
    yield f"{' '.join(call['description'].split())}\n"
    given = [each for each in call.get("parameters", ()) if each["in"] != "path"]
    if given:
        yield "| parameter | type | default |\n|---|---|---|"
        for each in given:
            where = "" if each["in"] == "query" else f" ({each['in']})"
            default = "needed" if each.get("required") else _default(each["schema"])
            yield f"| `{each['name']}`{where} | {_kind(each['schema'])} | {default} |"
        yield ""
    if _is_bytes(call):
        yield "Body: the bytes of the file.\n"
    elif "requestBody" in call:
        shape = _name(_schema(call["requestBody"]))
        yield "Body:\n" if call["requestBody"].get("required") else "Body, which may be left out:\n"
        yield from _shape(shape, shapes[shape], is_body=True)
    yield from _example(name, [each for each in EXAMPLES if each.call == name])
    for status, answer in call["responses"].items():
        if status.startswith("2"):
            what = "[live events](#live-events)" if name == "GET /live" else _kind(_schema(answer))
            yield f"Answer {status}: {what}\n"


def _example(name: str, examples: Sequence[Example]) -> Iterator[str]:
    if not examples:
        raise SystemExit(f"tools/api_examples.py has no example of {name}.")
    base = "" if name.endswith(" /health") else BASE
    shown = [
        f"{each.method} {base}{each.path}" + ("" if each.body is None else f"\n{_written(each.body)}")
        for each in examples
    ]
    yield "```http\n" + "\n\n".join(shown) + "\n```\n"


def _written(body: Any) -> str:
    return body if isinstance(body, str) else json.dumps(body, indent=2)


# ---------------------------------------------------------------- shapes


def _shape(name: str, shape: Json, *, is_body: bool = False) -> Iterator[str]:
    about = shape.get("description", "")
    if about and not about.startswith(f"{name}("):
        yield f"{_prose(about)}\n"
    meanings, needed = _meanings(name), shape.get("required", ())
    yield BODY_HEAD if is_body else SHAPE_HEAD
    for field, kind in shape["properties"].items():
        default = f" {'needed' if field in needed else _default(kind)} |" if is_body else ""
        values = _listed(VALUES.get(f"{name}.{field}", ()))
        meaning = meanings.get(field) or MEANINGS.get(f"{name}.{field}")
        if meaning is None and f"`{field}`" not in about:
            meaning = MEANINGS.get(field)
        yield f"| `{field}` | {_kind(kind)}{values} |{default} {_prose(meaning or '')} |"
    yield ""


def _prose(text: str) -> str:
    """On one line, with the words of JSON."""
    return re.sub(r"\bNone\b", "null", " ".join(text.split())).replace("|", "\\|")


def _meanings(shape: str) -> dict[str, str]:
    """The text below each field in the class that the shape is made from."""
    kind = _classes().get(shape)
    if kind is None:
        return {}
    (body,) = (node.body for node in ast.parse(inspect.getsource(kind)).body if isinstance(node, ast.ClassDef))
    found = {}
    for field, text in pairwise(body):
        match field, text:
            case ast.AnnAssign(target=ast.Name(id=name)), ast.Expr(value=ast.Constant(value=str(words))):
                found[name] = words
            case _:
                pass
    return found


def _classes() -> dict[str, type]:
    modules = [
        importlib.import_module(module.name)
        for package in (clew.protocol, clew.server)
        for module in pkgutil.iter_modules(package.__path__, f"{package.__name__}.")
    ]
    return {
        name: value
        for module in modules
        for name, value in vars(module).items()
        if isinstance(value, type) and is_dataclass(value) and value.__module__ == module.__name__
    }


def _schema(part: Json) -> Json:
    schema: Json = next(iter(part["content"].values()))["schema"]
    return schema


def _is_bytes(call: Json) -> bool:
    """Whether its body is a file and no JSON."""
    return "requestBody" in call and _schema(call["requestBody"]).get("format") == "binary"


def _name(schema: Json) -> str:
    ref: str = schema["$ref"]
    return ref.rpartition("/")[2]


def _reached(part: object, shapes: Mapping[str, Json]) -> set[str]:
    """The shapes that a part of the document is made of."""
    match part:
        case {"$ref": str(ref)}:
            name = ref.rpartition("/")[2]
            return {name} | _reached(shapes[name], shapes)
        case dict():
            return {name for each in part.values() for name in _reached(each, shapes)}
        case list():
            return {name for each in part for name in _reached(each, shapes)}
        case _:
            return set()


_KINDS = {"string": "text", "integer": "whole number", "number": "number", "boolean": "true or false", "null": "null"}


def _kind(schema: Json) -> str:
    match schema:
        case {"$ref": _}:
            return f"[`{_name(schema)}`](#{_name(schema).lower()})"
        case {"anyOf": list(ways)}:
            values = [value for way in ways for value in way.get("enum", ())]
            bare = [{key: value for key, value in way.items() if key != "enum"} for way in ways]
            return " or ".join(_kind(way) for way in bare) + _listed(values)
        case {"type": "string", "enum": list(values)}:
            return f"text{_listed(values)}"
        case {"type": "string", "format": "binary"}:
            return "bytes"
        case {"type": "array"}:
            return f"list of {_kind(schema.get('items', {}))}"
        case {"type": "object", "additionalProperties": dict(values)}:
            return f"object of {_kind(values)}"
        case {"type": "object"}:
            return "object"
        case {"type": str(kind)}:
            return _KINDS[kind] + _range(schema)
        case _:
            return "anything"


def _range(schema: Json) -> str:
    low, high = schema.get("minimum"), schema.get("maximum")
    return f", {low:g} to {high:g}" if low is not None and high is not None and high < 2**31 - 1 else ""


def _listed(values: Sequence[str]) -> str:
    return f": {', '.join(f'`{value}`' for value in values)}" if values else ""


def _default(schema: Json) -> str:
    """None is left out of the schema, and so is an empty mapping, which is made anew for every request."""
    if "default" in schema:
        return f"`{json.dumps(schema['default'])}`"
    return "`{}`" if schema.get("type") == "object" else "`null`"


# ---------------------------------------------------------------- live events and log lines


def _live() -> Iterator[str]:
    yield "## Live events\n"
    yield "`GET /live` sends server-sent events. Each has an `event` and one line of `data`, which is JSON, and all but"
    yield "`changed` have an `id`, the position of the stream:\n"
    yield "| event | data |\n|---|---|"
    for event, shape in EVENTS.items():
        yield f"| `{event}` | [`{shape}`](#{shape.lower()}) |"
    for number, view in enumerate((BeatView, ChangedView, LogView)):
        yield f"{'' if number else chr(10)}### `{view.__name__}`\n"
        yield from _shape(view.__name__, TypeAdapter(view).json_schema())
    yield "## Log lines\n"
    yield "The `body` of a line, by its `kind`. Texts over 65,536 characters are cut in the middle.\n"
    for line in log_lines():
        yield f"### `{line.kind}`\n"
        yield f"{line.words}\n"
        yield "| field | type |\n|---|---|"
        for name in line.example:
            yield f"| `{name}` | {_kind_of_values(line, name)} |"
        yield f"\n```json\n{json.dumps(line.example, ensure_ascii=False)}\n```\n"


def _kind_of_values(line: LogLine, name: str) -> str:
    values = [each for each in (line.example[name], line.sparse[name]) if each != []]
    kinds = dict.fromkeys(_kind_of_value(each) for each in values)
    return " or ".join(kinds) + _listed(line.values(name))


def _kind_of_value(value: object) -> str:
    match value:
        case None:
            return "null"
        case bool():
            return "true or false"
        case int():
            return "whole number"
        case float():
            return "number"
        case str() | StrEnum():
            return "text"
        case [first, *_]:
            return f"list of {_kind_of_value(first)}"
        case _:
            raise AssertionError(f"a log line has a field of {type(value)}")


def main() -> int:
    if sys.argv[1:] == ["--write"]:
        PAGE.write_text(page(), encoding="utf-8")
    else:
        print(page(), end="")
    return 0


if __name__ == "__main__":
    sys.exit(main())
