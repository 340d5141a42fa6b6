"""The trip of one message, part by part: what each step of it costs beside a plain insert. One caller, by turns."""

import sqlite3
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from typing import Any

import psycopg

from bench.server import Server
from bench.store.agent import NAME
from bench.store.databases import Ground, Kind, Store
from bench.table import Table
from bench.timing import milliseconds, percentile
from bench.wakes import one

PART = "trip"
WARM_UP = 5
FULL, SMALL = 150, 15
"""Samples of each step."""

INSERT = "a plain insert, committed"
_TABLE = "CREATE TABLE plain (id integer PRIMARY KEY, body text NOT NULL)"


def measure(ground: Ground, samples: int) -> Sequence[Table]:
    table = Table(PART, ("database", "step", "p50 ms", "p95 ms", "p50 to a plain insert"))
    for kind in Kind:
        with (
            ground.store(kind) as bare,
            _insert(bare) as insert,
            ground.store(kind) as store,
            store.new_server() as server,
        ):
            trip = Trip(server, insert)
            taken = [trip.sample() for _ in range(WARM_UP + samples)][WARM_UP:]
        base = percentile([each[INSERT] for each in taken], 0.5)
        for step in taken[0]:
            middle, slow = (percentile([each[step] for each in taken], share) for share in (0.5, 0.95))
            table.add(kind, step, f"{middle:.2f}", f"{slow:.2f}", f"{middle / base:.1f}")
    table.note = f"{samples} samples of each step. Times of `say` and `wake` are since the request was sent."
    return (table,)


@dataclass(frozen=True, slots=True)
class Trip:
    server: Server
    insert: Callable[[], object]

    def sample(self) -> dict[str, float]:
        """One time of each step, in milliseconds. Each message goes into a chat of its own."""
        post = self.server.post
        silent, said, woken = (post("/chats", {"agent": NAME})["ref"] for _ in range(3))
        words = {"text": "look at this"}
        taken = {
            INSERT: milliseconds(self.insert),
            "a request that does nothing (/health)": milliseconds(self.server.health),
            "a request that reads a thread": milliseconds(lambda: self.server.get(f"/threads/{silent}?limit=1")),
            "say that wakes nobody: one journal entry": milliseconds(
                lambda: post(f"/threads/{silent}/words", {**words, "wakes": False})
            ),
        }
        doors: dict[str, Callable[[], Any]] = {
            "say": lambda: post(f"/threads/{said}/words", words)["wake"],
            "wake": lambda: post("/wakes", {"agent": NAME, "thread": woken, **words}),
        }
        for door, ask in doors.items():
            found = one(self.server, ask)
            taken[f"{door}: answered"] = found.answered
            taken[f"{door}: claimed"] = found.claimed
            taken[f"{door}: finished"] = found.whole
        return taken


@contextmanager
def _insert(bare: Store) -> Iterator[Callable[[], object]]:
    """One row in a transaction of its own, with the driver and the durability of the store."""
    if bare.kind is Kind.SQLITE:
        with closing(sqlite3.connect(bare.directory / "plain.db", isolation_level=None)) as file:
            file.execute("PRAGMA journal_mode = WAL")
            file.execute("PRAGMA synchronous = FULL")
            file.execute(_TABLE)
            yield lambda: file.execute("INSERT INTO plain (body) VALUES ('look at this')")
        return
    with psycopg.connect(bare.address, autocommit=True) as server:
        server.execute(_TABLE.replace("PRIMARY KEY", "GENERATED ALWAYS AS IDENTITY PRIMARY KEY"))
        yield lambda: server.execute("INSERT INTO plain (body) VALUES ('look at this')")
