"""Notices: which threads need a person, and what was done lately. Who asks compares them with those they know."""

from clew.control.actor import Actor
from clew.control.services import Services
from clew.kernel import RunState, WaitsFor
from clew.protocol.notices import NoticeView
from clew.protocol.views import RunView
from clew.store.engine.database import Transaction
from clew.store.queries.approvals import list_approvals
from clew.store.queries.runs import list_runs

MOST = 30
"""At most so many of each kind, the newest."""


async def list_notices(services: Services, actor: Actor) -> tuple[NoticeView, ...]:
    def read(tx: Transaction) -> tuple[NoticeView, ...]:
        done = [run for run in _runs(tx, RunState.SUCCEEDED) if not run.thread.startswith(_OWN)]
        return (*needs(tx), *(NoticeView(run.id, "done", run.thread) for run in done))

    return await services.read(read)


def needs(tx: Transaction) -> tuple[NoticeView, ...]:
    """Those that need a person."""
    held = [run for run in _runs(tx, RunState.QUEUED) if run.held == WaitsFor.PERSON]
    failed = [*_runs(tx, RunState.FAILED), *_runs(tx, RunState.LOST)]
    return (
        *(NoticeView(ask.id, "needs", ask.thread) for ask in list_approvals(tx, only_pending=True, most=MOST)),
        *(NoticeView(f"{run.id}-held", "needs", run.thread) for run in held),
        *(NoticeView(run.id, "needs", run.thread) for run in failed),
    )


def _runs(tx: Transaction, state: RunState) -> tuple[RunView, ...]:
    return list_runs(tx, None, None, state, MOST, None, folded=True)


_OWN = "own-"
"""Heartbeats end often, and mostly there is nothing to say of it."""
