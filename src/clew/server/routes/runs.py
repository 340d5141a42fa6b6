"""Runs: attempts to serve wakes, their logs, and why each went as it did."""

from clew.control.explain import explain
from clew.control.replay import replay_decisions
from clew.control.runs import cancel_run, interrupt_run, list_events, list_runs, rerun, retry_run, show_run
from clew.control.services import Services
from clew.protocol.requests import Replay, Retry
from clew.protocol.views import Cancelled, EventView, ReplayView, RunView, WakeView, WhyView
from clew.server.asked import Before, Filter, Limit, Name, Seq
from clew.server.calls import Calls
from clew.server.identity import By


def runs(calls: Calls, services: Services) -> None:
    calls = calls.below("", "runs")

    @calls.get("/runs")
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

    @calls.get("/runs/{run}")
    async def show(by: By, run: Name) -> RunView:
        """One run, by its id or a beginning of it that no other has."""
        return await show_run(services, by, run)

    @calls.get("/runs/{run}/events")
    async def events(by: By, run: Name, after: Seq = 0, limit: Limit = 200) -> tuple[EventView, ...]:
        """Its log, after a line."""
        return await list_events(services, by, run, after=after, limit=limit)

    @calls.post("/runs/{run}/cancel")
    async def cancel(by: By, run: Name) -> Cancelled:
        """End it. What its agent has done stays; the session can be gone on with."""
        return await cancel_run(services, by, run)

    @calls.post("/runs/{run}/interrupt")
    async def interrupt(by: By, run: Name) -> Cancelled:
        """End the turn that is going; the agent stays ready."""
        return await interrupt_run(services, by, run)

    @calls.post("/runs/{run}/retry", status_code=201)
    async def try_again(by: By, run: Name, asked: Retry = Retry()) -> tuple[WakeView, ...]:  # noqa: B008 - a frozen value
        """What it was to serve is served once more. `taken` says whether the agent took a prompt, where the run is held
        because nobody else can tell."""
        return await retry_run(services, by, run, asked)

    @calls.post("/runs/{run}/rerun", status_code=201)
    async def run_again(by: By, run: Name) -> tuple[WakeView, ...]:
        """From where this run stood, its session included."""
        return await rerun(services, by, run)

    @calls.get("/why/{subject}")
    async def why(by: By, subject: Name) -> WhyView:
        """Why a run went as it did, or a wake did not run."""
        return await explain(services, by, subject)

    @calls.post("/replay")
    async def replay(by: By, asked: Replay) -> ReplayView:
        """Which past decisions another policy would have made otherwise. Nothing is changed."""
        return await replay_decisions(services, by, asked)
