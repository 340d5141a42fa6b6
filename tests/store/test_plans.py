# ruff: noqa: SLF001 - a statement is its module's own, and none should be public only to be looked at
"""Query plans: what is asked with every wake is found by an index, however many rows there are.

The databases hold some thousand rows, so that their planners have a choice, and PostgreSQL has counted them.
"""

import json
import re
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest
from sqlalchemy import URL, Connection, Engine, Table, create_engine, insert
from sqlalchemy.pool import NullPool

from clew.kernel import RunEvent, WakeEvent, WakeState
from clew.store.engine.statement import POSTGRESQL, SQLITE, Statement, numbered
from clew.store.operations import carried_wakes, claim_sql, decisions, leases, pins, queue, run_state, steering
from clew.store.operations import runtimes as runtimes_op
from clew.store.operations import schedules as schedules_op
from clew.store.operations import sessions as sessions_op
from clew.store.operations import wakes as wakes_op
from clew.store.operations.carried_wakes import _pending as pending_wakes
from clew.store.operations.journal import _append as journal_append
from clew.store.operations.journal import _between as journal_page
from clew.store.schema.tables import agents, journal, lanes, machines, runs, runtimes, schedules, threads, wakes
from clew.store.schema.tables import sessions as kept_sessions
from clew.store.schema.version import upgrade

LANES, PER_LANE = 3000, 3
GROWING = {"runs", "wakes", "sessions", "journal", "schedules", "lanes", "threads", "marks"}
"""The tables that grow without end; none of them is ever read from end to end."""


# The databases are filled once, for all of them.
pytestmark = pytest.mark.xdist_group("plans")


@dataclass(frozen=True)
class Asked:
    """A statement with what it is asked for, and the columns of the index that must answer it."""

    statement: Statement
    table: str
    index: tuple[str, ...]
    values: dict[str, object]


ASKED = {
    "claim": Asked(claim_sql.queued, "runs", ("runtime_id", "rank", "id"), {"runtime": "rt-1", "most": 4}),
    "sessions": Asked(
        sessions_op.candidates, "sessions", ("lane_id", "scope_run", "generation"), {"lane": "lane-7", "scope": ""}
    ),
    "schedules": Asked(schedules_op.due_schedules, "schedules", ("next_due",), {"most": 100}),
    "strays": Asked(runtimes_op.strays, "runs", ("runtime_id", "rank", "id"), {"runtimes": ["rt-1"]}),
    "leases": Asked(leases.due_leases, "runs", ("lease_until",), {"most": 100}),
    "journal": Asked(
        journal_page, "journal", ("thread_id", "seq"), {"thread": "thread-7", "after": 2, "through": 9, "most": 50}
    ),
    "pending": Asked(pending_wakes, "wakes", ("lane_id", "accepted_at"), {"lane": "lane-7"}),
}


WITH_EVERY_WAKE = {
    "facts": wakes_op._facts,
    "facts-by-key": wakes_op._facts_by_key,
    "queue": queue._queue,
    "append": journal_append,
    "queued": claim_sql.queued,
    "carry": claim_sql.carry,
    "take": claim_sql.take,
    "hold": claim_sql.hold,
    "decision": decisions.keep_decision,
    "candidates": sessions_op.candidates,
    "pin": pins.append_session,
    "prompt": run_state._statement((RunEvent.OPEN, RunEvent.PROMPT)),
    "succeed": run_state._statement((RunEvent.SUCCEED,)),
    "serve": carried_wakes.let_go[WakeEvent.SERVE, carried_wakes.UnconfirmedSteer.WAITS_AGAIN],
    "pending": carried_wakes._pending,
    "call": steering._call,
    "live": steering._live,
    "due": schedules_op.due_schedules,
}


# ---------------------------------------------------------------- a full database


