"""Kept decisions in order, page by page, for whoever makes them again."""

from collections.abc import Sequence

from sqlalchemy import Connection, bindparam, select, tuple_

from clew.kernel import Instant
from clew.store.engine.statement import Row, Statement
from clew.store.operations.ids import first_id
from clew.store.queries.threads import THREAD_NAME, with_owner
from clew.store.schema.tables import decisions, lanes, runs, threads

Place = tuple[str, int, int]
"""A decision's run, attempt and step."""

page = Statement(
    lambda _: (
        select(decisions, lanes.c.thread_id, *THREAD_NAME)
        .select_from(
            with_owner(
                decisions.join(runs, runs.c.id == decisions.c.run_id)
                .join(lanes, lanes.c.id == runs.c.lane_id)
                .join(threads, threads.c.id == lanes.c.thread_id)
            )
        )
        .where(
            tuple_(decisions.c.run_id, decisions.c.attempt, decisions.c.step)
            > tuple_(bindparam("run"), bindparam("attempt"), bindparam("step"))
        )
        .order_by(decisions.c.run_id, decisions.c.attempt, decisions.c.step)
        .limit(bindparam("most"))
    )
)


def first_since(at: Instant) -> Place:
    """Before every decision of a run that was queued since: their names are in the order in which they were made."""
    return (first_id("rn", at), -1, -2)


def decisions_after(connection: Connection, place: Place, most: int) -> Sequence[Row]:
    return page.rows(connection, run=place[0], attempt=place[1], step=place[2], most=most)
