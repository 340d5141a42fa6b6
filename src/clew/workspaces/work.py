"""The work in a worktree: counted and shown against its base, or as one run changed it."""

import asyncio
from dataclasses import dataclass
from pathlib import Path

from clew.kernel import RunId, WorkspaceId
from clew.ports.work import Diff, DiffWanted, Work
from clew.workspaces.faults import NoSuchRunHere, NoWorktree
from clew.workspaces.git import Answer, Git, Repository
from clew.workspaces.handover import has_only_copies
from clew.workspaces.layout import Layout
from clew.workspaces.marker import Record, Unreadable
from clew.workspaces.repository import Pointer, head_of, pointer_of
from clew.workspaces.snapshot import Snapshot, take_snapshot

LONGEST = 2 * 1024 * 1024
"""Bytes of a diff that are handed out."""

# Whatever the person has configured: programs and pages read these diffs.
_FORM = ("--src-prefix=a/", "--dst-prefix=b/", "--submodule=short")
_DIFF = ("diff", "--no-color", "--no-ext-diff", "--no-textconv", "--find-renames", *_FORM)


@dataclass(frozen=True, slots=True)
class Worktree:
    """A worktree of Clew's with its record."""

    record: Record
    pointer: Pointer

    @property
    def directory(self) -> Path:
        return Path(self.record.directory)

    @property
    def at(self) -> Repository:
        return Repository(self.directory)

    @property
    def branch(self) -> str | None:
        """The branch that it is on; the lane's own is `record.branch`."""
        return head_of(self.pointer.admin).branch


def worktree_of(layout: Layout, workspace: WorkspaceId) -> Worktree:
    try:
        record = Record.read(layout.record(workspace))
    except Unreadable:
        record = None
    if record is None:
        raise NoWorktree("The agent's worktree was not made yet, or it was removed.", "Its next run makes it.")
    pointer = pointer_of(Path(record.directory))
    if pointer is None:
        raise NoWorktree(
            f"{record.directory} is gone, or is no worktree any more.", "The agent's next run makes it again."
        )
    return Worktree(record, pointer)


