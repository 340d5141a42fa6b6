"""A lane that begins from another lane's branch: at its commit, with copies of what is not committed there yet."""

import asyncio
import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from clew.workspaces.faults import CannotMake
from clew.workspaces.git import Git, Repository
from clew.workspaces.layout import Layout
from clew.workspaces.marker import Record, Unreadable
from clew.workspaces.place_state import Site
from clew.workspaces.repository import head_of, pointer_of, unfinished_operation
from clew.workspaces.snapshot import Snapshot, take_snapshot

_NAMED = 20
"""How many changed files an agent is told by name."""


@dataclass(frozen=True, slots=True)
class Origin:
    """Where a new branch begins. `tree` has the files as they are in the other lane's worktree, where they differ from
    `commit`. `words` tell the new agent whose work it is and what changed."""

    commit: str
    words: str
    tree: str | None = None

    @property
    def state(self) -> str:
        return f"{self.commit} {self.tree or ''}"


class Handover:
    def __init__(self, git: Git, layout: Layout) -> None:
        self._git = git
        self._layout = layout

    async def origin(self, site: Site, where: Repository, base: str) -> Origin | None:
        """None where the lane begins from the base."""
        workspace = site.wanted.workspace
        if workspace.begins is None:
            return None
        ref = f"refs/heads/{workspace.begins}"
        tip = await self._git.ask(where, "rev-parse", "--verify", "--quiet", "--end-of-options", f"{ref}^{{commit}}")
        if not tip.ok and workspace.begun_by is not None:
            # The other agent's branch was removed, most likely after it was merged.
            return None
        if not tip.ok:
            raise CannotMake(
                f"there is no branch {workspace.begins!r} to begin from.",
                "Make that branch with `git branch`.",
            )
        theirs = await asyncio.to_thread(self._worktree_on, site, workspace.begins)
        tree = None if theirs is None else await self._uncommitted(theirs, tip.text)
        changed = await self._changed(where, base, tip.text, tree or tip.text)
        uncommitted = [] if tree is None else await self._names(where, tip.text, tree)
        owner = f"{workspace.begun_by}'s branch" if workspace.begun_by else "branch"
        return Origin(tip.text, _words(owner, workspace.begins, tip.text, changed, uncommitted, theirs), tree)

    async def carry(self, site: Site, origin: Origin) -> None:
        """Copy what is not committed there into the new worktree, where it is not committed either."""
        if origin.tree is not None:
            at = Repository(site.directory)
            await self._git.do(at, "restore", f"--source={origin.tree}", "--worktree", "--no-overlay", "--", ":/")

    async def news(self, site: Site, record: Record) -> Record:
        """What happened on the branch that it began from since its agent was last told. A worktree in which its agent
        changed nothing follows it. Else new commits are taken over where the lane has none of its own and nothing is in
        the way, or the agent is told how to take them."""
        begins, at = site.wanted.workspace.begins, Repository(site.directory)
        tip = await self._git.ask(at, "rev-parse", "--verify", "--quiet", f"refs/heads/{begins}^{{commit}}")
        if begins is None or not tip.ok:
            return record
        theirs = await asyncio.to_thread(self._worktree_on, site, begins)
        tree = None if theirs is None else await self._uncommitted(theirs, tip.text)
        now = Origin(tip.text, "", tree)
        if now.state == record.followed:
            return record
        follows = await self._has_only_copies(site.directory, record)
        owner = f"{site.wanted.workspace.begun_by}'s branch" if site.wanted.workspace.begun_by else "Branch"
        words = []
        missing = await self._git.ask(at, "rev-list", "--count", tip.text, "--not", "HEAD")
        if missing.ok and missing.text != "0":
            taken = follows or (await self._git.ask(at, "merge", "--ff-only", "--quiet", tip.text)).ok
            words.append(f"{owner} {begins} has new commits ({missing.text}).")
            words.append(
                "This branch has them now."
                if taken
                else f"This branch lacks them: see `git diff HEAD...{begins}`, take them with `git merge {begins}`."
            )
        known = record.followed.partition(" ")[2]
        if tree is not None and tree != known:
            names = await self._names(at, known or tip.text, tree)
            where = "this worktree has the same now" if follows else f"it is in {theirs}"
            words.append(f"Changed there since the last turn here, and not committed: {_listed(names)}; {where}.")
        if follows:
            await self._follow(site, record, now)
        carried = now.state if follows else record.carried
        told = replace(record, followed=now.state, carried=carried, remade=" ".join([record.remade, *words]).strip())
        await asyncio.to_thread(told.write, self._layout.record(site.wanted.workspace.id))
        return told

    async def _has_only_copies(self, directory: Path, record: Record) -> bool:
        pointer = pointer_of(directory)
        if pointer is None or head_of(pointer.admin).branch != record.branch or unfinished_operation(pointer.admin):
            return False
        at = Repository(directory)
        head = await self._git.do(at, "rev-parse", "--verify", "HEAD")
        snapshot = await take_snapshot(self._git, self._layout, directory, pointer.admin)
        return await has_only_copies(self._git, at, record, head.text, snapshot)

    async def _follow(self, site: Site, record: Record, now: Origin) -> None:
        """Replace the copies. The caller has seen that there is nothing else."""
        at = Repository(site.directory)
        commit, _, tree = record.carried.partition(" ")
        if tree:
            said = await self._git.do(at, "diff", "--name-only", "-z", "--no-renames", "--diff-filter=A", commit, tree)
            for name in filter(None, said.out.split(b"\0")):
                # Git does not know these files, so a reset would leave them.
                (site.directory / os.fsdecode(name)).unlink(missing_ok=True)
        await self._git.do(at, "reset", "--hard", "--quiet", now.commit, seconds=self._git.deadlines.make)
        await self.carry(site, now)

    def _worktree_on(self, site: Site, branch: str) -> Path | None:
        """The worktree of the lane that has that branch."""
        for path in sorted(self._layout.records.glob("*.json")):
            try:
                record = Record.read(path)
            except Unreadable:
                continue
            if record is not None and (record.branch, record.common) == (branch, os.fspath(site.common or "")):
                directory = Path(record.directory)
                return directory if pointer_of(directory) is not None else None
        return None

    async def _uncommitted(self, directory: Path, tip: str) -> str | None:
        pointer = pointer_of(directory)
        if pointer is None:
            return None
        taken = await take_snapshot(self._git, self._layout, directory, pointer.admin)
        committed = await self._git.do(Repository(directory), "rev-parse", f"{tip}^{{tree}}")
        return None if taken.tree == committed.text else taken.tree

    async def _changed(self, where: Repository, base: str, commit: str, until: str) -> list[str]:
        """Since the last commit of the base that it has."""
        since = await self._git.ask(where, "merge-base", base, commit) if base else None
        return await self._names(where, since.text, until) if since is not None and since.ok else []

    async def _names(self, where: Repository, one: str, other: str) -> list[str]:
        said = await self._git.ask(where, "diff", "--name-only", "-z", "--no-ext-diff", one, other)
        return [os.fsdecode(name) for name in said.out.split(b"\0") if name] if said.ok else []


