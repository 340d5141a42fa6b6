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


class WorkOf(Protocol):
    """The calls of a machine about the work in its worktrees."""

    async def work(self, workspace: WorkspaceId) -> Work: ...

    async def diff(self, workspace: WorkspaceId, wanted: DiffWanted) -> Diff: ...
