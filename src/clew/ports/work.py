"""The work in a lane's worktree: what it has that its base does not, shown, committed, merged and proposed.

Every call names a workspace and is answered by the machine that has it.
"""

from dataclasses import dataclass
from typing import Protocol

from clew.kernel import RunId, WorkspaceId


@dataclass(frozen=True, slots=True)
class Work:
    """What a worktree has that its base does not, counted. `files` counts every changed file, committed or not;
    `commits` is None where the base is not known. `base` is its short name; `head`, the commit that it is at."""

    workspace: WorkspaceId
    branch: str | None
    base: str
    head: str
    files: int = 0
    uncommitted: int = 0
    commits: int | None = None


@dataclass(frozen=True, slots=True)
class DiffWanted:
    """`paths` narrow it, relative to the worktree; `stat` asks for counts only. With `run` it is what that run
    changed, otherwise everything that the base does not have."""

    paths: tuple[str, ...] = ()
    stat: bool = False
    run: RunId | None = None


@dataclass(frozen=True, slots=True)
class Diff:
    """`text` is git's, without colours. `cut`: it was too long, and its end is missing. `left_out` are new files that
    are too large to be compared."""

    work: Work
    text: str
    cut: bool = False
    left_out: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Committed:
    """A commit that was made. `work` is counted after it."""

    work: Work
    commit: str
    files: int


@dataclass(frozen=True, slots=True)
class Merged:
    """A merge that was made: `commit` is now the tip of branch `into`. `updated` is the checkout of that branch, whose
    files have it too; None where nobody has it checked out."""

    work: Work
    into: str
    commit: str
    updated: str | None = None


@dataclass(frozen=True, slots=True)
class Proposed:
    """`url` is the pull request that was opened. Without it, `push` is the command that sends the branch, and `address`
    the page where a pull request is opened, where the remote is known to have one."""

    work: Work
    branch: str
    push: str
    url: str | None = None
    address: str | None = None


class WorkOf(Protocol):
    """The calls of a machine about the work in its worktrees."""

    async def work(self, workspace: WorkspaceId) -> Work: ...

    async def contains(self, workspace: WorkspaceId, commit: str) -> bool:
        """Whether the commit is the worktree's own, or among those that it builds on."""
        ...

    async def diff(self, workspace: WorkspaceId, wanted: DiffWanted) -> Diff: ...

    async def commit(self, workspace: WorkspaceId, message: str, by: str) -> Committed:
        """Commit everything that git does not ignore, on the lane's branch. `by` is the author's name where git knows
        none."""
        ...

    async def merge(self, workspace: WorkspaceId, into: str | None, message: str, by: str) -> Merged:
        """Merge the lane's branch into a branch of the project, by default its base. Whatever prevents it is raised
        before anything is changed."""
        ...

    async def propose(self, workspace: WorkspaceId, title: str, body: str) -> Proposed:
        """Open a pull request by `gh`, or say how to."""
        ...

    async def accept_branch(self, workspace: WorkspaceId) -> Work:
        """Take the branch that the worktree is on for the lane's own."""
        ...