@pytest.fixture(scope="module", params=[SQLITE, f"{SQLITE}-counted", POSTGRESQL])
def engine(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Engine]:
    """Some thousand rows: most of them of runs that ended long ago, a few of what waits and goes."""
    if request.param.startswith(SQLITE):
        file = tmp_path_factory.mktemp("plans") / "clew.db"
        made = create_engine(f"sqlite:///{file}", isolation_level="AUTOCOMMIT", poolclass=NullPool)
        _fill(made, counted=request.param != SQLITE)
        yield made
        return
    server: URL = request.getfixturevalue("postgres")
    name = f"clew_{uuid.uuid4().hex}"
    admin = create_engine(server, isolation_level="AUTOCOMMIT", poolclass=NullPool)
    with admin.connect() as connection:
        connection.exec_driver_sql(f"CREATE DATABASE {name}")
    made = create_engine(server.set(database=name), isolation_level="AUTOCOMMIT", poolclass=NullPool)
    _fill(made, counted=True)
    yield made
    with admin.connect() as connection:
        connection.exec_driver_sql(f"DROP DATABASE {name} WITH (FORCE)")


@pytest.fixture
def connection(engine: Engine) -> Iterator[Connection]:
    """A transaction that leaves nothing behind."""
    with engine.connect() as opened:
        opened.exec_driver_sql("BEGIN")
        yield opened
        opened.exec_driver_sql("ROLLBACK")


def _fill(engine: Engine, counted: bool) -> None:
    with engine.connect() as connection:
        connection.exec_driver_sql("BEGIN")
        upgrade(connection)
        for table, rows in _rows().items():
            connection.execute(insert(table), rows)
        connection.exec_driver_sql("COMMIT")
        if counted:
            connection.exec_driver_sql("ANALYZE")


def _rows() -> dict[Table, list[dict[str, Any]]]:
    lane_names = [f"lane-{number}" for number in range(LANES)]
    many = [(number, lane, each) for number, lane in enumerate(lane_names) for each in range(PER_LANE)]
    return {
        machines: [{"id": "laptop", "name": "laptop"}],
        runtimes: [
            {"id": f"rt-{number}", "machine_id": "laptop", "provider": "loom", "home": f"/srv/{number}", "max_live": 50}
            for number in range(1, 11)
        ],
        agents: [
            {"id": f"agent-{number}", "name": f"agent-{number}", "provider": "loom", "home": "/srv", "max_live": 50}
            for number in range(40)
        ],
        threads: [{"id": f"thread-{number}", "kind": "issue", "created_at": 0.0} for number in range(LANES)],
        lanes: [
            {"id": lane, "agent_id": f"agent-{number % 40}", "thread_id": f"thread-{number}"}
            for number, lane in enumerate(lane_names)
        ],
        journal: [
            {
                "thread_id": f"thread-{number}",
                "seq": each + 1,
                "author_kind": "human",
                "author_name": "a person",
                "body": "look at this",
                "at": 1.0,
            }
            for number, _, each in many
        ],
        runs: [_run(number, lane, each) for number, lane, each in many],
        wakes: [_wake(number, lane, each) for number, lane, each in many],
        kept_sessions: [
            {
                "id": f"session-{number}-{each}",
                "lane_id": lane,
                "generation": each + 1,
                "provider": "loom",
                "runtime_id": "rt-1",
                "native_id": f"n-{number}-{each}",
                "cursor": "{}",
                "directory": "/srv",
                "run_id": f"run-{number}-{each}",
                "born_at": 1.0,
            }
            for number, lane, each in many
        ],
        schedules: [
            {
                "id": f"schedule-{number}-{each}",
                "lane_id": lane,
                "every": 60.0,
                "next_due": 1e12 if number % 100 or each else 1.0,
            }
            for number, lane, each in many
        ],
    }


def _run(number: int, lane: str, each: int) -> dict[str, Any]:
    """The last run waits in one lane of ten and goes in another; all others have ended."""
    plain = {
        "id": f"run-{number}-{each}",
        "number": number * PER_LANE + each + 1,
        "lane_id": lane,
        "agent_id": f"agent-{number % 40}",
        "runtime_id": f"rt-{number // 10 % 10 + 1}",
        "rank": float(number),
        "queued_at": float(each),
        "state": "succeeded",
        "ended_at": 9.0,
        "lease_until": None,
        "agent_place": None,
        "runtime_place": None,
        "session_id": f"session-{number}-{each}",
    }
    if each < PER_LANE - 1 or number % 10 > 1:
        return plain
    if number % 10 == 0:
        return {**plain, "state": "queued", "ended_at": None}
    live = {"state": "running", "lease_until": 1e12, "agent_place": number, "runtime_place": number}
    return {**plain, **live, "ended_at": None}


