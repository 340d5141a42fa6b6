"""Search over many entries, on both databases, asked of a server by its API."""

import itertools
import random
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any
from urllib.parse import urlencode

from sqlalchemy import Connection, insert

from bench.process import progress
from bench.server import Server
from bench.store.databases import Ground, Kind, Store
from bench.table import Table
from bench.timing import milliseconds, percentile
from clew.store.engine.database import Database
from clew.store.engine.open import open_database
from clew.store.operations.search_index import index_next
from clew.store.schema.tables import agents, journal, threads
from clew.store.schema.version import upgrade

PART = "search"
FULL, SMALL = 1_000_000, 20_000
WANTED = 100.0
"""Milliseconds of one search, in 19 cases of 20."""

_SETTLE = 5.0
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
            texts = _Texts()
            speed = _prepare(store, texts, entries)
            notes.append(f"{kind} indexed {speed:,.0f} entries a second.")
            with store.server() as running:
                # What it looks for in the background at its start is found by then.
                time.sleep(_SETTLE)
                _measure(table, kind, running, texts)
    table.note = f"{entries:,} entries of 10 to 70 words, {_ROUNDS} rounds of each search. {' '.join(notes)}"
    table.note += f" {place.versions()}."
    return table


def _prepare(store: Store, texts: "_Texts", entries: int) -> float:
    """Fills the empty database; returns how many entries were indexed in a second."""
    database = open_database(store.address)
    try:
        database.do(upgrade)
        progress(f"  {store.kind}: writing {entries:,} entries ...")
        _fill(database, texts, entries)
        progress(f"  {store.kind}: indexing ...")
        began = time.monotonic()
        _index(database)
        return entries / (time.monotonic() - began)
    finally:
        database.close()


def _measure(table: Table, kind: Kind, running: Server, texts: "_Texts") -> None:
    floor = [milliseconds(running.health) for _ in range(_ROUNDS)]
    shown = [f"{each:.1f}" for each in (floor[0], percentile(floor, 0.5), percentile(floor, 0.95))]
    table.add(kind.value, "a request that does nothing (/health)", "", *shown, "")
    for name, asked in _searches(texts).items():
        path, found = f"/search?{urlencode({**asked, 'limit': _PAGE})}", list[Any]()

        def once(path: str = path, found: list[Any] = found) -> None:
            found.append(running.get(path)["found"])

        taken = [milliseconds(once) for _ in range(_ROUNDS)]
        middle, slow = percentile(taken, 0.5), percentile(taken, 0.95)
        wanted = table.judge(f"{kind}: {name}", slow <= WANTED, f"at most {WANTED:.0f}", f"{slow:.0f}")
        table.add(kind.value, name, str(len(found[0])), f"{taken[0]:.1f}", f"{middle:.1f}", f"{slow:.1f}", wanted)


def _searches(texts: "_Texts") -> Mapping[str, Mapping[str, str]]:
    common, second, middle, rare = (texts.words[rank] for rank in (0, 3, 500, 30_000))
    return {
        "a word that most entries have": {"q": common},
        "two such words": {"q": f"{common} {second}"},
        "a word that few entries have": {"q": rare},
        "a common and a rare word": {"q": f"{common} {rare}"},
        "two middling words": {"q": f"{middle} {texts.words[900]}"},
        "a phrase of common words": {"q": f'"{common} {second}"'},
        "a phrase of middling words": {"q": f'"{texts.words[100]} {texts.words[200]}"'},
        "a path (src/app.py)": {"q": texts.path(7)},
        "a prefix of three letters": {"q": "con*"},
        "a longer prefix": {"q": f"{rare[:5]}*"},
        "without a common word": {"q": f"{middle} -{common}"},
        "a common word in one thread": {"q": common, "thread": _thread(0)},
        "a common word by one agent": {"q": common, "agent": "agent-3"},
        "a word that is nowhere": {"q": "nowhere"},
    }


def _thread(number: int) -> str:
    return f"th_{number:06}"


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
    made = [{"id": _thread(number), "kind": "issue", "title": "", "created_at": 1.0} for number in range(count)]
    database.do(_inserting(threads, made))
    for first in range(0, entries, _AT_ONCE):
        numbers = range(first, min(first + _AT_ONCE, entries))
        database.do(_inserting(journal, [_entry(number, count, texts) for number in numbers]))


def _entry(number: int, count: int, texts: _Texts) -> Entry:
    return {
        "thread_id": _thread(number % count),
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
