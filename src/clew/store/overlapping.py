"""A busy lane: the run that is going in it, and what the receipt of a wake says that came meanwhile."""

from sqlalchemy import Connection, bindparam, select, text

from clew.kernel import LaneId, RunId, WakeId
from clew.store.claim_sql import PENDING
from clew.store.statement import Statement
from clew.store.tables import LIVE, NOT_ENDED, runs, wakes

_live = Statement(
    lambda _: select(runs.c.id).where(
        runs.c.lane_id == bindparam("lane"), text(f"runs.{NOT_ENDED}"), text(f"runs.{LIVE}")
    )
)

_call = Statement(
    lambda _: (
        wakes.update()
        .where(wakes.c.id == bindparam("wake"), wakes.c.state == PENDING)
        .values(code=bindparam("code"), words=bindparam("words"))
    )
)


def live_run(connection: Connection, lane: LaneId) -> RunId | None:
    row = _live.first(connection, lane=lane)
    return None if row is None else RunId(row["id"])


def call_it(connection: Connection, wake: WakeId, code: str, words: str) -> None:
    """Say otherwise why the wake is pending."""
    _call.count(connection, wake=wake, code=code, words=words)
