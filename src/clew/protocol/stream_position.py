"""The position of a live stream as text: the id of its events, which a client sends back as `Last-Event-ID`."""

import re
from collections.abc import Iterable
from dataclasses import dataclass, field

_FORMAT = "1"
_PART = re.compile(r"(?P<run>\d{1,10}):(?P<line>\d{1,10})|(?P<thread>[A-Za-z0-9_.-]{1,80})")
_LARGEST = 2**31

LONGEST = 32_000
"""Characters. Each run takes about ten of them."""


@dataclass(frozen=True, slots=True)
class StreamPosition:
    """How far a client has read: the last line of each listed run, by the run's number. A followed thread of which no
    run can be listed is listed itself."""

    lines: dict[int, int] = field(default_factory=dict)
    threads: frozenset[str] = frozenset()


def write_position(parts: Iterable[str]) -> str:
    """`parts` are positions of logs, or ids of threads."""
    return ",".join((_FORMAT, *parts))


def read_position(text: str) -> StreamPosition | None:
    """None if the text was not written by `write_position`: the client then starts as a new one."""
    first, *parts = text.split(",")
    if first != _FORMAT or len(text) > LONGEST:
        return None
    lines, threads = dict[int, int](), set[str]()
    for part in parts:
        found = _PART.fullmatch(part)
        if found is None:
            return None
        if found["thread"] is not None:
            threads.add(found["thread"])
        elif int(found["run"]) < _LARGEST and int(found["line"]) < _LARGEST:
            lines[int(found["run"])] = int(found["line"])
        else:
            return None
    return StreamPosition(lines, frozenset(threads))
