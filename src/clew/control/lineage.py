"""The lineage of a thread, read in one transaction."""

from clew.control.actor import Actor
from clew.control.services import Services
from clew.protocol.lineage import LineageView
from clew.store.engine.database import Transaction
from clew.store.queries.lineage import turn_decisions
from clew.store.queries.names import thread_called
from clew.store.queries.runs import list_runs
from clew.store.queries.runtimes import list_runtimes
from clew.store.queries.sessions import sessions_of_thread

SESSIONS, RUNS = 100, 500
"""How many of the newest ones are shown."""


async def show_lineage(services: Services, actor: Actor, ref: str) -> LineageView:
    """The sessions of a thread with the runs that used them, and what was decided for each."""

    def read(tx: Transaction) -> LineageView:
        thread = thread_called(tx, ref).id
        runs = list_runs(tx, thread, None, None, RUNS, None)
        sessions = sessions_of_thread(tx, thread, None, SESSIONS)
        return LineageView(
            sessions=sessions,
            runs=runs,
            decisions=turn_decisions(tx, [run.id for run in runs]),
            machines={runtime.id: runtime.machine for runtime in list_runtimes(tx)},
            more=len(runs) == RUNS or len(sessions) == SESSIONS,
        )

    return await services.read(read)
