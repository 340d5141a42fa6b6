"""A long history, inserted with a few statements: finished runs with their wakes and decisions, and sessions.

A real job is done first, and its rows are the model for all others. Every lane has the same share of the history, and
at least as many sessions as a decision reads, so a claim finds the same in each database, however much else is there.
"""

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psycopg

from bench.server import Server
from bench.store.agent import NAME
from bench.store.databases import Kind, Store
from bench.wakes import served
from clew.kernel import CANDIDATES, AgentId, Cursor, NativeId, Outcome, ThreadId, lane_id, write_cursor

LONG = "long"
"""The thread whose page is read."""

_SAID = 20


@dataclass(frozen=True, slots=True)
class Size:
    lanes: int
    runs: int
    sessions: int
    entries: int

    def thread(self, number: int) -> str:
        return f"filled-{number}"


def fill(store: Store, size: Size) -> None:
    """Give the empty store that history. No server may be running on it."""
    assert size.sessions >= size.lanes * CANDIDATES
    with store.new_server() as server:
        _first_job(server)
    with _loading(store) as connection:
        model = connection.execute(
            "SELECT sessions.id, sessions.run_id, lanes.id, lanes.agent_id, lanes.thread_id, wakes.id FROM sessions"
            " JOIN lanes ON lanes.id = sessions.lane_id JOIN wakes ON wakes.lane_id = lanes.id"
        ).fetchone()
        _fill(store.kind, connection, size, _Model(*model))


@dataclass(frozen=True, slots=True)
class _Model:
    """The ids of the rows of the first job."""

    session: str
    run: str
    lane: str
    agent: str
    thread: str
    wake: str


def _first_job(server: Server) -> None:
    ref = server.post("/chats", {"agent": NAME})["ref"]
    served(server, [server.post(f"/threads/{ref}/words", {"text": "look at this"})["wake"]["id"]])


def _fill(kind: Kind, connection: Any, size: Size, model: _Model) -> None:
    mark = "?" if kind is Kind.SQLITE else "%s"
    connection.execute("CREATE TABLE filled (n integer PRIMARY KEY, lane text NOT NULL, thread text NOT NULL)")
    named = [(number, size.thread(number)) for number in range(size.lanes)]
    connection.cursor().executemany(
        f"INSERT INTO filled VALUES ({mark}, {mark}, {mark})",
        [(number, lane_id(AgentId(model.agent), ThreadId(thread)), thread) for number, thread in named],
    )
    for statement in _statements(kind, connection, size, model):
        connection.execute(statement)
    connection.execute("DROP TABLE filled")


def _statements(kind: Kind, connection: Any, size: Size, model: _Model) -> Iterator[str]:
    before, after = write_cursor(Cursor(1, NativeId("@"))).split("@")
    run, wake, session = (f"'{prefix}_00' || (10000000 + i)" for prefix in ("rn", "wk", "ss"))
    of_run = f"'ss_00' || (10000000 + i % {size.sessions})"
    own = f"JOIN filled ON filled.n = i % {size.lanes}"
    runs, sessions = (f"{_numbers(kind, count)} {own}" for count in (size.runs, size.sessions))

    def copied(table: str, which: str, changed: dict[str, str], source: str) -> str:
        """One row for each of the source's, like the model's but for what is changed."""
        columns = [each[0] for each in connection.execute(f"SELECT * FROM {table} WHERE 1 = 0").description]
        values = ", ".join(changed.get(column, f"model.{column}") for column in columns)
        return (
            f"INSERT INTO {table} ({', '.join(columns)}) SELECT {values}"
            f" FROM {source} CROSS JOIN (SELECT * FROM {table} WHERE {which}) AS model"
        )

    of_thread, of_lane = f"id = '{model.thread}'", f"id = '{model.lane}'"
    yield copied("threads", of_thread, {"id": "thread", "number": "NULL"}, "filled")
    yield copied("threads", of_thread, {"id": f"'{LONG}'", "number": "NULL"}, _numbers(kind, 1))
    yield copied("lanes", of_lane, {"id": "lane", "thread_id": "thread"}, "filled")
    first = f"thread_id = '{model.thread}' AND seq = 1"
    entry = {"thread_id": "thread", "seq": "i + 1"}
    yield copied("journal", first, entry, f"filled CROSS JOIN {_numbers(kind, _SAID)}")
    yield copied("journal", first, {**entry, "thread_id": f"'{LONG}'"}, _numbers(kind, size.entries))
    at = {"queued_at": "i", "started_at": "i", "ended_at": "i + 1"}
    changed = {"id": run, "lane_id": "lane", "rank": "i", "session_id": of_run, "told": str(_SAID), **at}
    yield copied("runs", f"id = '{model.run}'", changed, runs)
    changed = {"id": wake, "lane_id": "lane", "thread_id": "thread", "run_id": run, "entry": str(_SAID)}
    yield copied("wakes", f"id = '{model.wake}'", {**changed, "accepted_at": "i", "ended_at": "i + 1"}, runs)
    yield (
        "INSERT INTO decisions (run_id, attempt, step, outcome, code, record, at)"
        f" SELECT {run}, 1, 0, '{Outcome.RESUME}', 'session:fits', '{{}}', i FROM {_numbers(kind, size.runs)}"
    )
    native = {"native_id": "'native-' || i", "cursor": f"'{before}native-' || i || '{after}'", "seen": str(_SAID)}
    generation = {"id": session, "lane_id": "lane", "generation": f"i / {size.lanes} + 1", "run_id": run}
    yield copied(
        "sessions", f"id = '{model.session}'", {**native, **generation, "born_at": "i", "proven_at": "i + 1"}, sessions
    )


def _numbers(kind: Kind, count: int) -> str:
    """From zero on, in a column `i`."""
    if kind is Kind.POSTGRESQL:
        return f"generate_series(0, {count - 1}) AS numbers(i)"
    counted = f"SELECT 0 AS i UNION ALL SELECT i + 1 FROM counted WHERE i < {count - 1}"
    return f"(WITH RECURSIVE counted AS ({counted}) SELECT i FROM counted)"


@contextmanager
def _loading(store: Store) -> Iterator[Any]:
    """A connection for loading only: it need not survive a crash, and its rows satisfy every constraint as made."""
    if store.kind is Kind.SQLITE:
        with closing(sqlite3.connect(Path(store.address), isolation_level=None)) as file:
            file.execute("PRAGMA journal_mode = OFF")
            file.execute("PRAGMA synchronous = OFF")
            file.execute("PRAGMA cache_size = -400000")
            file.execute("BEGIN")
            yield file
            file.execute("COMMIT")
        return
    with psycopg.connect(store.address, autocommit=True) as server:
        server.execute("SET session_replication_role = replica")
        server.execute("BEGIN")
        yield server
        server.execute("COMMIT")
        # Autovacuum would do it after a while.
        server.execute("VACUUM ANALYZE")
