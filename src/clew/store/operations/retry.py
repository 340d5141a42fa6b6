"""A person's retry: a waiting run goes now, and wakes that ended unserved are asked for again as new wakes."""

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
    WaitsFor,
    WakeId,
    WakeReason,
)
from clew.protocol.wakes import Accepted, WakeRequest
from clew.store.engine.hints import hint_queue, hint_run, hint_thread
from clew.store.engine.statement import Row, Statement
from clew.store.operations.claim_sql import QUEUED
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

_let_go = Statement(
    lambda _: (
        runs.update()
        .where(
            runs.c.id == bindparam("run"),
            runs.c.state == QUEUED,
            runs.c.hold == literal_column(f"'{WaitsFor.ANOTHER_TRY}'"),
        )
        .values(hold=literal_column("''"), hold_code=null(), not_before=null(), words=null())
        .returning(runs.c.runtime_id)
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
    """Let the lane's queued run start now: no delay, no hold. None if there is no queued run."""
    run = _go_now.first(connection, lane=lane)
    if run is None:
        return None
    ask_stores_again(connection, lane)
    # It is decided again, so the reason it was held for no longer applies.
    goes = AdmissionReason.LANE_FREE
    _wait_no_more.count(connection, lane=lane, code=goes.code, words=goes.fill())
    hint_queue(connection, None if run["runtime_id"] is None else RuntimeId(run["runtime_id"]))
    hint_thread(connection, thread)
    return RunId(run["id"])


def let_go(connection: Connection, runs: Sequence[RunId]) -> None:
    """What these runs were to be tried again for is there: they may start now. One that waits for a person stays."""
    for run in runs:
        row = _let_go.first(connection, run=run)
        if row is not None:
            hint_queue(connection, None if row["runtime_id"] is None else RuntimeId(row["runtime_id"]))
            hint_run(connection, run)


def ask_again(
    connection: Connection, run: RunId, origin: Origin, only_unserved: bool, resume: str | None
) -> Sequence[Accepted]:
    """New wakes with the same entries as those that a run carried. With `resume`, the id of the request, they continue
    in that run's session. Without it their ids are derived from the old ones, so that two retries make one wake."""
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
        # A demand for a fresh start is met once a session was opened for it.
        freshness=Freshness.FOLLOW_POLICY if began or resume else wake.freshness,
        resume_run=RunId(run["id"]) if resume else wake.resume_run,
        priority=wake.priority,
        route=wake.route,
        isolated=bool(row["scope"]) and not resume,
        entries=wake.entries,
    )