def _wake(number: int, lane: str, each: int) -> dict[str, Any]:
    waits = each == PER_LANE - 1 and number % 10 == 0
    return {
        "id": f"wake-{number}-{each}",
        "lane_id": lane,
        "thread_id": f"thread-{number}",
        "reason": "comment",
        "origin_kind": "human",
        "accepted_at": float(each),
        "state": WakeState.PENDING.value if waits else WakeState.SERVED.value,
        "run_id": None if waits else f"run-{number}-{each}",
        "ended_at": None if waits else 9.0,
        "entry": each + 1,
        "code": "code",
        "words": "words",
    }


# ---------------------------------------------------------------- reading plans


def scanned_and_used(connection: Connection, asked: Asked) -> tuple[set[str], set[str]]:
    """The tables that would be read from end to end, and the indexes that would be used."""
    dialect = connection.dialect.name
    text = asked.statement.sql(dialect)
    names = re.findall(r"%\((\w+)\)s" if dialect == POSTGRESQL else r"(?<!:):(\w+)", text)
    # What a statement brings along itself: what stands between the parts of a list, and a limit.
    values = {name: asked.values.get(name, "," if "_agg_" in name or "_concat_" in name else 20) for name in names}
    driver: Any = connection.connection.driver_connection
    if dialect == POSTGRESQL:
        ((plan,),) = driver.execute(f"EXPLAIN (FORMAT JSON) {text}", values).fetchall()
        return _of_postgresql((plan if isinstance(plan, list) else json.loads(plan))[0]["Plan"])
    listed = {name: json.dumps(value) if isinstance(value, list) else value for name, value in values.items()}
    return _of_sqlite([row[3] for row in driver.execute(f"EXPLAIN QUERY PLAN {text}", listed)], text)


def _of_postgresql(node: dict[str, Any]) -> tuple[set[str], set[str]]:
    scanned = {node["Relation Name"]} if node["Node Type"] == "Seq Scan" else set()
    used = {node["Index Name"]} if "Index Name" in node else set()
    for below in node.get("Plans", ()):
        more_scanned, more_used = _of_postgresql(below)
        scanned, used = scanned | more_scanned, used | more_used
    return scanned, used


def _of_sqlite(lines: list[str], text: str) -> tuple[set[str], set[str]]:
    """A scan that goes by an index is one all the same: it reads every row, unless the index holds only what
    is live or waits."""
    aliases = {alias: table for table, alias in re.findall(r"(\w+) AS (\w+)", text)}
    few = r"(?! USING INDEX (?:uq_runs_agent_place|ix_approvals_pending)\b)"
    scanned = {name for line in lines for name in re.findall(rf"^SCAN (\w+){few}", line)}
    used = {name for line in lines for name in re.findall(r"^SEARCH \w+ USING (?:COVERING )?INDEX (\w+)", line)}
    used |= {f"pk_{name}" for line in lines for name in re.findall(r"^SEARCH (\w+) USING PRIMARY KEY", line)}
    return {aliases.get(name, name) for name in scanned}, used


def index_of(connection: Connection, asked: Asked) -> str:
    """The index over just these columns, by the name it has in this database."""
    if connection.dialect.name == POSTGRESQL:
        rows = connection.exec_driver_sql(
            "SELECT c.relname, string_agg(a.attname, ',' ORDER BY k.at) FROM pg_index i"
            " JOIN pg_class c ON c.oid = i.indexrelid CROSS JOIN unnest(i.indkey) WITH ORDINALITY AS k(attribute, at)"
            " JOIN pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = k.attribute"
            f" WHERE i.indrelid = '{asked.table}'::regclass GROUP BY c.relname"
        )
        found = {name: tuple(columns.split(",")) for name, columns in rows}
    else:
        names = {row[1]: row[3] for row in connection.exec_driver_sql(f"PRAGMA index_list({asked.table})")}
        columns_of = {
            name: tuple(row[2] for row in connection.exec_driver_sql(f"PRAGMA index_info({name})")) for name in names
        }
        # A table that is kept in the order of its key has no index for it: it is one.
        found = {
            f"pk_{asked.table}" if names[name] == "pk" and _is_its_key(connection, asked.table) else name: columns
            for name, columns in columns_of.items()
        }
    (index,) = [str(name) for name, columns in found.items() if columns == asked.index]
    return index


