"""The routes of the API, one function per resource. Each route calls one use case of control."""

from dataclasses import dataclass
from typing import Annotated

from fastapi import Query
from pydantic import Field

from clew.control.approvals import answer_approval, list_approvals
from clew.control.decisions import explain, replay_decisions
from clew.control.doctor import examine, list_runtimes
from clew.control.issues import assign_thread, edit_thread, open_issue
from clew.control.overview import show_overview
from clew.control.runs import cancel_run, interrupt_run, list_events, list_runs, rerun, retry_run, show_run
from clew.control.services import Services
from clew.control.sessions import adopt_found, adopt_session, found_sessions, list_sessions, release_thread
from clew.control.threads import (
    close_thread,
    forget_allowed,
    list_threads,
    open_chat,
    reopen_thread,
    set_overlap,
    show_thread,
)
from clew.control.usage import show_usage
from clew.control.wakes import cancel_wake, poke, say, show_wake
from clew.control.workspaces import clean_workspaces, list_workspaces
from clew.protocol.checks import ReleasedView
from clew.protocol.overview import OverviewView
from clew.protocol.replay import ReplayView
from clew.protocol.requests import (
    Adopt,
    AdoptFound,
    AnswerTo,
    Assign,
    NewChat,
    NewIssue,
    Overlapping,
    Poke,
    Replay,
    Retry,
    ThreadChange,
    Words,
)
from clew.protocol.usage import UsageView
from clew.protocol.views import (
    ApprovalView,
    Cancelled,
    CheckView,
    EventView,
    FoundSessionView,
    LaneView,
    RuntimeView,
    RunView,
    SessionView,
    Spoken,
    ThreadPage,
    ThreadView,
    WakeView,
)
from clew.protocol.why_views import WhyView
from clew.protocol.work_views import CleanedView, WorkspaceView
from clew.server.agent_routes import add_agent_routes
from clew.server.file_routes import add_file_routes
from clew.server.mark_routes import add_mark_routes
from clew.server.notice_routes import add_notice_routes
from clew.server.push_routes import add_push_routes
from clew.server.queue_routes import add_queue_routes
from clew.server.router import By, Filter, Limit, Name, Routes, Seq, strict
from clew.server.search_routes import add_search_routes
from clew.server.work_routes import add_work_routes

Since = Annotated[float, Query(ge=0, le=2**40, allow_inf_nan=False)]
Grouped = Annotated[str, Query(alias="by", max_length=20)]
EntryBefore = Annotated[int | None, Query(ge=1, le=2**31 - 1)]


@strict
@dataclass(frozen=True, slots=True)
class LaneChange:
    overlap: Overlapping


def add_routes(routes: Routes, services: Services) -> None:
    of_threads = (_threads, _thread_sessions, add_mark_routes, add_queue_routes, add_work_routes, add_search_routes)
    of_notices = (add_notice_routes, add_push_routes)
    for add in (add_agent_routes, *of_threads, add_file_routes, *of_notices, _wakes, _runs, _approvals, _machine):
        add(routes, services)


