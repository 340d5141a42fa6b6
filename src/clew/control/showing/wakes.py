"""Wakes as they are shown: receipts."""

from clew.protocol.views import WakeView
from clew.store.engine.statement import Row
from clew.store.queries.threads import thread_ref


def show_wake(row: Row, repeated: bool = False) -> WakeView:
    return WakeView(
        id=row["id"],
        thread=thread_ref(row),
        agent=row["agent_name"],
        reason=row["reason"],
        origin=row["origin_kind"],
        state=row["state"],
        code=row["code"],
        words=row["words"],
        accepted_at=row["accepted_at"],
        not_before=row["not_before"],
        ended_at=row["ended_at"],
        run=row["run_id"],
        entry=row["entry"] or None,
        repeated=repeated,
    )
