"""A short and a long thread that end alike: people's messages, and agents' answers of runs. By the API it would take
minutes, so they are written into the database; a real message and its run are the model."""

import sqlite3
import time
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from itertools import cycle, islice
from pathlib import Path
from typing import Any

from bench.process import PATIENCE, Failed
from bench.server import Server, server
from bench.wakes import served

_SECTION = """## What I found in part {part}

The address must survive the redirect, and it must **never** lead to another site. `login.py` reads `next`, checks that
it stays here, and ignores it otherwise, with a line in the log. Nothing else used it, so nothing else has changed.

- a foreign address is ignored
- two slashes are one, because browsers read them as another site
- the test says so, see `tests/test_login.py`

```python
def target(query: dict[str, str]) -> str:
    wanted = query.get("next", "/")
    return wanted if wanted.startswith("/") and not wanted.startswith("//") else "/"
```

| address | goes to |
|---|---|
| `/basket` | `/basket` |
| `https://example.org` | `/` |

"""
_ASKED = "What about `//example.org`? Browsers read that as another site. Please look at the other callers, too. " * 2
_SECTIONS = (1, 3, 6, 14, 20, 5, 11, 26, 18)
"""Of the answers, one after the other: from a paragraph to a report."""

AGENT = "teller"

Row = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Threads:
    """A short and a long one: what they are called, their entries, and the bytes of the texts of the long one."""

    refs: Sequence[str]
    entries: Sequence[int]
    size: int

    @property
    def names(self) -> Sequence[str]:
        return [f"{count:,} entries" for count in self.entries]


@contextmanager
def with_threads(root: Path, entries: Sequence[int]) -> Iterator[tuple[Server, Threads]]:
    """A server that has such threads, whose agent answers whatever it is told, and the search has all of it."""
    data, home = root / "threads", root / "home"
    home.mkdir()
    environment = {"HOME": str(home)}
    with server(data, environment=environment) as running:
        program = ["/bin/sh", "-c", "cat >/dev/null; echo I have looked at it."]
        running.post("/agents", {"name": AGENT, "provider": "command", "program": program, "mode": "full"})
        threads = [running.post("/chats", {"agent": AGENT}) for _ in entries]
        for each in threads:
            served(running, [running.post(f"/threads/{each['ref']}/words", {"text": _ASKED})["wake"]["id"]])
    with closing(sqlite3.connect(data / "clew.db")) as database, database:
        database.row_factory = sqlite3.Row
        size = max(_lengthen(database, each["id"], count) for each, count in zip(threads, entries, strict=True))
    with server(data, environment=environment) as running:
        _await_index(running)
        yield running, Threads([each["ref"] for each in threads], entries, size)


def _lengthen(database: sqlite3.Connection, thread: str, size: int) -> int:
    said, answered = (dict(row) for row in database.execute("SELECT * FROM journal WHERE thread_id = ?", (thread,)))
    run = dict(database.execute("SELECT * FROM runs WHERE id = ?", (answered["run_id"],)).fetchone())
    decisions = [dict(row) for row in database.execute("SELECT * FROM decisions WHERE run_id = ?", (run["id"],))]
    (number,) = database.execute("SELECT MAX(number) FROM runs").fetchone()
    entries, runs, decided = list[Row](), list[Row](), list[Row]()
    # From the end, so that the newest of a short thread are those of a long one.
    texts = islice(cycle(_SECTIONS), size)
    for seq, sections in zip(range(size, 2, -1), texts, strict=False):
        at = answered["at"] + seq * 1e-3
        if seq % 2:
            entries.append({**said, "seq": seq, "at": at, "body": _ASKED})
            continue
        own = f"{run['id']}-{seq}"
        body = "".join(_SECTION.format(part=part) for part in range(sections))
        entries.append({**answered, "seq": seq, "at": at, "body": body, "run_id": own})
        times = dict.fromkeys(("queued_at", "started_at", "ended_at"), at - 5e-4)
        runs.append({**run, **times, "id": own, "number": number + seq, "rank": number + seq})
        decided += ({**each, "run_id": own, "at": at} for each in decisions)
    for table, rows in (("runs", runs), ("decisions", decided), ("journal", entries)):
        _insert(database, table, rows)
    return sum(len(entry["body"].encode()) for entry in entries)


def _insert(database: sqlite3.Connection, table: str, rows: Sequence[Row]) -> None:
    columns = list(rows[0])
    values = ", ".join(f":{column}" for column in columns)
    database.executemany(f"INSERT INTO {table} ({', '.join(columns)}) VALUES ({values})", rows)


def _await_index(running: Server) -> None:
    """Until the search has all of it: a server that still indexes it is slower."""
    until = time.monotonic() + 5 * PATIENCE
    while running.get("/search?q=address&limit=1")["unindexed"]:
        if time.monotonic() > until:
            raise Failed(f"The texts were not indexed after {5 * PATIENCE:.0f} s.")
        time.sleep(0.2)
