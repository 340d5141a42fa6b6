"""The API's answers: decoded into views, and printed as JSON or as text. Unknown fields, from a newer server, are
ignored."""

import json
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import MISSING, fields, is_dataclass
from functools import cache
from types import UnionType
from typing import Any, TypeVar, Union, get_args, get_origin, get_type_hints

from clew.cli.client import NotUnderstood, Server, thread_part
from clew.cli.input import Options
from clew.cli.output import table, tell_answer
from clew.cli.pager import paged
from clew.protocol.views import ThreadPage, ThreadView

V = TypeVar("V")


def print_view(
    options: Options, said: bytes, kind: type[V], show: Callable[[V], object], *, long: bool = False
) -> None:
    """One view, as `show` prints it. What may be `long` goes through a pager on a terminal."""

    def shown() -> None:
        with paged() if long else nullcontext():
            show(read(kind, said))

    tell_answer(said, shown, as_json=options.json)


def print_table(
    options: Options,
    said: bytes,
    kind: type[V],
    row: Callable[[V], Mapping[str, str]],
    nothing: str,
    first_to_go: Sequence[str] = (),
) -> None:
    """A list of views, one row each: the texts by their headings. Without any, prints `nothing`. A narrow terminal
    leaves out the columns `first_to_go`."""
    tell_answer(
        said, lambda: table([row(view) for view in read_all(kind, said)], nothing, first_to_go), as_json=options.json
    )


def get_thread(server: Server, ref: str) -> ThreadView:
    return read(ThreadPage, server.get(f"/threads/{thread_part(ref)}", {"limit": 1})).thread


def read(kind: type[V], said: bytes | str) -> V:
    view: V = _shaped(kind, parsed(said))
    return view


def read_all(kind: type[V], said: bytes | str) -> list[V]:
    many = parsed(said)
    if not isinstance(many, list):
        raise _unexpected(f"expected a list of {kind.__name__}")
    return [_shaped(kind, each) for each in many]


def parsed(said: bytes | str) -> Any:
    try:
        return json.loads(said)
    except ValueError as fault:
        raise _unexpected(str(fault)) from fault


def _shaped(kind: Any, raw: Any) -> Any:
    if is_dataclass(kind):
        return _view(kind, raw)
    origin = get_origin(kind)
    if origin in (UnionType, Union):
        inner = [each for each in get_args(kind) if each is not type(None)]
        return None if raw is None else _shaped(inner[0], raw)
    if origin is tuple:
        if not isinstance(raw, list):
            raise _unexpected(f"{raw!r:.40} instead of a list")
        return tuple(_shaped(get_args(kind)[0], each) for each in raw)
    if origin is not None and isinstance(origin, type) and issubclass(origin, Mapping) and not isinstance(raw, dict):
        raise _unexpected(f"{raw!r:.40} instead of an object")
    return raw


def _view(kind: Any, raw: Any) -> Any:
    if not isinstance(raw, dict):
        raise _unexpected(f"expected a {kind.__name__}")
    given: dict[str, Any] = {}
    for name, hint, needed in _fields(kind):
        if name in raw:
            given[name] = _shaped(hint, raw[name])
        elif needed:
            raise _unexpected(f"a {kind.__name__} without {name}")
    return kind(**given)


@cache
def _fields(kind: Any) -> list[tuple[str, Any, bool]]:
    hints = get_type_hints(kind)
    return [
        (field.name, hints[field.name], field.default is MISSING and field.default_factory is MISSING)
        for field in fields(kind)
    ]


def _unexpected(what: str) -> NotUnderstood:
    words = f"Unexpected answer from the server: {what}."
    return NotUnderstood(words, "Use the same version of `clew` as the running server.")
