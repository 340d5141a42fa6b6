"""Query plans of what is shown: an index finds every page and list, however long the history is."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import pytest
from sqlalchemy import Connection, Engine, Table, insert

from clew.store.engine.statement import POSTGRESQL, SQLITE, Statement
from clew.store.operations import approvals as kept
from clew.store.operations import claim_sql, entry_readers, marks, schedules, waited_out
from clew.store.operations import wakes as reading_wakes
from clew.store.operations import workspaces as places
from clew.store.queries import agents as reading_agents
from clew.store.queries import (
    approvals,
    decisions,
    entries,
    failures,
    logs,
    names,
    projects,
    run_log,
    runs,
    runtimes,
    sessions,
    threads,
    usage,
    waits,
    wakes,
    work,
)
from clew.store.queries.runs import LAST
from clew.store.schema.tables import approvals as kept_approvals
from clew.store.schema.tables import decisions as kept_decisions
from clew.store.schema.tables import events as kept_events
from tests.store.test_plans import GROWING as GROWS
from tests.store.test_plans import LANES, PER_LANE, Asked, engine, scanned_and_used

__all__ = ["engine"]

pytestmark = pytest.mark.xdist_group("plans")

GROWING = GROWS | {"events", "decisions", "approvals"}


@dataclass(frozen=True)
class Shown:
    """A statement with what it is asked for, and the index that must answer it; None where that is a table's key."""

    statement: Statement
    index: str | None
    values: Mapping[str, object]


BEFORE = {"before": LAST, "most": 20}
BEFORE_THREAD = {
    "before_at": 1e15,
    "before": "",
    "most": 20,
    "kind": "issue",
    "state": "open",
    "archived": 0,
    "reader": "user",
}
_by_number = names.thread_statements[False][1]

