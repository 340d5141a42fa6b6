"""The text of server-sent events, and the event id with which a client resumes."""

import json
import re
from dataclasses import dataclass, field, fields
from typing import Any

import orjson

_SHAPE = re.compile(r"(\d{1,12}(?:\.\d{1,12})?)((?:,[A-Za-z0-9_-]{1,80}:\d{1,15}){0,100})")


@dataclass(slots=True)
class StreamPosition:
    """How far a client has read: the last log line of each run it follows, and when the last run ended that it has
    read completely. Runs that ended later, or not yet, are new to it. It is sent as the event id."""

    ended: float = 0.0
    lines: dict[str, int] = field(default_factory=dict)

    def __str__(self) -> str:
        return f"{self.ended!r}" + "".join(f",{run}:{seq}" for run, seq in self.lines.items())


def read_position(text: str) -> StreamPosition | None:
    """None if the text was not written by `str(StreamPosition)`: the client then starts as a new one."""
    if not (found := _SHAPE.fullmatch(text)):
        return None
    pairs = (pair.split(":") for pair in found[2].split(",")[1:])
    return StreamPosition(float(found[1]), {run: int(seq) for run, seq in pairs})


def event(kind: str, view: object, position: StreamPosition | None = None) -> bytes:
    """One `data:` line is enough: JSON contains no raw line break."""
    event_id = b"" if position is None else f"id: {position}\n".encode()
    return b"%sevent: %s\ndata: %s\n\n" % (event_id, kind.encode(), _json(view))


def _json(view: object) -> bytes:
    try:
        return orjson.dumps(view)
    except TypeError:
        # A lone surrogate, from an agent that cut its output within a character: json writes it as an escape.
        return json.dumps(view, default=_fields).encode()


def _fields(view: Any) -> dict[str, object]:
    return {each.name: getattr(view, each.name) for each in fields(view)}


KEEP_ALIVE = b": still here\n\n"
RETRY = b"retry: 1000\n\n"
