"""The end of an outage or a limit of a model: a run that succeeds lets others of its agent go that wait for it."""

from sqlalchemy import Connection, bindparam, null, select, text

from clew.kernel import AdmissionReason, RunId, RuntimeId, ThreadId
from clew.store.engine.hints import hint_queue, hint_run, hint_thread
from clew.store.engine.statement import Row, Statement
from clew.store.schema.tables import lanes, runs, wakes

AT_ONCE = 2
"""How many one success lets go. Each of them lets go as many when it succeeds, so they do not all start at once."""

_queued = runs.alias("waiting")

# SKIP LOCKED: another success lets them go, or they are being claimed, cancelled or retried.
first_waiting = (
    select(_queued.c.id)
    .where(
        # As in ix_runs_waited_out.
        text("waiting.state = 'queued' AND waiting.hold = '' AND waiting.hold_code IS NOT NULL"),
        _queued.c.agent_id == bindparam("agent"),
        _queued.c.runtime_id == bindparam("runtime"),
    )
    .order_by(_queued.c.id)
    .limit(AT_ONCE)
    .with_for_update(skip_locked=True, of=_queued)
)

let_go = Statement(
    lambda _: (
        runs.update()
        .where(runs.c.id.in_(first_waiting))
        .values(hold_code=null(), not_before=null())
        .returning(
            runs.c.id,
            runs.c.lane_id,
            runs.c.runtime_id,
            select(lanes.c.thread_id).where(text("lanes.id = runs.lane_id")).scalar_subquery().label("thread_id"),
        )
    )
)

_wait_no_more = Statement(
    lambda _: (
        wakes.update()
        .where(wakes.c.lane_id == bindparam("lane"), text("wakes.state = 'pending'"))
        .values(not_before=null(), code=bindparam("code"), words=bindparam("words"))
    )
)


def let_waiting_go(connection: Connection, row: Row) -> None:
    """That run succeeded, so the model answers its agent there: the first that wait for it go, with their wakes."""
    goes = AdmissionReason.LANE_FREE
    for each in let_go.rows(connection, agent=row["agent_id"], runtime=row["runtime_id"]):
        _wait_no_more.count(connection, lane=each["lane_id"], code=goes.code, words=goes.fill())
        hint_queue(connection, RuntimeId(each["runtime_id"]))
        hint_thread(connection, ThreadId(each["thread_id"]))
        hint_run(connection, RunId(each["id"]))