class LaneWork:
    def __init__(self, git: Git, layout: Layout) -> None:
        self._git = git
        self._layout = layout

    async def work(self, workspace: WorkspaceId) -> Work:
        tree = await asyncio.to_thread(worktree_of, self._layout, workspace)
        return await self.count(tree, await self._base(tree), await self._snapshot(tree))

    async def contains(self, workspace: WorkspaceId, commit: str) -> bool:
        tree = await asyncio.to_thread(worktree_of, self._layout, workspace)
        return (await self._git.ask(tree.at, "merge-base", "--is-ancestor", commit, "HEAD")).ok

    async def diff(self, workspace: WorkspaceId, wanted: DiffWanted) -> Diff:
        tree = await asyncio.to_thread(worktree_of, self._layout, workspace)
        base, snapshot = await self._base(tree), await self._snapshot(tree)
        ends = (base.since, snapshot.tree) if wanted.run is None else await self._of_run(tree, wanted.run)
        how = ("--stat",) if wanted.stat else ()
        said = await self._git.do(tree.at, "--literal-pathspecs", *_DIFF, *how, *ends, "--", *wanted.paths)
        text, cut = _text(said)
        work = await self.count(tree, base, snapshot)
        return Diff(work, text, cut, snapshot.left_out if wanted.run is None else ())

    async def count(self, tree: Worktree, base: "Base", snapshot: Snapshot) -> Work:
        head = (await self._git.do(tree.at, "rev-parse", "--verify", "HEAD")).text
        if await has_only_copies(self._git, tree.at, tree.record, head, snapshot):
            # Another's work, which is counted there.
            return Work(tree.record.workspace, tree.branch, base.name, head, commits=0 if base.name else None)
        changed = await self._names(tree, base.since, snapshot.tree)
        uncommitted = await self._names(tree, head, snapshot.tree)
        commits = None
        if base.name:
            counted = await self._git.ask(tree.at, "rev-list", "--count", "HEAD", "--not", base.commit)
            commits = int(counted.text) if counted.ok else None
        return Work(
            workspace=tree.record.workspace,
            branch=tree.branch,
            base=base.name,
            head=head,
            files=len(changed) + len(snapshot.left_out),
            uncommitted=len(uncommitted) + len(snapshot.left_out),
            commits=commits,
        )

    async def mark(self, workspace: WorkspaceId, run: RunId, when: str) -> Snapshot:
        """Keep the worktree as it is now, as the state `before` or `after` a run. The reference is the worktree's own:
        it is in no branch, is never pushed, and goes with the worktree."""
        tree = await asyncio.to_thread(worktree_of, self._layout, workspace)
        snapshot = await self._snapshot(tree)
        ref = _mark(run, when)
        known = await self._git.ask(tree.at, "rev-parse", "--verify", "--quiet", ref)
        # A run that is tried again began before its first try.
        if when == "after" or not known.ok:
            await self._git.do(tree.at, "update-ref", ref, snapshot.tree)
        return snapshot

    async def ended(self, workspace: WorkspaceId, run: RunId) -> Work:
        """A run has ended: keep the state it left, and count."""
        snapshot = await self.mark(workspace, run, "after")
        tree = await asyncio.to_thread(worktree_of, self._layout, workspace)
        return await self.count(tree, await self._base(tree), snapshot)

    async def _of_run(self, tree: Worktree, run: RunId) -> tuple[str, str]:
        before = await self._git.ask(tree.at, "rev-parse", "--verify", "--quiet", _mark(run, "before"))
        after = await self._git.ask(tree.at, "rev-parse", "--verify", "--quiet", _mark(run, "after"))
        if not before.ok:
            raise NoSuchRunHere(
                f"It is not known what that run changed: it did not work in {tree.directory}.",
                "Leave --run out to see everything that the base does not have.",
            )
        # A run that has not ended is compared with the files as they are.
        return before.text, after.text if after.ok else (await self._snapshot(tree)).tree

    async def _snapshot(self, tree: Worktree) -> Snapshot:
        return await take_snapshot(self._git, self._layout, tree.directory, tree.pointer.admin)

    async def _names(self, tree: Worktree, one: str, other: str) -> list[bytes]:
        said = await self._git.do(tree.at, *_DIFF, "--name-only", "-z", one, other)
        return [name for name in said.out.split(b"\0") if name]

    async def _base(self, tree: Worktree) -> "Base":
        return await base_of(self._git, tree)


@dataclass(frozen=True, slots=True)
class Base:
    """What a worktree is compared with. `ref` is a full name, or a commit; `since` is the last commit of the base that
    the worktree has."""

    ref: str
    commit: str
    since: str

    @property
    def name(self) -> str:
        return short_name(self.ref)


def short_name(ref: str) -> str:
    for prefix in ("refs/heads/", "refs/remotes/", "refs/tags/"):
        if ref.startswith(prefix):
            return ref.removeprefix(prefix)
    return ref[:12]


async def base_of(git: Git, tree: Worktree) -> Base:
    """The base of its record; where that is gone, the commit that the branch started from."""
    for ref in filter(None, (tree.record.base, tree.record.start)):
        commit = await git.ask(tree.at, "rev-parse", "--verify", "--quiet", "--end-of-options", f"{ref}^{{commit}}")
        if commit.ok:
            since = await git.ask(tree.at, "merge-base", commit.text, "HEAD")
            return Base(ref, commit.text, since.text if since.ok else commit.text)
    # A branch that was there before Clew, without a base: only what is not committed is known.
    head = (await git.do(tree.at, "rev-parse", "--verify", "HEAD")).text
    return Base("", head, head)


def _mark(run: RunId, when: str) -> str:
    return f"refs/worktree/clew/{run}/{when}"


def _text(said: Answer) -> tuple[str, bool]:
    cut = len(said.out) > LONGEST
    whole = said.out[: said.out.rfind(b"\n", 0, LONGEST) + 1] if cut else said.out
    return whole.decode("utf-8", "replace"), cut