def _threads(routes: Routes, services: Services) -> None:
    routes = routes.below("", "threads")

    @routes.post("/issues", status_code=201)
    async def new_issue(by: By, asked: NewIssue) -> ThreadPage:
        """Open an issue. An assignee is woken."""
        return await open_issue(services, by, asked)

    @routes.post("/chats", status_code=201)
    async def new_chat(by: By, asked: NewChat) -> ThreadView:
        """Open a chat with an agent."""
        return await open_chat(services, by, asked)

    @routes.get("/threads")
    async def list_all(
        by: By,
        kind: Filter = None,
        state: Filter = None,
        agent: Filter = None,
        limit: Limit = 50,
        before: Filter = None,
        only: Filter = None,
    ) -> tuple[ThreadView, ...]:
        """Threads, newest first, without those that are archived. `only` is unread, pinned or archived."""
        return await list_threads(services, by, kind, state, agent, limit, before, only)

    @routes.get("/threads/{ref}")
    async def show(by: By, ref: Name, before: EntryBefore = None, after: Seq = 0, limit: Limit = 50) -> ThreadPage:
        """One thread with the latest entries of its journal, or the latest of those before entry `before` or after
        entry `after`. `ref` is its name (issue-3, or 3; chat-1, own-ada) or its id."""
        return await show_thread(services, by, ref, before=before, limit=limit, after=after)

    @routes.post("/threads/{ref}/words", status_code=201)
    async def speak(by: By, ref: Name, asked: Words) -> Spoken:
        """Send a message to a thread. Answered once the message is stored."""
        return await say(services, by, ref, asked)

    @routes.post("/threads/{ref}/assign")
    async def assign(by: By, ref: Name, asked: Assign) -> ThreadView:
        """Assign it to an agent, or unassign it."""
        return await assign_thread(services, by, ref, asked)

    @routes.post("/threads/{ref}/close")
    async def close(by: By, ref: Name) -> ThreadView:
        """Close it. Pending wakes are cancelled; a live run finishes."""
        return await close_thread(services, by, ref)

    @routes.post("/threads/{ref}/reopen")
    async def reopen(by: By, ref: Name) -> ThreadView:
        """Reopen it."""
        return await reopen_thread(services, by, ref)

    @routes.patch("/threads/{ref}")
    async def edit(by: By, ref: Name, asked: ThreadChange) -> ThreadPage:
        """Change the title or the project, or add a new description to the journal. Fields that are left out stay."""
        return await edit_thread(services, by, ref, asked)

    @routes.patch("/threads/{ref}/lanes/{agent}")
    async def change_lane(by: By, ref: Name, agent: Name, asked: LaneChange) -> LaneView:
        """Set how messages are handled while the agent is busy in this thread."""
        return await set_overlap(services, by, ref, agent, asked.overlap)

    @routes.delete("/threads/{ref}/lanes/{agent}/allowed")
    async def forget(by: By, ref: Name, agent: Name) -> LaneView:
        """Forget which commands the agent was allowed for good in this thread; it asks again."""
        return await forget_allowed(services, by, ref, agent)


def _thread_sessions(routes: Routes, services: Services) -> None:
    routes = routes.below("", "threads")

    @routes.post("/threads/{ref}/adopt", status_code=201)
    async def adopt(by: By, ref: Name, asked: Adopt) -> SessionView:
        """Continue this thread in a session that you started in the agent itself."""
        return await adopt_session(services, by, ref, asked)

    @routes.post("/threads/{ref}/release")
    async def release(by: By, ref: Name) -> ReleasedView:
        """Let go of its sessions that are kept open between turns, so that you can open them in the agent itself."""
        return await release_thread(services, by, ref)


def _runs(routes: Routes, services: Services) -> None:
    routes = routes.below("", "runs")

    @routes.get("/runs")
    async def list_all(
        by: By,
        thread: Filter = None,
        agent: Filter = None,
        state: Filter = None,
        limit: Limit = 50,
        before: Filter = None,
        folded: bool = False,
    ) -> tuple[RunView, ...]:
        """Runs, newest first. `folded` leaves out failed tries that another try followed. `state` is one of theirs, or
        held: queued, and not for its turn alone."""
        return await list_runs(services, by, thread, agent, state, limit, before, folded)

    @routes.get("/runs/{run}")
    async def show(by: By, run: Name) -> RunView:
        """One run. `run` is its name (run-17), its id or a unique prefix, or a thread (issue-3): its latest run."""
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

    @routes.get("/overview")
    async def overview(by: By) -> OverviewView:
        """What waits for a person, what runs, and which agents there are."""
        return await show_overview(services, by)

    @routes.get("/usage")
    async def usage(by: By, since: Since, grouped: Grouped = "agent") -> UsageView:
        """Tokens and cost of the runs queued since then (seconds since the epoch), by agent, project or day."""
        return await show_usage(services, by, grouped, since)

    @routes.post("/replay")
    async def replay(by: By, asked: Replay) -> ReplayView:
        """List past decisions that another policy would change. Read-only."""
        return await replay_decisions(services, by, asked)


