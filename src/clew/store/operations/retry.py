"""Once more: what waits goes now, and what ended unserved is asked for again, as wakes of their own."""

from collections.abc import Sequence

from sqlalchemy import Connection, bindparam, literal_column, null, text

from clew.kernel import (
    HELD_BY_AGENT,
    AdmissionReason,
    AgentId,
    Freshness,
    LaneId,
    Origin,
    RunId,
    RuntimeId,
    ThreadId,
    WakeId,
    WakeReason,
)
from clew.protocol.wakes import Accepted, WakeRequest
from clew.store.engine.hints import hint_queue, hint_thread
from clew.store.engine.statement import Row, Statement
from clew.store.operations.evidence import ask_stores_again
from clew.store.operations.ids import asked_again, derived_id
from clew.store.operations.rows import read_wake
from clew.store.operations.sessions import evidence_of
from clew.store.operations.wakes import accept_wake
from clew.store.queries.runs import run_row
from clew.store.queries.wakes import wake_rows_of_run
from clew.store.schema.tables import runs, wakes

_go_now = Statement(
    lambda _: (
        runs.update()
        .where(runs.c.lane_id == bindparam("lane"), text("runs.ended_at IS NULL AND runs.state = 'queued'"))
        .values(hold=literal_column("''"), hold_code=null(), not_before=null())
        .returning(runs.c.id, runs.c.runtime_id)
    )
)

_wait_no_more = Statement(
    lambda _: (
        wakes.update()
        .where(wakes.c.lane_id == bindparam("lane"), text("wakes.state = 'pending'"))
        .values(not_before=null(), code=bindparam("code"), words=bindparam("words"))
    )
)


def go_now(connection: Connection, lane: LaneId, thread: ThreadId) -> RunId | None:
    """The run that waits in a lane waits no more: for no delay, and for nobody. None when none does."""
    run = _go_now.first(connection, lane=lane)
    if run is None:
        return None
    ask_stores_again(connection, lane)
    # What held it before is looked at again, so it is no longer why it waits.
    goes = AdmissionReason.LANE_FREE
    _wait_no_more.count(connection, lane=lane, code=goes.code, words=goes.fill())
    hint_queue(connection, None if run["runtime_id"] is None else RuntimeId(run["runtime_id"]))
    hint_thread(connection, thread)
    return RunId(run["id"])


def ask_again(
    connection: Connection, run: RunId, origin: Origin, only_unserved: bool, resume: str | None
) -> Sequence[Accepted]:
    """New wakes for those that a run carried, of the same entries. With `resume`, which names the request, they go on
    in that run's session; without, asking twice is asking once."""
    row = run_row(connection, run)
    carried = wake_rows_of_run(connection, run)
    asked = [wake for wake in carried if not only_unserved or wake["state"] in ("cancelled", "skipped")]
    return [accept_wake(connection, _once_more(wake, row, origin, resume)) for wake in asked]


def _once_more(row: Row, run: Row, origin: Origin, resume: str | None) -> WakeRequest:
    wake = read_wake(row)
    began = evidence_of(run) in HELD_BY_AGENT or wake.began
    return WakeRequest(
        id=WakeId(derived_id("wk", resume, wake.id) if resume else asked_again(wake.id)),
        agent=AgentId(row["agent_id"]),
        reason=WakeReason.MANUAL if resume else WakeReason.RETRY if began else wake.reason,
        origin=origin,
        thread=ThreadId(row["thread_id"]),
        # What it demanded of its beginning is done once a session was opened for it.
        freshness=Freshness.FOLLOW_POLICY if began or resume else wake.freshness,
        resume_run=RunId(run["id"]) if resume else wake.resume_run,
        priority=wake.priority,
        route=wake.route,
        isolated=bool(row["scope"]) and not resume,
        entries=wake.entries,
    )
