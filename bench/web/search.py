"""Search over many entries, on both databases: `python -m bench.web.search --entries 1000000`."""

import argparse
import itertools
import os
import random
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from sqlalchemy import Connection, insert

from bench.process import run_benchmark
from bench.store.databases import Ground, Kind, ground
from bench.table import Table, keep
from bench.timing import milliseconds, percentile
from clew.kernel import AgentId, ThreadId
from clew.store.engine.database import Database
from clew.store.engine.open import open_database
from clew.store.operations.search_index import index_next
from clew.store.queries.search import SearchFor, search
from clew.store.schema.tables import agents, journal, threads
from clew.store.schema.version import upgrade
from clew.store.search.query import read_query

PART = "search"
FULL, SMALL = 1_000_000, 20_000
WANTED = 100.0
"""Milliseconds of one search, in 19 cases of 20."""

_PAGE = 20
_ROUNDS = 20
_PER_THREAD = 100
_AGENTS = 20
_AT_ONCE = 5_000
_PARTS = (
    "con",
    "ta",
    "re",
    "mi",
    "lo",
    "pro",
    "ge",
    "st",
    "ver",
    "run",
    "ap",
    "le",
    "in",
    "ex",
    "du",
    "ba",
    "fo",
    "ki",
)

Entry = dict[str, Any]


def measure(place: Ground, entries: int) -> Table:
    table = Table(PART, ("database", "search", "found", "first ms", "p50 ms", "p95 ms", "wanted"))
    notes = []
    for kind in Kind:
        with place.store(kind) as store:
            database = open_database(store.address)
            try:
                texts = _Texts()
                database.do(upgrade)
                _say(f"{kind}: writing {entries:,} entries ...")
                _fill(database, texts, entries)
                _say(f"{kind}: indexing ...")
                began = time.monotonic()
                _index(database)
                notes.append(f"{kind} indexed {entries / (time.monotonic() - began):,.0f} entries a second.")
                _measure(table, kind, database, texts)
            finally:
                database.close()
    table.note = f"{entries:,} entries of 10 to 70 words, {_ROUNDS} rounds of each search. {' '.join(notes)}"
    return table


def _measure(table: Table, kind: Kind, database: Database, texts: "_Texts") -> None:
    for name, asked in _searches(texts).items():
        found = [0]

        def once(connection: Connection, asked: SearchFor = asked, found: list[int] = found) -> None:
            found[0] = len(search(connection, asked, _PAGE).found)

        taken = [milliseconds(lambda once=once: database.read(once)) for _ in range(_ROUNDS)]  # type: ignore[misc]
        middle, slow = percentile(taken, 0.5), percentile(taken, 0.95)
        wanted = table.judge(f"{kind}: {name}", slow <= WANTED, f"at most {WANTED:.0f}", f"{slow:.0f}")
        table.add(kind.value, name, str(found[0]), f"{taken[0]:.1f}", f"{middle:.1f}", f"{slow:.1f}", wanted)


def _searches(texts: "_Texts") -> Mapping[str, SearchFor]:
    common, second, middle, rare = (texts.words[rank] for rank in (0, 3, 500, 30_000))

    def plain(query: str, **where: Any) -> SearchFor:
        return SearchFor(read_query(query), **where)

    return {
        "a word that most entries have": plain(common),
        "two such words": plain(f"{common} {second}"),
        "a word that few entries have": plain(rare),
        "a common and a rare word": plain(f"{common} {rare}"),
        "two middling words": plain(f"{middle} {texts.words[900]}"),
        "a phrase of common words": plain(f'"{common} {second}"'),
        "a phrase of middling words": plain(f'"{texts.words[100]} {texts.words[200]}"'),
        "a path (src/app.py)": plain(texts.path(7)),
        "a prefix of three letters": plain("con*"),
        "a longer prefix": plain(f"{rare[:5]}*"),
        "without a common word": plain(f"{middle} -{common}"),
        "a common word in one thread": plain(common, thread=ThreadId("thread-0")),
        "a common word by one agent": plain(common, agent=AgentId("agent-3")),
        "a word that is nowhere": plain("nowhere"),
    }


class _Texts:
    """Made-up texts with the distribution of words that languages have: the second word is half as frequent as the
    first, and so on. The same in every run."""

    def __init__(self) -> None:
        self._chance = random.Random(18)
        made = ("".join(self._chance.choices(_PARTS, k=self._chance.randint(2, 5))) for _ in itertools.count())
        self.words = list(itertools.islice(_distinct(made), 50_000))
        self._weights = list(itertools.accumulate(1 / (rank + 3) for rank in range(len(self.words))))

    def path(self, number: int) -> str:
        return f"src/{self.words[number % 300]}/{self.words[number % 700]}.py"

    def entry(self) -> str:
        words = self._chance.choices(self.words, cum_weights=self._weights, k=self._chance.randint(10, 70))
        if self._chance.random() < 0.2:
            words.insert(self._chance.randrange(len(words)), self.path(self._chance.randrange(2_000)))
        return " ".join(words)


def _distinct(words: Iterator[str]) -> Iterator[str]:
    seen: set[str] = set()
    for word in words:
        if word not in seen:
            seen.add(word)
            yield word


def _fill(database: Database, texts: _Texts, entries: int) -> None:
    agent = {"provider": "none", "home": "/nowhere"}
    rows = [{"id": f"agent-{number}", "name": f"agent-{number}", **agent} for number in range(_AGENTS)]
    database.do(_inserting(agents, rows))
    count = -(-entries // _PER_THREAD)
    made = [{"id": f"thread-{number}", "kind": "issue", "title": "", "created_at": 1.0} for number in range(count)]
    database.do(_inserting(threads, made))
    for first in range(0, entries, _AT_ONCE):
        numbers = range(first, min(first + _AT_ONCE, entries))
        database.do(_inserting(journal, [_entry(number, count, texts) for number in numbers]))


def _entry(number: int, count: int, texts: _Texts) -> Entry:
    return {
        "thread_id": f"thread-{number % count}",
        "seq": number // count + 1,
        "author_kind": "agent",
        "author_name": "an agent",
        "agent_id": f"agent-{number % _AGENTS}",
        "body": texts.entry(),
        "at": 1.7e9 + number,
    }


def _inserting(table: Any, rows: Sequence[Entry]) -> Callable[[Connection], None]:
    def write(connection: Connection) -> None:
        connection.execute(insert(table), rows)

    return write


def _index(database: Database) -> None:
    while database.do(index_next).more:
        pass


def _say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.web.search", description="How long a search takes.")
    parser.add_argument("--entries", type=int, default=SMALL, help=f"default: {SMALL:,}; {FULL:,} is what is wanted")
    parser.add_argument("--write", action="store_true", help="keep the table in docs/performance.md")
    asked = parser.parse_args()
    load = os.getloadavg()[0]
    with ground() as place:
        table = measure(place, asked.entries)
        about = f"{os.cpu_count()} cores, {place.versions()}"
    table.note += f"\n\n{about}; load average {load:.1f} before, {os.getloadavg()[0]:.1f} after."
    print(f"\n{table.text()}\n", flush=True)
    if asked.write:
        keep([(table.part, table.text())])
    for row in table.missed:
        print(f"missed: {row}")
    return 1 if table.missed else 0


if __name__ == "__main__":
    raise SystemExit(run_benchmark(main))
