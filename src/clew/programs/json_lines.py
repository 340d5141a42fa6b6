"""One line of JSON, as JavaScript writes it: it may cut a text within a character and write a lone surrogate."""

import json
from typing import Any

import orjson


def loads(line: bytes) -> Any:
    """Raises `ValueError` if the line is not JSON."""
    try:
        return orjson.loads(line)
    except orjson.JSONDecodeError:
        try:
            return without_surrogates(json.loads(line.decode()))
        except RecursionError as fault:
            raise ValueError("nested too deep") from fault


def dumps(value: Any) -> bytes:
    try:
        return orjson.dumps(value)
    except TypeError:
        return orjson.dumps(without_surrogates(value))


def without_surrogates(value: Any) -> Any:
    """The same value with each lone surrogate replaced: UTF-8 cannot encode one."""
    match value:
        case str():
            return value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
        case list():
            return [without_surrogates(each) for each in value]
        case dict():
            return {without_surrogates(key): without_surrogates(each) for key, each in value.items()}
        case _:
            return value
