"""The queue: at most one run waits for a lane, and it comes as early as the earliest of what it is for."""

from sqlalchemy import Connection, bindparam, case, func, literal_column, null, select, text
from sqlalchemy.sql import ClauseElement

from clew.kernel import AgentId, Aging, Instant, LaneId, QueuedRun, RunId, RuntimeId, rank
from clew.store.engine.dialect import insert_in, lesser
from clew.store.engine.hints import hint_queue
from clew.store.engine.statement import Statement
from clew.store.operations.ids import new_id
from clew.store.schema.tables import NOT_ENDED, lanes, runs


def _upsert(dialect: str) -> ClauseElement:
    names = ("id", "lane_id", "agent_id", "runtime_id", "rank", "queued_at", "not_before", "tries")
    queued = insert_in(dialect, runs).values({name: bindparam(name) for name in names})
    no_delay = queued.excluded.not_before.is_(None) | runs.c.not_before.is_(None)
    return queued.on_conflict_do_update(
        index_elements=[runs.c.lane_id],
        index_where=text(NOT_ENDED),
        set_={
            "rank": lesser(dialect, runs.c.rank, queued.excluded.rank),
            "not_before": case(
                (no_delay, null()), else_=lesser(dialect, runs.c.not_before, queued.excluded.not_before)
            ),
            # Where somebody has put the lane since, or where there is a runtime by now.
            "runtime_id": func.coalesce(
                select(lanes.c.runtime_id).where(lanes.c.id == bindparam("lane_id")).scalar_subquery(),
                runs.c.runtime_id,
                queued.excluded.runtime_id,
            ),
            # What was not tried yet has all its tries before it.
            "tries": lesser(dialect, runs.c.tries, queued.excluded.tries),
            # Something new has come: what held the run before is looked at again.
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
) -> None:
    """A run for the lane's pending wakes. One that waits already comes sooner if this would; a live one is left alone:
    whatever is pending when it ends is queued then. `since` is how long its wakes have waited, if longer than it."""
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
    )
    hint_queue(connection, runtime)
