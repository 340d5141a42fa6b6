"""The queue: at most one run is queued for a lane, as early as the earliest of the wakes it is for."""

from typing import Any

from sqlalchemy import Connection, bindparam, case, func, literal_column, null, select, text
from sqlalchemy.sql import ClauseElement

from clew.kernel import AgentId, Aging, Instant, LaneId, QueuedRun, RunId, RuntimeId, rank
from clew.store.engine.dialect import insert_in, lesser
from clew.store.engine.hints import hint_queue
from clew.store.engine.statement import SQLITE, Statement
from clew.store.operations.ids import new_id
from clew.store.schema.tables import NOT_ENDED, lanes, runs


def _upsert(dialect: str) -> ClauseElement:
    names = ("id", "lane_id", "agent_id", "runtime_id", "rank", "queued_at", "not_before", "tries", "hold_code")
    values: dict[str, Any] = {name: bindparam(name) for name in names}
    if dialect == SQLITE:
        # One writer, and no run is ever deleted: uq_runs_number gives the greatest number in one step.
        values["number"] = select(func.coalesce(func.max(runs.c.number), 0) + 1).scalar_subquery()
    queued = insert_in(dialect, runs).values(values)
    no_delay = queued.excluded.not_before.is_(None) | runs.c.not_before.is_(None)
    return queued.on_conflict_do_update(
        index_elements=[runs.c.lane_id],
        index_where=text(NOT_ENDED),
        set_={
            "rank": lesser(dialect, runs.c.rank, queued.excluded.rank),
            "not_before": case(
                (no_delay, null()), else_=lesser(dialect, runs.c.not_before, queued.excluded.not_before)
            ),
            # The lane may have been moved since, or a runtime may have registered.
            "runtime_id": func.coalesce(
                select(lanes.c.runtime_id).where(lanes.c.id == bindparam("lane_id")).scalar_subquery(),
                runs.c.runtime_id,
                queued.excluded.runtime_id,
            ),
            # A wake that was not tried yet has all its tries left.
            "tries": lesser(dialect, runs.c.tries, queued.excluded.tries),
            # A new wake: the reason the run was held for is checked again.
            "hold": literal_column("''"),
            "hold_code": null(),
        },
        where=runs.c.state == literal_column("'queued'"),
    )


_queue = Statement(_upsert)


def queue_run(
    connection: Connection,
    lane: LaneId,
    agent: AgentId,
    runtime: RuntimeId | None,
    at: Instant,
    priority: int = 0,
    not_before: Instant | None = None,
    tries: int = 0,
    since: Instant | None = None,
    waits_out: str | None = None,
) -> None:
    """Queue a run for the lane's pending wakes. A queued one is moved forward if this one would be earlier. A live one
    is left alone: its end queues what is pending then. `since` is when the oldest wake was accepted, if before `at`;
    `waits_out`, why it waits for its model."""
    run = RunId(new_id("rn"))
    _queue.defer(
        connection,
        id=run,
        lane_id=lane,
        agent_id=agent,
        runtime_id=runtime,
        rank=rank(QueuedRun(run, at if since is None else since, priority), Aging()),
        queued_at=at,
        not_before=not_before,
        tries=tries,
        hold_code=waits_out,
    )
    hint_queue(connection, runtime)
