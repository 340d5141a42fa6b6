"""Committing the work in a worktree, and taking over a branch that its agent made."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from clew.kernel import WorkspaceId
from clew.ports.work import Committed, Work
from clew.workspaces.branch import lane_of_branch, lane_setting
from clew.workspaces.changed_paths import listed, split, uncommitted
from clew.workspaces.faults import MergeConflict, NothingToCommit, OnOtherBranch, StillBusy, Uncommitted
from clew.workspaces.git import Git, Repository
from clew.workspaces.layout import Layout
from clew.workspaces.lock import DirectoryUses, locked
from clew.workspaces.repository import unfinished_operation
from clew.workspaces.work import LaneWork, Worktree, worktree_of

_PATIENCE = 10.0
"""Seconds to wait for another process that inspects or makes the same directory."""


class Committing:
    def __init__(self, git: Git, layout: Layout, uses: DirectoryUses, work: LaneWork) -> None:
        self._git = git
        self._layout = layout
        self._uses = uses
        self._work = work

    async def commit(self, workspace: WorkspaceId, message: str, by: str) -> Committed:
        tree = await asyncio.to_thread(worktree_of, self._layout, workspace)
        async with self.alone(tree.directory):
            must_be_on_own_branch(tree)
            unmerged = await self._git.do(tree.at, "diff", "--name-only", "--diff-filter=U", "-z")
            if names := await asyncio.to_thread(_unresolved, tree.directory, split(unmerged.out)):
                raise MergeConflict(
                    f"{tree.directory} is {unfinished_operation(tree.pointer.admin) or 'in conflict'}; "
                    f"not resolved yet: {listed(names)}.",
                    "Resolve them there, then commit.",
                )
            changed = await uncommitted(self._git, tree.at)
            if not changed:
                raise NothingToCommit(f"Nothing to commit on {tree.branch}.", "Everything is committed already.")
            environment = await identity(self._git, tree.at, by)
            await self._git.do(tree.at, "add", "--all", "--", ":/")
            await self._git.do(
                tree.at, "-c", "commit.gpgsign=false", "commit", "--quiet", "-m", message, environment=environment
            )
        work = await self._work.work(workspace)
        return Committed(work, work.head, len(changed))

    async def accept_branch(self, workspace: WorkspaceId) -> Work:
        tree = await asyncio.to_thread(worktree_of, self._layout, workspace)
        async with self.alone(tree.directory):
            branch, record = tree.branch, tree.record
            if branch is None:
                raise OnOtherBranch(
                    f"{tree.directory} is on no branch.",
                    f"Make one: `git -C {tree.directory} switch -c NAME`; or go back: `git -C {tree.directory} "
                    f"switch {record.branch}`.",
                )
            if midst := unfinished_operation(tree.pointer.admin):
                raise OnOtherBranch(f"{tree.directory} is {midst}.", "Finish that first.")
            owner = await lane_of_branch(self._git, tree.at, branch)
            if owner not in (None, record.lane):
                raise OnOtherBranch(f"Branch {branch} is another lane's.", f"Go back to {record.branch}.")
            await asyncio.to_thread(replace(record, branch=branch).write, self._layout.record(workspace))
            await self._git.ask(tree.at, "config", lane_setting(branch), record.lane)
        return await self._work.work(workspace)

    def user_of(self, directory: Path) -> str | None:
        """The agent that uses the directory now, in words."""
        return self._uses.user(directory)

    @contextlib.asynccontextmanager
    async def alone(self, directory: Path) -> AsyncIterator[None]:
        """While no agent uses the directory, and none can begin to."""
        async with locked(self._layout.making(directory), patience=_PATIENCE):
            if user := self.user_of(directory):
                raise StillBusy(f"{directory} is in use: {user}.", "Wait until the run has ended, or interrupt it.")
            yield


def _unresolved(directory: Path, unmerged: Sequence[str]) -> list[str]:
    """The files of a conflict that still have git's markers in them."""
    found = []
    for name in unmerged:
        with contextlib.suppress(OSError):
            text = (directory / name).read_bytes()
            if b"<<<<<<< " in text and b">>>>>>> " in text:
                found.append(name)
    return found


def must_be_on_own_branch(tree: Worktree) -> None:
    if tree.branch == tree.record.branch:
        return
    where = tree.branch or "no branch"
    raise OnOtherBranch(
        f"{tree.directory} should be on branch {tree.record.branch} but is on {where}.",
        f"Work on there with `clew workspaces accept {tree.directory}`, or go back with `git -C {tree.directory} "
        f"switch {tree.record.branch}`.",
    )


async def must_be_committed(git: Git, tree: Worktree) -> None:
    if names := await uncommitted(git, tree.at):
        raise Uncommitted(
            f"{tree.directory} has changes that are in no commit: {listed(names)}.",
            'Commit them with `clew commit THREAD -m "…"`, then try again.',
        )


async def identity(git: Git, at: Repository, by: str) -> Mapping[str, str]:
    """The name under which git commits: the user's own, or `by` where git knows none."""
    name = (await git.ask(at, "config", "user.name")).text
    email = (await git.ask(at, "config", "user.email")).text
    name, email = (name, email) if name and email else (by, "clew@localhost")
    return {f"GIT_{who}_{what}": value for who in ("AUTHOR", "COMMITTER") for what, value in _both(name, email)}


def _both(name: str, email: str) -> Sequence[tuple[str, str]]:
    return ("NAME", name), ("EMAIL", email)
