"""The overview: what waits for a person, what runs, what is ready for review, and which agents there are."""

from clew.control.actor import Actor, reader_of
from clew.control.services import Services
from clew.kernel import LIVE, RunState, WaitsFor
from clew.protocol.overview import OverviewView
from clew.protocol.stage import Stage
from clew.store.engine.database import Transaction
from clew.store.queries.agents import list_agents
from clew.store.queries.approvals import list_approvals
from clew.store.queries.failures import open_failures
from clew.store.queries.runs import list_runs
from clew.store.queries.threads import list_threads

MOST = 50
"""At most so many of each kind. The lists show the rest."""


async def show_overview(services: Services, actor: Actor) -> OverviewView:
    """Read in one transaction, so that its parts fit together."""

    reader = reader_of(actor)

    def read(tx: Transaction) -> OverviewView:
        queued = list_runs(tx, None, None, RunState.QUEUED, MOST, None)
        live = [run for state in sorted(LIVE) for run in list_runs(tx, None, None, state, MOST, None)]
        issues, chats = (list_threads(tx, kind, "open", None, MOST, None, reader) for kind in ("issue", "chat"))
        unread = [
            thread
            for kind in ("issue", "chat", "subject")
            for thread in list_threads(tx, kind, "open", None, MOST, None, reader, "unread")
        ]
        return OverviewView(
            approvals=list_approvals(tx, only_pending=True, most=MOST),
            held=tuple(run for run in queued if run.held == WaitsFor.PERSON),
            live=tuple(sorted(live, key=lambda run: run.queued_at)),
            queued=tuple(run for run in queued if run.held != WaitsFor.PERSON),
            ready=tuple(issue for issue in issues if issue.stage == Stage.READY),
            agents=tuple(agent.name for agent in list_agents(tx)),
            threads=len(issues) + len(chats),
            unread=tuple(unread) if reader else (),
            archived=bool(list_threads(tx, None, None, None, 1, None, only="archived")),
            failed=open_failures(tx, MOST),
        )

    return await services.read(read)
