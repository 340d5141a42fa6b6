"""A long history, put in with a few statements: finished runs with their wakes and decisions, and sessions.

Every lane has the same share of it, and at least as many sessions as a decision looks at: a claim finds the same in
each database, however much else is there.
"""

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psycopg

from bench.store.databases import Kind, driver_address, opened
from bench.store.scene import ADA, HOME, PROVIDER, RUNTIME, furnish
from clew.kernel import (
    CANDIDATES,
    Cursor,
    NativeId,
    Outcome,
    RunState,
    Served,
    ThreadId,
    WakeState,
    lane_id,
    write_cursor,
)
from clew.store.schema.version import upgrade

LONG = ThreadId("long")
"""The thread whose page is read."""

_SAID = 20


@dataclass(frozen=True, slots=True)
class Size:
    lanes: int
    runs: int
    sessions: int
    entries: int

    def thread(self, number: int) -> ThreadId:
        return ThreadId(f"filled-{number}")


def fill(kind: Kind, address: str, size: Size) -> None:
    """Make the database at that address, with that history."""
    assert size.sessions >= size.lanes * CANDIDATES
    with opened(address) as database:
        database.do(upgrade)
        furnish(database)
    with _loading(kind, address) as connection:
        _fill(kind, connection, size)


def _fill(kind: Kind, connection: Any, size: Size) -> None:
    mark = "?" if kind is Kind.SQLITE else "%s"
    connection.execute("CREATE TABLE filled (n integer PRIMARY KEY, lane text NOT NULL, thread text NOT NULL)")
    named = [(number, size.thread(number)) for number in range(size.lanes)]
    connection.cursor().executemany(
        f"INSERT INTO filled VALUES ({mark}, {mark}, {mark})",
        [(number, lane_id(ADA, thread), thread) for number, thread in named],
    )
    for statement in _statements(kind, size):
        connection.execute(statement)
    connection.execute("DROP TABLE filled")


def _statements(kind: Kind, size: Size) -> Iterator[str]:
    before, after = write_cursor(Cursor(1, NativeId("@"))).split("@")
    run, wake, session = (f"'{prefix}_00' || (10000000 + i)" for prefix in ("rn", "wk", "ss"))
    of_run = f"'ss_00' || (10000000 + i % {size.sessions})"
    own = f"JOIN filled ON filled.n = i % {size.lanes}"
    yield "INSERT INTO threads (id, kind, created_at) SELECT thread, 'issue', 0 FROM filled"
    yield f"INSERT INTO threads (id, kind, created_at) VALUES ('{LONG}', 'issue', 0)"
    yield f"INSERT INTO lanes (id, agent_id, thread_id) SELECT lane, '{ADA}', thread FROM filled"
    said = "(thread_id, seq, author_kind, author_name, body, size, at)"
    yield (
        f"INSERT INTO journal {said} SELECT thread, i + 1, 'human', 'a person', 'look at this', 3, 1.0"
        f" FROM filled CROSS JOIN {_numbers(kind, _SAID)}"
    )
    yield (
        f"INSERT INTO journal {said} SELECT '{LONG}', i + 1, 'human', 'a person', 'look at this', 3, 1.0"
        f" FROM {_numbers(kind, size.entries)}"
    )
    yield (
        "INSERT INTO runs (id, lane_id, agent_id, runtime_id, state, attempt, rank, queued_at, claimed_by, agent_place,"
        " runtime_place, session_id, prompt_sent, told, landing, claim, outcome, words, started_at, ended_at)"
        f" SELECT {run}, lane, '{ADA}', '{RUNTIME}', '{RunState.SUCCEEDED}', 1, i, i, 'bench', 1, 1, {of_run}, 1,"
        f" {_SAID}, '{{}}', 'resumed', 'run:answered', 'The agent answered.', i, i + 1"
        f" FROM {_numbers(kind, size.runs)} {own}"
    )
    yield (
        "INSERT INTO wakes (id, lane_id, thread_id, reason, origin_kind, entry, accepted_at, state, run_id, code,"
        f" words, ended_at) SELECT {wake}, lane, thread, 'comment', 'human', {_SAID}, i, '{WakeState.SERVED}', {run},"
        f" '{Served.BY_RUN.code}', 'Run served it.', i + 1 FROM {_numbers(kind, size.runs)} {own}"
    )
    yield (
        "INSERT INTO decisions (run_id, attempt, step, outcome, code, record, at)"
        f" SELECT {run}, 1, 0, '{Outcome.RESUME}', 'session:fits', '{{}}', i FROM {_numbers(kind, size.runs)}"
    )
    yield (
        "INSERT INTO sessions (id, lane_id, generation, provider, runtime_id, native_id, cursor, directory, seen, mode,"
        f" turns, run_id, born_at, proven_at) SELECT {session}, lane, i / {size.lanes} + 1, '{PROVIDER}', '{RUNTIME}',"
        f" 'native-' || i, '{before}native-' || i || '{after}', '{HOME}', {_SAID}, 'read', 5, {run}, i, i + 1"
        f" FROM {_numbers(kind, size.sessions)} {own}"
    )


def _numbers(kind: Kind, count: int) -> str:
    """From zero on, in a column `i`."""
    if kind is Kind.POSTGRESQL:
        return f"generate_series(0, {count - 1}) AS numbers(i)"
    counted = f"SELECT 0 AS i UNION ALL SELECT i + 1 FROM counted WHERE i < {count - 1}"
    return f"(WITH RECURSIVE counted AS ({counted}) SELECT i FROM counted)"


@contextmanager
def _loading(kind: Kind, address: str) -> Iterator[Any]:
    """A connection for loading alone: it need not survive a crash, and its rows are right by their making."""
    if kind is Kind.SQLITE:
        with closing(sqlite3.connect(Path(address), isolation_level=None)) as file:
            file.execute("PRAGMA journal_mode = OFF")
            file.execute("PRAGMA synchronous = OFF")
            file.execute("PRAGMA cache_size = -400000")
            file.execute("BEGIN")
            yield file
            file.execute("COMMIT")
        return
    with psycopg.connect(driver_address(address), autocommit=True) as server:
        server.execute("SET session_replication_role = replica")
        server.execute("BEGIN")
        yield server
        server.execute("COMMIT")
        # The server does this by itself after a while.
        server.execute("VACUUM ANALYZE")
