"""The routes of the work in a thread's worktrees: what changed, committed, merged and proposed."""

from typing import Annotated

from fastapi import Query
from pydantic import Field

from clew.control.checkout import accept_branch, check_out_work
from clew.control.merges import commit_work, merge_work, propose_work
from clew.control.services import Services
from clew.control.work import show_diff
from clew.protocol.requests import AcceptBranch, CheckOut, Commit, Merge, Propose
from clew.protocol.work_views import CheckoutView, CommitView, DiffView, MergeView, ProposalView
from clew.server.router import By, Filter, Name, Routes

Paths = Annotated[list[Annotated[str, Field(min_length=1, max_length=4096)]] | None, Query(max_length=200)]


def add_work_routes(routes: Routes, services: Services) -> None:
    @routes.below("", "work").post("/workspaces/accept")
    async def accept(by: By, asked: AcceptBranch) -> CheckoutView:
        """Take the branch that an agent's worktree is on for the agent's own, and start what was held for it."""
        return await accept_branch(services, by, asked)

    routes = routes.below("/threads/{ref}", "work")

    @routes.get("/diff")
    async def diff(
        by: By,
        ref: Name,
        agent: Filter = None,
        run: Filter = None,
        path: Paths = None,
        stat: bool = False,
    ) -> DiffView:
        """What an agent of the thread changed that the base does not have, committed or not; with `run`, what that run
        changed. `path` narrows it to files or directories. `agent` is the thread's agent by default."""
        return await show_diff(services, by, ref, agent, run, path or (), stat)

    @routes.post("/commit", status_code=201)
    async def commit(by: By, ref: Name, asked: Commit) -> CommitView:
        """Commit what an agent left uncommitted, on its branch. Refused while it works."""
        return await commit_work(services, by, ref, asked)

    @routes.post("/merge", status_code=201)
    async def merge(by: By, ref: Name, asked: Merge = Merge()) -> MergeView:  # noqa: B008 - a frozen value
        """Merge an agent's branch, by default into its base. A conflict, or changes that are in no commit, refuse it,
        and nothing is changed."""
        return await merge_work(services, by, ref, asked)

    @routes.post("/propose", status_code=201)
    async def propose(by: By, ref: Name, asked: Propose = Propose()) -> ProposalView:  # noqa: B008 - a frozen value
        """Open a pull request by `gh` on the machine that has the worktree, or say how to open one."""
        return await propose_work(services, by, ref, asked)

    @routes.post("/checkout")
    async def checkout(by: By, ref: Name, asked: CheckOut = CheckOut()) -> CheckoutView:  # noqa: B008 - a frozen value
        """Work in an agent's worktree: its wakes wait until `done` is sent."""
        return await check_out_work(services, by, ref, asked)
