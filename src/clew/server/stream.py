"""Server-sent events as text, and the mark by which a client that was cut off goes on."""

import json
import re
from dataclasses import dataclass, field, fields
from typing import Any

import orjson

_SHAPE = re.compile(r"(\d{1,12}(?:\.\d{1,12})?)((?:,[A-Za-z0-9_-]{1,80}:\d{1,15}){0,100})")


@dataclass(slots=True)
class Mark:
    """How far a client has read: the last line of each run that it follows, and the end of the last run that it has
    read to its end. Runs that ended later, or have not, are new to it."""

    ended: float = 0.0
    lines: dict[str, int] = field(default_factory=dict)

    def __str__(self) -> str:
        return f"{self.ended!r}" + "".join(f",{run}:{seq}" for run, seq in self.lines.items())


def read_mark(said: str) -> Mark | None:
    """None for what no server of ours wrote: the client is then told everything that is current, as a new one is."""
    if not (found := _SHAPE.fullmatch(said)):
        return None
    pairs = (pair.split(":") for pair in found[2].split(",")[1:])
    return Mark(float(found[1]), {run: int(seq) for run, seq in pairs})


def event(kind: str, view: object, mark: Mark | None = None) -> bytes:
    """JSON has no raw line break in it, so one line is enough."""
    told = b"" if mark is None else f"id: {mark}\n".encode()
    return b"%sevent: %s\ndata: %s\n\n" % (told, kind.encode(), _json(view))


def _json(view: object) -> bytes:
    try:
        return orjson.dumps(view)
    except TypeError:
        # Half a character, as agents that cut their output send it: the standard library writes it as an escape.
        return json.dumps(view, default=_fields).encode()


def _fields(view: Any) -> dict[str, object]:
    return {each.name: getattr(view, each.name) for each in fields(view)}


STILL_HERE = b": still here\n\n"
COME_BACK = b"retry: 1000\n\n"
