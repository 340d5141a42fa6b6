"""Wakes as views: the receipt of each."""

from collections.abc import Sequence
from typing import Any

from sqlalchemy import ColumnElement, Connection, Select, TextClause, bindparam, select, text

from clew.kernel import AdmissionReason, EntrySeq, LaneId, ThreadId
from clew.protocol.views import WakeView
from clew.store.engine.statement import Row, Statement
from clew.store.faults import NoSuchWake
from clew.store.operations.rows import read_wake
from clew.store.queries.refs import THREAD_NAME, thread_ref, with_owner
from clew.store.queries.spoken import spoken
from clew.store.schema.tables import agents, lanes, threads, wakes

MOST = 200


def _shown(*which: ColumnElement[bool] | TextClause) -> Select[Any]:
    source = wakes.join(lanes, lanes.c.id == wakes.c.lane_id).join(threads, threads.c.id == wakes.c.thread_id)
    return (
        select(*wakes.c, lanes.c.agent_id, agents.c.name.label("agent_name"), *THREAD_NAME)
        .select_from(with_owner(source.join(agents, agents.c.id == lanes.c.agent_id)))
        .where(*which)
        .order_by(wakes.c.accepted_at, wakes.c.id)
    )


_one = Statement(lambda _: _shown(wakes.c.id == bindparam("wake")))
of_run = Statement(lambda _: _shown(wakes.c.run_id == bindparam("run")))
pending_of_lane = Statement(
    lambda _: _shown(wakes.c.lane_id == bindparam("lane"), text("wakes.state = 'pending'")).limit(MOST)
)


def find_wake(connection: Connection, wake: str) -> WakeView | None:
    row = _one.first(connection, wake=wake)
    return None if row is None else spoken(connection, _view(row))


def show_wake(connection: Connection, wake: str, repeated: bool = False) -> WakeView:
    """`repeated` marks the answer to a request that was accepted before."""
    return spoken(connection, _view(_row(connection, wake), repeated))


def lane_of_wake(connection: Connection, wake: str) -> LaneId:
    return LaneId(_row(connection, wake)["lane_id"])


def thread_of_wake(connection: Connection, wake: str) -> ThreadId:
    return ThreadId(_row(connection, wake)["thread_id"])


def wake_rows_of_run(connection: Connection, run: str) -> Sequence[Row]:
    """The wakes that a run carried, for operations of the store."""
    return of_run.rows(connection, run=run)


def wakes_of_run(connection: Connection, run: str) -> tuple[WakeView, ...]:
    return spoken(connection, tuple(map(_view, of_run.rows(connection, run=run))))


def pending_wakes(connection: Connection, lane: str) -> tuple[WakeView, ...]:
    return spoken(connection, tuple(map(_view, pending_of_lane.rows(connection, lane=lane))))


def pending_entries(connection: Connection, lane: str) -> frozenset[EntrySeq]:
    """The journal entries that the lane's pending wakes ask to be answered."""
    rows = pending_of_lane.rows(connection, lane=lane)
    return frozenset(entry for row in rows for entry in read_wake(row).entries)


def _row(connection: Connection, wake: str) -> Row:
    row = _one.first(connection, wake=wake)
    if row is None:
        raise NoSuchWake(f"There is no wake {wake!r}.", "`clew queue THREAD` lists those that wait.")
    return row


_REFUSED = {
    AdmissionReason.PAUSED.code: "{agent} is paused. Resume it with `clew agent resume {agent}`, then ask again.",
    AdmissionReason.ARCHIVED.code: "{agent} was removed. `clew agent resume {agent}` brings it back; or ask another.",
}
"""The kernel does not know the agent's name."""


def _view(row: Row, repeated: bool = False) -> WakeView:
    return WakeView(
        id=row["id"],
        thread=thread_ref(row),
        agent=row["agent_name"],
        reason=row["reason"],
        origin=row["origin_kind"],
        state=row["state"],
        code=row["code"],
        words=_REFUSED[row["code"]].format(agent=row["agent_name"]) if row["code"] in _REFUSED else row["words"],
        accepted_at=row["accepted_at"],
        not_before=row["not_before"],
        ended_at=row["ended_at"],
        run=row["run_id"],
        entry=row["entry"] or None,
        repeated=repeated,
        preview=row["preview"],
    )
