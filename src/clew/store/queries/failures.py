"""Failures that nobody has followed up: an agent's newest run in an open thread failed, or was lost."""

from sqlalchemy import Connection, literal_column, select, text

from clew.kernel import RunState
from clew.protocol.views import RunView
from clew.store.engine.dialect import among
from clew.store.engine.statement import Statement
from clew.store.queries.runs import list_runs
from clew.store.schema.tables import lanes, runs, threads

_later = runs.alias("later")
_followed_up = (
    select(literal_column("1"))
    .where(_later.c.lane_id == runs.c.lane_id, _later.c.queued_at > runs.c.queued_at)
    .correlate(runs)
    .exists()
)
left_open = Statement(
    lambda dialect: (
        select(runs.c.id)
        .join(lanes, lanes.c.id == runs.c.lane_id)
        .join(threads, threads.c.id == lanes.c.thread_id)
        .where(
            among(dialect, runs.c.id, "runs"),
            text("threads.state = 'open'"),
            threads.c.archived == literal_column("0"),
            ~_followed_up,
        )
    )
)


def open_failures(connection: Connection, most: int) -> tuple[RunView, ...]:
    """The newest first, among the newest `most` of each kind: what failed long ago and was left is in the lists."""
    states = (RunState.FAILED, RunState.LOST)
    ended = [run for state in states for run in list_runs(connection, None, None, state, most, None)]
    if not ended:
        return ()
    kept = {row["id"] for row in left_open.rows(connection, runs=[run.id for run in ended])}
    return tuple(sorted((run for run in ended if run.id in kept), key=lambda run: run.queued_at, reverse=True)[:most])
