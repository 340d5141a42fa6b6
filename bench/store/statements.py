"""Statements: how many of them one wake takes in `clew up`, from the request to its end, counted by SQLite itself."""

import statistics
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from bench.process import Failed
from bench.server import Server
from bench.store.agent import NAME
from bench.store.databases import Ground, Kind
from bench.store.traced import STATEMENTS
from bench.table import Table
from bench.wakes import one

PART = "statements"
MOST = 16
_PAUSE = 0.3
"""Seconds after the end of a run in which the daemon asks for the next one and empties its outbox."""

SAMPLES = 5
REQUEST, CLAIM, REPORT, FINISH, LOG, EMPTY = "request", "claim", "reports", "finish", "log lines", "empty claims"
_COUNTED = (REQUEST, CLAIM, REPORT, FINISH)
_BEGIN, _END = "SAVEPOINT operation", "RELEASE operation"


def measure(ground: Ground) -> Sequence[Table]:
    table = Table(PART, ("wake", *_COUNTED, "together", "wanted", LOG, EMPTY))
    with ground.store(Kind.SQLITE) as store:
        path = store.directory / "statements"
        traced = replace(store, environment={**store.environment, STATEMENTS: str(path)})
        with traced.new_server(("-m", "bench.store.traced", "up")) as server:
            trace = Trace(path)
            samples = [_sample(server, trace) for _ in range(SAMPLES)]
    for name in samples[0]:
        counts = {
            part: round(statistics.median(each[name][part] for each in samples)) for part in (*_COUNTED, LOG, EMPTY)
        }
        together = sum(counts[part] for part in _COUNTED)
        wanted = table.judge(name, together <= MOST, f"at most {MOST}", str(together))
        numbers = [str(counts[part]) for part in _COUNTED]
        table.add(name, *numbers, str(together), wanted, str(counts[LOG]), str(counts[EMPTY]))
    table.note = f"The median of {SAMPLES} of each."
    return (table,)


def _sample(server: Server, trace: "Trace") -> dict[str, Counter[str]]:
    counts: dict[str, Counter[str]] = {}
    for door in ("say", "wake"):
        ref = server.post("/chats", {"agent": NAME})["ref"]
        for what, outcome, fresh in (
            ("the first of its lane", "blank", False),
            ("a follow-up that resumes", "resume", False),
            ("a fresh start", "blank", True),
        ):
            counts[f"{door}: {what}"] = trace.of(_ask(server, door, ref, fresh), server, outcome)
    return counts


def _ask(server: Server, door: str, ref: str, fresh: bool) -> Callable[[], Any]:
    words = {"text": "look at this", "fresh": fresh}
    if door == "say":
        return lambda: server.post(f"/threads/{ref}/words", words)["wake"]
    return lambda: server.post("/wakes", {"agent": NAME, "thread": ref, **words})


class Trace:
    """The file that the server writes its statements to."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def of(self, ask: Callable[[], Any], server: Server, outcome: str) -> Counter[str]:
        """Statements of the wake that `ask` makes, by the operation that they belong to."""
        time.sleep(_PAUSE)
        before = self._path.stat().st_size
        found = one(server, ask)
        if found.decision != outcome:
            raise Failed(f"The decision should be {outcome!r}, and it was {found.decision!r}.")
        time.sleep(_PAUSE)
        counts: Counter[str] = Counter()
        for operation in _operations(self._path.read_bytes()[before:].decode()):
            lines = sum(statement.startswith("INSERT INTO events") for statement in operation)
            counts[LOG] += lines
            counts[_kind(operation)] += len(operation) - lines
        return counts


def _operations(text: str) -> list[list[str]]:
    """The statements of each store operation. The writer gives each a savepoint; reads and the daemon's outbox, which
    is a file of its own, have none."""
    operations: list[list[str]] = []
    inside: dict[str, list[str]] = {}
    for line in text.splitlines():
        connection, _, statement = line.partition(" ")
        if statement == _BEGIN:
            inside[connection] = []
        elif statement == _END:
            operations.append(inside.pop(connection))
        elif connection in inside and inside[connection][-1:] != [statement]:
            # What a trigger does is traced once more under the statement that it belongs to.
            inside[connection].append(statement)
    return operations


def _kind(operation: Sequence[str]) -> str:
    def has(beginning: str) -> bool:
        return any(statement.startswith(beginning) for statement in operation)

    if has("INSERT INTO wakes"):
        return REQUEST
    if has("WITH q AS"):
        return CLAIM if has("UPDATE runs") else EMPTY
    if has("INSERT INTO journal"):
        return FINISH
    return REPORT if has("UPDATE runs") else "other"
