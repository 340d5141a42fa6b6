"""Routes of runs: their state, logs, decisions, and cancel, interrupt, retry and rerun."""

from clew.control.explain import explain
from clew.control.replay import replay_decisions
from clew.control.runs import cancel_run, interrupt_run, list_events, list_runs, rerun, retry_run, show_run
from clew.control.services import Services
from clew.protocol.requests import Replay, Retry
from clew.protocol.views import Cancelled, EventView, ReplayView, RunView, WakeView, WhyView
from clew.server.identity import By
from clew.server.params import Before, Filter, Limit, Name, Seq
from clew.server.router import Routes


def runs(routes: Routes, services: Services) -> None:
    routes = routes.below("", "runs")

    @routes.get("/runs")
    async def list_all(
        by: By,
        thread: Filter = None,
        agent: Filter = None,
        state: Filter = None,
        limit: Limit = 50,
        before: Before = None,
    ) -> tuple[RunView, ...]:
        """Runs, newest first."""
        return await list_runs(services, by, thread=thread, agent=agent, state=state, limit=limit, before=before)

    @routes.get("/runs/{run}")
    async def show(by: By, run: Name) -> RunView:
        """One run, by its id or a unique prefix of it."""
        return await show_run(services, by, run)

    @routes.get("/runs/{run}/events")
    async def events(by: By, run: Name, after: Seq = 0, limit: Limit = 200) -> tuple[EventView, ...]:
        """The lines of its log after line `after`."""
        return await list_events(services, by, run, after=after, limit=limit)

    @routes.post("/runs/{run}/cancel")
    async def cancel(by: By, run: Name) -> Cancelled:
        """Cancel the run. Files stay as the agent left them, and its session can be resumed."""
        return await cancel_run(services, by, run)

    @routes.post("/runs/{run}/interrupt")
    async def interrupt(by: By, run: Name) -> Cancelled:
        """Interrupt the current turn. The session may stay warm."""
        return await interrupt_run(services, by, run)

    @routes.post("/runs/{run}/retry", status_code=201)
    async def try_again(by: By, run: Name, asked: Retry = Retry()) -> tuple[WakeView, ...]:  # noqa: B008 - a frozen value
        """Serve the run's wakes again. For a run that is held because it is unknown whether the agent received the
        prompt, `taken` says whether it did."""
        return await retry_run(services, by, run, asked)

    @routes.post("/runs/{run}/rerun", status_code=201)
    async def run_again(by: By, run: Name) -> tuple[WakeView, ...]:
        """Repeat the run, starting from the session it had."""
        return await rerun(services, by, run)

    @routes.get("/why/{subject}")
    async def why(by: By, subject: Name) -> WhyView:
        """How a run was decided, or why a wake did not run."""
        return await explain(services, by, subject)

    @routes.post("/replay")
    async def replay(by: By, asked: Replay) -> ReplayView:
        """List past decisions that another policy would change. Read-only."""
        return await replay_decisions(services, by, asked)
