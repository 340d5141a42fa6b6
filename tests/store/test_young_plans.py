# ruff: noqa: SLF001 - a statement is its module's own, and none should be public only to be looked at
"""Query plans of a young database: what is planned while its tables are empty has to do when they are full.

PostgreSQL plans a prepared statement once for each connection. Where a table has no rows, reading all of an index costs
as little as looking into it, so a plan may do that; it must not be able to.
"""

import json
import re
from collections.abc import Iterator
from typing import Any

import pytest
from sqlalchemy import Connection

from clew.kernel import RunEvent, WakeEvent
from clew.store import (
    accept,
    admitting,
    advancing,
    agents,
    claim_sql,
    completing,
    decisions,
    journal,
    overlapping,
    queueing,
    sessions,
    settling,
    taking,
    telling,
    ticks,
)
from clew.store.database import Database
from clew.store.numbering import numbered
from clew.store.statement import POSTGRESQL, SQLITE, Statement

pytestmark = pytest.mark.new_database

WITH_EVERY_WAKE = {
    "facts": accept._facts,
    "facts-by-key": accept._facts_by_key,
    "queue": queueing._queue,
    "append": journal._append,
    "queued": claim_sql.queued,
    "hold": claim_sql.hold,
    "candidates": sessions.candidates,
    "prompt": advancing._statement((RunEvent.OPEN, RunEvent.PROMPT)),
    "succeed": advancing._statement((RunEvent.SUCCEED,)),
    "serve-alone": settling._serve_all,
    "serve": settling._LETS_GO[WakeEvent.SERVE, settling.Untold.WAITS_AGAIN],
    "pending": settling._pending,
    "call": overlapping._call,
    "live": overlapping._live,
    "due": ticks.due_schedules,
}

GROUPED = {
    "complete": completing._all,
    "admitted": admitting._all,
    "taken": taking.at_once,
    "told": telling._statement((RunEvent.OPEN, RunEvent.PROMPT), True, True),
    "renewed": telling._statement((RunEvent.RENEW,), False, False),
}
TOGETHER = {
    "alone": completing._alone,
    "decisions": decisions.keep_decision,
    **{name: each.of_many for name, each in GROUPED.items()},
    **{f"{name} by itself": each.of_one for name, each in GROUPED.items()},
}
"""What PostgreSQL does for several at once."""

WITH_A_MOVE = {"follow": agents._follow}
OF_OPEN_RUNS = "uq_runs_lane_not_ended"
"""An index of what has not ended, which is read whole by who moves an agent; all else looks into it."""

OF_LIVE_RUNS = frozenset({"uq_runs_agent_place"})
"""An index of what is going at the moment: it stays small, and is read whole to see which agents are full."""


def nodes(node: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield node
    for below in node.get("Plans", ()):
        yield from nodes(below)


@pytest.mark.case("R11")
@pytest.mark.parametrize("address", [POSTGRESQL], indirect=True)
def test_nothing_is_read_from_end_to_end(database: Database) -> None:
    for name, statement in (WITH_EVERY_WAKE | TOGETHER | WITH_A_MOVE).items():
        for node in nodes(database.do(lambda connection: _planned(connection, statement))):  # noqa: B023 - awaited
            assert node["Node Type"] not in ("Seq Scan", "Hash Join", "Merge Join"), (name, node)
            # Lists that were handed in are compared with each other, each with each; they are short.
            of_tables = any("Relation Name" in below for below in nodes(node))
            assert "Join Filter" not in node or not of_tables, (name, node)
            read_whole = {"", *OF_LIVE_RUNS, *([OF_OPEN_RUNS] if name in WITH_A_MOVE else [])}
            assert node.get("Index Name", "") in read_whole or "Index Cond" in node, (name, node)


@pytest.mark.case("R11")
@pytest.mark.parametrize("address", [SQLITE], indirect=True)
def test_nothing_is_read_from_end_to_end_in_a_file(database: Database) -> None:
    for name, statement in WITH_EVERY_WAKE.items():
        if name in ("serve-alone", "queue"):
            # The one is PostgreSQL's alone; the other names what it would ask if a run's id changed, which it does not.
            continue
        for line in database.do(lambda connection: _explained(connection, statement)):  # noqa: B023 - awaited
            read = re.fullmatch(r"SCAN (\w+)( USING .*INDEX (\w+))?", line)
            # "q" is what was picked from the queue; a list that is handed in is read whole, and runtimes are few.
            assert read is None or read[1] in ("q", "json_each", "runtimes") or read[3] in OF_LIVE_RUNS, (name, line)


def _explained(connection: Connection, statement: Statement) -> list[str]:
    text = statement.text(SQLITE)
    names = re.findall(r"(?<!:):(\w+)", text.sql)
    driver: Any = connection.connection.driver_connection
    given = {name: text.fixed.get(name) for name in names}
    return [row[3] for row in driver.execute(f"EXPLAIN QUERY PLAN {text.sql}", given)]


def _planned(connection: Connection, statement: Statement) -> dict[str, Any]:
    """The plan that is kept, whatever it is asked for."""
    sql = numbered(statement.sql(POSTGRESQL)).sql.decode()
    driver: Any = connection.connection.driver_connection
    ((plan,),) = driver.execute(f"EXPLAIN (GENERIC_PLAN, FORMAT JSON) {sql}").fetchall()
    found: dict[str, Any] = (plan if isinstance(plan, list) else json.loads(plan))[0]["Plan"]
    return found
