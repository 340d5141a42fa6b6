"""Checks values against the JSON schemas in OpenCode's own API description: an import that fails is not undone by it.

Only as much of JSON Schema as that description uses. Properties that it does not name are accepted, as an import does.
"""

import re
from collections.abc import Iterator, Mapping
from typing import Any

from clew.providers.opencode.messages import Json

_TYPES: Mapping[str, tuple[type, ...]] = {
    "object": (dict,),
    "array": (list,),
    "string": (str,),
    "number": (int, float),
    "integer": (int,),
    "boolean": (bool,),
    "null": (type(None),),
}
_REFERENCE = "#/components/schemas/"


class Checker:
    def __init__(self, schemas: Json) -> None:
        self._schemas = schemas

    def knows(self, *names: str) -> bool:
        return all(name in self._schemas for name in names)

    def problem(self, value: Any, name: str) -> str | None:
        """The first thing that is wrong with the value, by the schema of that name."""
        return next(self._problems(value, self._schemas[name], name), None)

    def _problems(self, value: Any, schema: Json, at: str) -> Iterator[str]:
        if "$ref" in schema:
            yield from self._problems(value, self._schemas[schema["$ref"].removeprefix(_REFERENCE)], at)
            return
        for choices in (schema[key] for key in ("anyOf", "oneOf") if key in schema):
            if all(next(self._problems(value, each, at), None) for each in choices):
                yield f"{at} fits none of its schemas"
        for each in schema.get("allOf", ()):
            yield from self._problems(value, each, at)
        kind = schema.get("type")
        if isinstance(kind, str) and not _is(value, kind):
            yield f"{at} is no {kind}"
            return
        if "enum" in schema and value not in schema["enum"]:
            yield f"{at} is {value!r}"
        yield from self._inside(value, schema, at)

    def _inside(self, value: Any, schema: Json, at: str) -> Iterator[str]:
        match value:
            case str() if "pattern" in schema and not re.search(schema["pattern"], value):
                yield f"{at} has the wrong form"
            case dict():
                yield from (f"{at} lacks {name}" for name in schema.get("required", ()) if name not in value)
                for name, inner in schema.get("properties", {}).items():
                    if name in value:
                        yield from self._problems(value[name], inner, f"{at}.{name}")
            case list() if "items" in schema:
                for number, each in enumerate(value):
                    yield from self._problems(each, schema["items"], f"{at}[{number}]")


def _is(value: Any, kind: str) -> bool:
    if isinstance(value, bool):
        return kind == "boolean"
    whole = kind == "integer" and isinstance(value, float) and value.is_integer()
    return whole or isinstance(value, _TYPES.get(kind, (object,)))