def _is_its_key(connection: Connection, table: str) -> bool:
    made = connection.exec_driver_sql(f"SELECT sql FROM sqlite_master WHERE name = '{table}'").scalar_one()
    return "WITHOUT ROWID" in str(made).upper()


def assert_found_by_index(connection: Connection, asked: Asked, index: str) -> None:
    scanned, used = scanned_and_used(connection, asked)
    assert index in used
    assert not scanned & GROWING


# ---------------------------------------------------------------- tests


@pytest.mark.case("R11")
@pytest.mark.parametrize("name", ASKED)
def test_it_is_found_by_its_index(connection: Connection, name: str) -> None:
    asked = ASKED[name]
    assert_found_by_index(connection, asked, index_of(connection, asked))


@pytest.mark.parametrize("name", ASKED)
def test_without_its_index_it_would_not_be(connection: Connection, name: str) -> None:
    """Or the test above could not fail."""
    asked = ASKED[name]
    index = index_of(connection, asked)
    _take_away(connection, asked.table, index)
    with pytest.raises(AssertionError):
        assert_found_by_index(connection, asked, index)


def _take_away(connection: Connection, table: str, index: str) -> None:
    if connection.dialect.name == POSTGRESQL:
        if index.startswith("ix_"):
            connection.exec_driver_sql(f"DROP INDEX {index}")
        else:
            connection.exec_driver_sql(f"ALTER TABLE {table} DROP CONSTRAINT {index}")
    elif index.startswith("ix_"):
        connection.exec_driver_sql(f"DROP INDEX {index}")
    else:
        # A key of SQLite goes only with its table.
        connection.exec_driver_sql(f"CREATE TABLE kept AS SELECT * FROM {table}")
        connection.exec_driver_sql(f"DROP TABLE {table}")
        connection.exec_driver_sql(f"ALTER TABLE kept RENAME TO {table}")


@pytest.mark.case("R11")
@pytest.mark.parametrize("name", WITH_EVERY_WAKE)
def test_nothing_that_grows_is_read_from_end_to_end(connection: Connection, name: str) -> None:
    """The plan that a connection keeps for a prepared statement, whatever values it is asked with."""
    statement = WITH_EVERY_WAKE[name]
    driver: Any = connection.connection.driver_connection
    if connection.dialect.name == POSTGRESQL:
        sql = numbered(statement.sql(POSTGRESQL)).sql.decode()
        ((plan,),) = driver.execute(f"EXPLAIN (GENERIC_PLAN, FORMAT JSON) {sql}").fetchall()
        scanned, _ = _of_postgresql((plan if isinstance(plan, list) else json.loads(plan))[0]["Plan"])
    elif name == "queue":
        pytest.skip("SQLite explains what it would ask if a run's id changed, which it does not")
    else:
        text = statement.text(SQLITE)
        given = {each: text.fixed.get(each) for each in re.findall(r"(?<!:):(\w+)", text.sql)}
        scanned, _ = _of_sqlite([row[3] for row in driver.execute(f"EXPLAIN QUERY PLAN {text.sql}", given)], text.sql)
    assert not scanned & GROWING


def test_a_scan_is_seen_as_one() -> None:
    assert _of_sqlite(["SCAN of_agent", "SEARCH w USING INDEX ix_w (a=?)"], "FROM runs AS of_agent") == (
        {"runs"},
        {"ix_w"},
    )
    assert _of_sqlite(["SCAN runs USING INDEX ix_runs_lane"], "FROM runs") == ({"runs"}, set())
    below = {"Node Type": "Seq Scan", "Relation Name": "wakes"}
    above = {"Node Type": "Index Scan", "Index Name": "ix_runs_queue", "Plans": [below]}
    assert _of_postgresql(above) == ({"wakes"}, {"ix_runs_queue"})
