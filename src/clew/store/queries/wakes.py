"""Wakes as they are shown: their receipts."""

from collections.abc import Sequence
from typing import Any

from sqlalchemy import ColumnElement, Connection, Select, TextClause, bindparam, select, text

from clew.store.engine.statement import Row, Statement, among
from clew.store.faults import NoSuchWake
from clew.store.queries.threads import THREAD_NAME, with_owner
from clew.store.schema.tables import agents, lanes, threads, wakes


def _shown(*which: ColumnElement[bool] | TextClause) -> Select[Any]:
    source = wakes.join(lanes, lanes.c.id == wakes.c.lane_id).join(threads, threads.c.id == wakes.c.thread_id)
    return (
        select(*wakes.c, lanes.c.agent_id, agents.c.name.label("agent_name"), *THREAD_NAME)
        .select_from(with_owner(source.join(agents, agents.c.id == lanes.c.agent_id)))
        .where(*which)
        .order_by(wakes.c.accepted_at, wakes.c.id)
    )


_one = Statement(lambda _: _shown(wakes.c.id == bindparam("wake")))
_several = Statement(lambda dialect: _shown(among(dialect, wakes.c.id, "wakes")))
of_run = Statement(lambda _: _shown(wakes.c.run_id == bindparam("run")))
pending_of_lane = Statement(
    lambda _: _shown(wakes.c.lane_id == bindparam("lane"), text("wakes.state = 'pending'")).limit(MOST)
)

MOST = 200


def read_wake(connection: Connection, wake: str) -> Row:
    row = _one.first(connection, wake=wake)
    if row is None:
        raise NoSuchWake(f"There is no wake {wake}.", "Its id is in the answer that accepted it.")
    return row


def read_wakes(connection: Connection, those: Sequence[str]) -> dict[str, Row]:
    """Those of them that there are, by their ids."""
    return {row["id"]: row for row in _several.rows(connection, wakes=list(those))}


def wakes_of_run(connection: Connection, run: str) -> Sequence[Row]:
    return of_run.rows(connection, run=run)


def pending_wakes(connection: Connection, lane: str) -> Sequence[Row]:
    return pending_of_lane.rows(connection, lane=lane)