SHOWN = {
    "runs": Shown(runs.newest, None, BEFORE),
    "runs of an agent": Shown(runs.of_agent, "ix_runs_agent", {**BEFORE, "agent": "agent-7"}),
    "runs of a lane": Shown(runs.of_lane, "ix_runs_lane", {**BEFORE, "lane": "lane-7", "before_at": 1e15}),
    "runs that failed": Shown(runs.unserved, "ix_runs_unserved", {**BEFORE, "state": "failed"}),
    "failures that nobody followed up": Shown(failures.left_open, "ix_runs_lane", {"runs": ["run-7-1", "run-8-1"]}),
    "runs that wait for their model": Shown(
        waited_out.let_go, "ix_runs_waited_out", {"agent": "agent-7", "runtime": "rt-7"}
    ),
    "a run": Shown(runs.one, None, {"run": "run-7-1", "most": 1}),
    "a run by its beginning": Shown(names.runs_beginning, None, {"first": "run-7", "last": "run-7zz"}),
    "a run by its number": Shown(names.run_numbered, "uq_runs_number", {"number": 7}),
    "what runs have used": Shown(usage.used_by_runs, "ix_events_used", {"runs": ["run-7-1", "run-8-1"]}),
    "what a thread has used": Shown(usage.used_in_thread, "ix_events_used", {"thread": "thread-7"}),
    "decisions of runs": Shown(runs.decisions_of_runs, None, {"runs": ["run-7-1", "run-8-1"]}),
    "runs of a lane from one on": Shown(logs.runs_from, "ix_runs_lane", {"lane": "lane-7", "first": 7}),
    "the newest runs of a lane": Shown(logs.newest_of_lane, "ix_runs_lane", {"lane": "lane-7"}),
    "the thread of a run": Shown(logs.run_of_thread, "uq_runs_number", {"number": 7}),
    "the end of a log": Shown(logs.last_line, None, {"run": "run-7-1"}),
    "the last lines of a log": Shown(run_log.end_of_log, None, {"run": "run-7-1", "most": 20}),
    "a log": Shown(run_log.log_of_run, None, {"run": "run-7-1", "after": 3, "most": 20}),
    "threads": Shown(threads.listed, "ix_threads_listed", BEFORE_THREAD),
    "threads of an agent": Shown(threads.listed_of_agent, "ix_threads_assignee", {**BEFORE_THREAD, "agent": "agent-7"}),
    "unread threads": Shown(threads.unread, "ix_journal_news", BEFORE_THREAD),
    "unread threads of an agent": Shown(
        threads.unread_of_agent, "ix_threads_assignee", {**BEFORE_THREAD, "agent": "agent-7"}
    ),
    "archived threads": Shown(threads.listed, "ix_threads_listed", {**BEFORE_THREAD, "archived": 1}),
    "pinned threads": Shown(threads.pinned, "ix_marks_pinned", {"reader": "user", "most": 20}),
    "open runs of a thread": Shown(marks.not_ended, "uq_runs_lane_not_ended", {"thread": "thread-7"}),
    "newest runs of threads": Shown(threads.newest_runs, "ix_lanes_thread", {"threads": ["thread-7", "thread-8"]}),
    "lanes of a thread": Shown(threads.lanes_in_thread, "ix_lanes_thread", {"thread": "thread-7"}),
    "projects whose directory was gone": Shown(projects.moved, "ix_runs_held", {}),
    "worktrees of a thread": Shown(work.of_thread, "ix_lanes_thread", {"thread": "thread-7"}),
    "whose a directory is": Shown(
        places.at_directory, "ix_workspaces_directory", {"machine": "m-1", "directory": "/srv/lane-7"}
    ),
    "a thread": Shown(threads.one, None, {"thread": "thread-7", "reader": "user"}),
    "a thread by its number": Shown(_by_number, "uq_threads_number", {"kind": "issue", "number": 7}),
    "entries of a thread": Shown(
        entries.page, "uq_journal_replaces", {"thread": "thread-7", "before": 9, "after": 0, "most": 20}
    ),
    "what a message would do": Shown(
        claim_sql.foreseen,
        "uq_runs_lane_not_ended",
        {"agent": "agent-7", "lane": "lane-7", "thread": "thread-7", "run": "~"},
    ),
    "what a new run would wait for": Shown(
        waits.facts_of_new,
        "ix_runs_queue",
        {"id": "~", "agent_id": "agent-7", "runtime_id": "rt-1", "lane_id": "lane-7", "rank": 1.0},
    ),
    "how a message would be accepted": Shown(
        reading_wakes.facts_unlocked,
        None,
        {"agent": "agent-7", "lane": "lane-7", "thread": "thread-7", "wake": "wk-none"},
    ),
    "who has an entry": Shown(entry_readers.given_since, "ix_runs_lane", {"lane": "lane-7", "at": 1.0}),
    "wakes of a run": Shown(wakes.of_run, "ix_wakes_run", {"run": "run-7-1"}),
    "pending wakes": Shown(wakes.pending_of_lane, "ix_wakes_pending", {"lane": "lane-7"}),
    "approvals": Shown(approvals.newest, "ix_approvals_asked", {"most": 20, "before": 1e15}),
    "what a run was told on the way": Shown(runs.steers_of_run, None, {"run": "run-7-1"}),
    "approvals of a run": Shown(approvals.of_run, "ix_approvals_run", {"run": "run-7-1"}),
    "sessions of a lane": Shown(sessions.of_lane, None, {"lane": "lane-7", "most": 20}),
    "isolated sessions of a lane": Shown(sessions.isolated_of_lane, None, {"lane": "lane-7", "most": 20}),
    "whose runs are": Shown(runtimes.of_runs, None, {"runs": ["run-7-1", "run-8-1"]}),
    "whose a session is": Shown(sessions.known, "uq_sessions_native", {"runtime": "rt-1", "natives": ["n-7-1"]}),
    "recent sessions": Shown(sessions.recent_of_agent, "ix_runs_agent", {"agent": "agent-7"}),
    "decisions": Shown(decisions.page, None, {"run": "run-7-1", "attempt": 1, "step": 0, "most": 20}),
    "what is due": Shown(schedules.looked_for, "ix_runs_lease", {}),
    "approvals whose time is over": Shown(kept.overdue, None, {}),
    "an approval by its beginning": Shown(names.approvals_beginning, None, {"first": "ap-7", "last": "ap-7zz"}),
}