def _wakes(routes: Routes, services: Services) -> None:
    routes = routes.below("/wakes", "wakes")

    @routes.post("", status_code=201)
    async def wake(by: By, asked: Poke) -> WakeView:
        """Wake an agent, in a thread or in its own. Requests with the same `key` make one wake."""
        return await poke(services, by, asked)

    @routes.get("/{wake}")
    async def show(by: By, wake: Name) -> WakeView:
        """One wake and its state."""
        return await show_wake(services, by, wake)

    @routes.delete("/{wake}")
    async def cancel(by: By, wake: Name) -> Cancelled:
        """Cancel a wake that no run has started to serve, and take its message back: no agent is told of it. Refused
        once an agent has it."""
        return await cancel_wake(services, by, wake)


def _approvals(routes: Routes, services: Services) -> None:
    routes = routes.below("/approvals", "approvals")

    @routes.get("")
    async def list_all(
        by: By, state: Filter = None, run: Filter = None, limit: Limit = 100
    ) -> tuple[ApprovalView, ...]:
        """Approvals, the oldest first: pending ones, or those in another `state` (`all` for any). With `run`, only
        those of that run."""
        return await list_approvals(services, by, "pending" if state is None else state, limit, run)

    @routes.post("/{approval}")
    async def answer(by: By, approval: Name, asked: AnswerTo) -> ApprovalView:
        """Allow or deny, or answer a question. Only the first answer counts."""
        return await answer_approval(services, by, approval, asked)


@strict
@dataclass(frozen=True, slots=True)
class Clean:
    """Without names, removes workspaces that are merged and clean, and of open threads only with `with_open` or after a
    merge; named ones are removed in any case. `dry` removes nothing, and says what would be removed."""

    asked: Annotated[tuple[str, ...], Field(max_length=1000)] = ()
    dry: bool = False
    with_open: bool = False


def _machine(routes: Routes, services: Services) -> None:
    routes = routes.below("", "machine")

    @routes.get("/sessions")
    async def sessions(
        by: By, thread: Filter = None, agent: Filter = None, limit: Limit = 100
    ) -> tuple[SessionView, ...]:
        """Sessions recorded in Clew, newest first."""
        return await list_sessions(services, by, thread, agent, limit)

    @routes.get("/sessions/found")
    async def found(by: By, agent: Filter = None) -> tuple[FoundSessionView, ...]:
        """Sessions that the agent programs on this machine have, recorded in Clew or not; with `agent`, in its home."""
        return await found_sessions(services, by, agent)

    @routes.post("/sessions/adopt", status_code=201)
    async def adopt(by: By, asked: AdoptFound) -> SessionView:
        """Continue a session that was found on a machine, in a thread or in a new chat."""
        return await adopt_found(services, by, asked)

    @routes.get("/runtimes")
    async def runtimes(by: By) -> tuple[RuntimeView, ...]:
        """Runtimes: each is one provider in one home on one machine."""
        return await list_runtimes(services, by)

    @routes.get("/workspaces")
    async def workspaces(by: By) -> tuple[WorkspaceView, ...]:
        """The directories agents work in, with disk usage."""
        return await list_workspaces(services, by)

    @routes.post("/workspaces/clean")
    async def clean(by: By, asked: Clean) -> tuple[CleanedView, ...]:
        """Remove workspaces that are merged and clean, or those that are named."""
        return await clean_workspaces(services, by, asked.asked, asked.dry, asked.with_open)

    @routes.get("/doctor")
    async def doctor(by: By) -> tuple[CheckView, ...]:
        """Check what is installed and works, with a remedy for each problem."""
        return await examine(services, by)
