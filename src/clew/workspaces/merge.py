"""Merging a lane's branch. The result is made without touching any files; then one step moves the branch.

A conflict is found before that step, so it leaves everything as it was.
"""

import asyncio
from pathlib import Path

from clew.kernel import WorkspaceId
from clew.ports.work import Merged
from clew.workspaces.changed_paths import listed, split, uncommitted
from clew.workspaces.commit import Committing, identity, must_be_committed, must_be_on_own_branch
from clew.workspaces.faults import CannotMergeInto, GitTooOld, MergeConflict, NothingToMerge, explain_git
from clew.workspaces.git import Git, Repository, git_refused
from clew.workspaces.layout import Layout
from clew.workspaces.lock import locked
from clew.workspaces.repository import common_of, pointer_of, unfinished_operation
from clew.workspaces.work import LaneWork, Worktree, short_name, worktree_of
from clew.workspaces.worktree import LOCK

OLDEST = (2, 38)
"""The first git that can merge without a checkout (merge-tree --write-tree)."""

_HEADS = "refs/heads/"
_AGENTS = "clew/"
_NAMED = 6
_CONFLICTED = 1


class Merging:
    def __init__(self, git: Git, layout: Layout, work: LaneWork, committing: Committing) -> None:
        self._git = git
        self._layout = layout
        self._work = work
        self._committing = committing

    async def merge(self, workspace: WorkspaceId, into: str | None, message: str, by: str) -> Merged:
        tree = await asyncio.to_thread(worktree_of, self._layout, workspace)
        if await self._git.version() < OLDEST:
            raise GitTooOld(
                f"Merging needs git {OLDEST[0]}.{OLDEST[1]}.",
                f"Install a newer git, or merge {tree.record.branch} by hand.",
            )
        async with self._committing.alone(tree.directory):
            must_be_on_own_branch(tree)
            await must_be_committed(self._git, tree)
            target = await self._target(tree, into)
            async with locked(tree.pointer.common / LOCK):
                merged = await self._merge(tree, target, message, by)
        return Merged(await self._work.work(workspace), short_name(target), *merged)

    async def _merge(self, tree: Worktree, target: str, message: str, by: str) -> tuple[str, str | None]:
        theirs, ours = await self._commit(tree, target), await self._commit(tree, f"{_HEADS}{tree.record.branch}")
        into = short_name(target)
        if (await self._git.ask(tree.at, "merge-base", "--is-ancestor", ours, theirs)).ok:
            raise NothingToMerge(
                f"Nothing to merge: {into} has everything of {tree.record.branch}.",
                f"See `git log {into}..{tree.record.branch}`.",
            )
        checkout = await self._checkout_of(tree, target)
        if checkout is not None:
            await self._must_be_clean(checkout, into)
        result = await self._result(tree, theirs, ours, into)
        environment = await identity(self._git, tree.at, by)
        parents = ("-p", theirs, "-p", ours)
        made = await self._git.do(tree.at, "commit-tree", *parents, "-m", message, result, environment=environment)
        if checkout is None:
            # The old value is compared: a commit that is added meanwhile is not lost.
            await self._git.do(tree.at, "update-ref", "-m", message, target, made.text, theirs)
            return made.text, None
        await self._forward(checkout, target, made.text)
        return made.text, str(checkout)

    async def _result(self, tree: Worktree, theirs: str, ours: str, into: str) -> str:
        """The tree of the merge, made in git's store alone."""
        said = await self._git.ask(
            tree.at, "merge-tree", "--write-tree", "-z", "--name-only", "--no-messages", theirs, ours
        )
        first, *rest = said.out.split(b"\0")
        if said.ok:
            return first.decode().strip()
        if said.status != _CONFLICTED:
            raise git_refused(said, "merge-tree")
        names = split(b"\0".join(rest))
        raise MergeConflict(
            f"{tree.record.branch} conflicts with {into} in {listed(names)}. Nothing was changed.",
            f'Ask the agent: `clew say THREAD "Merge {into} into your branch and resolve the conflicts."`; or do it '
            f"yourself in {tree.directory} after `clew checkout THREAD`.",
        )

    async def _target(self, tree: Worktree, into: str | None) -> str:
        """The full name of the branch to merge into."""
        target = f"{_HEADS}{into}" if into is not None else tree.record.base
        if target == f"{_HEADS}{tree.record.branch}":
            raise CannotMergeInto(f"{into} is the agent's own branch.", "Name another branch with --into.")
        if not target.startswith(_HEADS):
            what = (
                f"{short_name(target)} of the project's address" if target.startswith("refs/remotes/") else "no branch"
            )
            raise CannotMergeInto(
                f"The base is {what}, and Clew does not push to it.",
                "Open a pull request with `clew pr THREAD`, or name a branch of this machine with --into.",
            )
        if not (await self._git.ask(tree.at, "show-ref", "--verify", "--quiet", target)).ok:
            there = await self._git.ask(
                tree.at, "for-each-ref", "--sort=-committerdate", "--format=%(refname:short)", _HEADS
            )
            # A person's branches first: after a day there are more of agents than are shown.
            names = sorted(there.text.split(), key=lambda name: name.startswith(_AGENTS))
            raise CannotMergeInto(
                f"There is no branch {short_name(target)!r}.",
                f"Name one that exists: {', '.join(names[:_NAMED])}.",
            )
        return target

    async def _commit(self, tree: Worktree, ref: str) -> str:
        return (await self._git.do(tree.at, "rev-parse", "--verify", "--end-of-options", f"{ref}^{{commit}}")).text

    async def _checkout_of(self, tree: Worktree, target: str) -> Path | None:
        """Where that branch is checked out; None where it is nowhere."""
        said = await self._git.do(tree.at, "worktree", "list", "--porcelain")
        at: Path | None = None
        for line in said.text.splitlines():
            if line.startswith("worktree "):
                at = Path(line.removeprefix("worktree "))
            elif line == f"branch {target}" and at is not None and at.is_dir():
                return at
        return None

    async def _must_be_clean(self, checkout: Path, into: str) -> None:
        if user := self._committing.user_of(checkout):
            raise CannotMergeInto(f"{checkout}, which has {into} checked out, is in use: {user}.", "Wait for its end.")
        pointer = pointer_of(checkout)
        admin = common_of(checkout) if pointer is None else pointer.admin
        midst = "" if admin is None else unfinished_operation(admin)
        if midst:
            raise CannotMergeInto(f"{checkout}, which has {into} checked out, is {midst}.", "Finish that first.")
        names = await uncommitted(self._git, Repository(checkout), untracked=False)
        if names:
            raise CannotMergeInto(
                f"{checkout}, which has {into} checked out, has changes that are in no commit: {listed(names)}.",
                f"Commit or stash them there (`git -C {checkout} stash`), then merge again.",
            )

    async def _forward(self, checkout: Path, target: str, commit: str) -> None:
        """Move the branch and the files of its checkout. Git refuses before it changes anything where a new file is in
        the way."""
        at = Repository(checkout)
        on = await self._git.ask(at, "symbolic-ref", "--quiet", "HEAD")
        if on.text != target:
            raise CannotMergeInto(f"{checkout} was switched to another branch meanwhile.", "Merge again.")
        said = await self._git.ask(at, "merge", "--ff-only", "--quiet", commit, seconds=self._git.deadlines.make)
        if not said.ok:
            lines = " ".join(line.strip() for line in said.err.splitlines() if line.strip())
            words = lines if "would be overwritten" in lines else explain_git(said.err, "git merge failed.")[0]
            raise CannotMergeInto(f"{checkout} could not be updated: {words}", "Move that away, then merge again.")