@pytest.fixture(scope="module")
def filled(engine: Engine) -> Engine:
    """The database of the other plans, with logs, decisions and approvals."""
    with engine.connect() as connection:
        connection.exec_driver_sql("BEGIN")
        for table, values in (
            (kept_events, {"seq": 1, "kind": "text", "body": "{}", "at": 1.0}),
            (kept_decisions, {"attempt": 1, "step": 0, "outcome": "resume", "code": "c", "record": "{}", "at": 1.0}),
            (kept_approvals, {"attempt": 1, "question": "May I?", "state": "approved", "asked_at": 1.0}),
        ):
            connection.execute(insert(table), list(_for_each_run(table, values)))
        connection.exec_driver_sql("COMMIT")
        connection.exec_driver_sql("ANALYZE")
    return engine


def _for_each_run(table: Table, values: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    for number in range(LANES):
        for each in range(PER_LANE):
            name = {"id": f"ap-{number}-{each}"} if table is kept_approvals else {}
            yield {**values, "run_id": f"run-{number}-{each}", **name}


@pytest.fixture
def connection(filled: Engine) -> Iterator[Connection]:
    """A transaction that leaves nothing behind. PostgreSQL reads small tables whole, unless that is ruled out."""
    with filled.connect() as opened:
        if opened.dialect.name == POSTGRESQL:
            opened.exec_driver_sql("SET enable_seqscan = off")
            opened.exec_driver_sql("SET enable_bitmapscan = off")
        opened.exec_driver_sql("BEGIN")
        yield opened
        opened.exec_driver_sql("ROLLBACK")


def _assert_found(connection: Connection, shown: Shown) -> None:
    values = dict(shown.values)
    if connection.dialect.name == SQLITE:
        values = {name: json.dumps(value) if isinstance(value, list) else value for name, value in values.items()}
    scanned, used = scanned_and_used(connection, Asked(shown.statement, "", (), values))
    assert not scanned & GROWING, scanned
    assert shown.index is None or shown.index in used, used


@pytest.mark.parametrize("name", SHOWN)
def test_it_is_found_by_its_index(connection: Connection, name: str) -> None:
    _assert_found(connection, SHOWN[name])


@pytest.mark.parametrize("name", [name for name, shown in SHOWN.items() if shown.index is not None])
def test_without_its_index_it_would_not_be(connection: Connection, name: str) -> None:
    """Or the test above could not fail."""
    connection.exec_driver_sql(f"DROP INDEX {SHOWN[name].index}")
    with pytest.raises(AssertionError):
        _assert_found(connection, SHOWN[name])


@pytest.mark.parametrize("statement", [runs.going, reading_agents.going], ids=["runs that go", "how many go"])
def test_what_goes_is_found_among_what_has_not_ended(connection: Connection, statement: Statement) -> None:
    """The index of what has not ended holds nothing else: to walk along it is to read what goes and waits."""
    texts = {"state": "running", "before": LAST, "most": 20}
    sql = statement.sql(connection.dialect.name)
    driver: Any = connection.connection.driver_connection
    if connection.dialect.name == POSTGRESQL:
        ((plan,),) = driver.execute(f"EXPLAIN (FORMAT JSON) {sql}", texts).fetchall()
        assert "ended_at IS NULL" in sql
        assert '"Seq Scan"' not in json.dumps(plan)
        return
    wanted = {**statement.text(SQLITE).fixed, **texts}
    lines = [row[3] for row in driver.execute(f"EXPLAIN QUERY PLAN {sql}", wanted)]
    assert any("uq_runs_lane_not_ended" in line for line in lines), lines
    assert not any(line.startswith("SCAN runs") and "uq_runs_lane_not_ended" not in line for line in lines), lines