async def has_only_copies(git: Git, at: Repository, record: Record, head: str, snapshot: Snapshot) -> bool:
    """Whether a worktree is as Clew filled it from another's branch: its agent has changed nothing."""
    commit, _, tree = record.carried.partition(" ")
    if not commit or head != commit or snapshot.left_out:
        return False
    return snapshot.tree == (tree or (await git.do(at, "rev-parse", f"{commit}^{{tree}}")).text)


def _words(
    owner: str, branch: str, commit: str, changed: Sequence[str], uncommitted: Sequence[str], theirs: Path | None
) -> str:
    words = [f"This worktree begins with the work of another: {owner} {branch}, at commit {commit[:10]}."]
    words.append(f"It changed {_listed(changed)}." if changed else "It changed no file yet.")
    if uncommitted:
        words.append(
            f"Not committed there, and copied into this worktree, where it is not committed either: "
            f"{_listed(uncommitted)}."
        )
    if theirs is not None:
        words.append(f"Leave the other worktree, {theirs}, as it is.")
    return " ".join(words)


def _listed(names: Sequence[str]) -> str:
    shown = [" ".join("".join(each if each.isprintable() else "?" for each in name).split()) for name in names[:_NAMED]]
    more = len(names) - _NAMED
    return ", ".join(shown) + (f" and {more} more" if more > 0 else "")
