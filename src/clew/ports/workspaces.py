"""The port of workspaces: the directories that lanes work in, which are made, listed and removed on their machine.

The kernel decides what to do about the state of the disk (`resolve_place`). An answer never names another directory
than the one asked for.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from types import MappingProxyType
from typing import Protocol

from clew.kernel import (
    Directory,
    FoundReason,
    Instant,
    LaneId,
    PlaceStep,
    ProjectId,
    RunId,
    Workspace,
    WorkspaceId,
)
from clew.ports.work import Work, WorkOf

Progress = Callable[[str], None]
"""Called with each line that the setup writes."""


class SourceKind(StrEnum):
    REPOSITORY = "repository"
    """A git repository of this machine."""
    ADDRESS = "address"
    """The address of a repository, which is cloned once for each machine."""
    PLAIN = "plain"
    """A directory without git, used in place by one lane at a time."""


@dataclass(frozen=True, slots=True)
class Setup:
    """Commands that run in a new worktree, with this environment and nothing of Clew's own."""

    commands: tuple[str, ...] = ()
    environment: Mapping[str, str] = field(default_factory=dict, repr=False)
    seconds: float = 600.0


@dataclass(frozen=True, slots=True)
class ProjectSource:
    """Where a project comes from. New branches start from `base`; None is the branch that the source is on."""

    project: ProjectId
    source: str = field(repr=False)
    kind: SourceKind = SourceKind.REPOSITORY
    base: str | None = None
    setup: Setup = field(default_factory=Setup)


@dataclass(frozen=True, slots=True)
class PlaceWanted:
    """The workspace that a lane needs. `who` names the lane for people, as in "ada in issue-3"."""

    lane: LaneId
    workspace: Workspace
    source: ProjectSource | None = None
    who: str = ""

    @property
    def holder(self) -> str:
        return self.who or f"lane {self.lane}"


@dataclass(frozen=True, slots=True)
class Ensured:
    """The workspace exists, and is locked for the lane until it is released. `directory` has its links resolved.

    `remade` tells the agent that the workspace was gone and was made again, and what was lost. It is repeated until
    `acknowledge`, also after a crash: it is stored on disk. `branch` is the one that it is on: another than the wanted
    one where that name was taken.
    """

    directory: Directory
    step: PlaceStep
    reason: FoundReason
    words: str
    setup_output: Path | None = None
    remade: str = ""
    branch: str | None = None


@dataclass(frozen=True, slots=True)
class Held:
    """The workspace is not available. `passing`: another try may succeed without a person's help."""

    reason: FoundReason
    words: str
    passing: bool = False
    setup_output: Path | None = None


@dataclass(frozen=True, slots=True)
class SourceFound:
    """What was found at a path or an address. `source` is the form to store."""

    source: str = field(repr=False)
    kind: SourceKind


class ListedState(StrEnum):
    READY = "ready"
    UNFINISHED = "unfinished"
    """Its creation was not finished; the next wake of its lane finishes it."""
    ORPHANED = "orphaned"
    """Its directory is gone, or its project no longer knows it."""
    UNKNOWN = "unknown"
    """Not made by Clew, or its lane is not known."""


@dataclass(frozen=True, slots=True)
class DiskUse:
    """Bytes on disk, a hard link counted once. `ignored` is the part that git ignores. `whole`: all was counted."""

    total: int = 0
    ignored: int = 0
    whole: bool = True


@dataclass(frozen=True, slots=True)
class Listed:
    """A workspace on disk. `unmerged` counts the commits that its base does not have; None where that is not known."""

    directory: Directory
    state: ListedState
    workspace: WorkspaceId | None = None
    lane: LaneId | None = None
    project: ProjectId | None = None
    branch: str | None = None
    disk: DiskUse = field(default_factory=DiskUse)
    # Changed or untracked paths; `midst` names an unfinished rebase, merge or the like.
    changes: int = 0
    midst: str = ""
    unmerged: int | None = None
    # The branch that is the lane's own; `branch` is the one that is checked out.
    own_branch: str | None = None
    submodules: bool = False
    # Git's own lock on a worktree, with its reason.
    locked: str | None = None
    last_used: Instant | None = None
    used_by: str = ""
    note: str = ""

    @property
    def dirty(self) -> bool:
        return self.changes > 0 or self.midst != ""


class CleanReason(StrEnum):
    MERGED = "clean:merged"
    ASKED = "clean:asked"
    ASKED_MERGED = "clean:asked-merged"
    CLEARED = "clean:cleared"
    GONE = "clean:gone"
    DIRTY = "clean:dirty"
    UNMERGED = "clean:unmerged"
    IN_USE = "clean:in-use"
    RECENT = "clean:recent"
    LOCKED = "clean:locked"
    SUBMODULES = "clean:submodules"
    NOT_OURS = "clean:not-ours"
    THREAD_OPEN = "clean:thread-open"
    FAILED = "clean:failed"


@dataclass(frozen=True, slots=True)
class Cleaned:
    """What was done with one workspace, and why. `freed` is in bytes. After a dry run `removed` says whether it would
    be."""

    listed: Listed
    removed: bool
    reason: CleanReason
    words: str
    freed: int = 0


class Workspaces(WorkOf, Protocol):
    async def ensure(self, wanted: PlaceWanted, progress: Progress | None = None) -> Ensured | Held:
        """Check the workspace, do what the kernel decides, and lock it for the lane until it is released."""
        ...

    async def release(self, wanted: PlaceWanted) -> None:
        """Call it once for each `ensure`. The end of the process releases it too."""
        ...

    async def acknowledge(self, wanted: PlaceWanted) -> None:
        """The server has stored what `Ensured.remade` said; do not repeat it."""
        ...

    async def begin_run(self, wanted: PlaceWanted, run: RunId) -> None:
        """Keep the files as they are before the run, so that what it changes can be shown."""
        ...

    async def end_run(self, wanted: PlaceWanted, run: RunId) -> Work:
        """Keep the files as they are after the run, and count what the base does not have."""
        ...

    async def listed(self) -> Sequence[Listed]:
        """Every workspace below the root."""
        ...

    async def clean(
        self,
        asked: Collection[WorkspaceId] = (),
        idle: float = 0.0,
        spared: Mapping[LaneId, str] = MappingProxyType({}),
        dry: bool = False,
    ) -> Sequence[Cleaned]:
        """Remove workspaces that are merged, unchanged and unused for `idle` seconds; others only if in `asked`. Those
        of the lanes in `spared`, with the reason in words, only if in `asked`. A `dry` run removes nothing."""
        ...

    async def inspect(self, source: str, plain: bool = False, base: str | None = None) -> SourceFound:
        """Check that a project can be made from that source and base, or raise a fault that says why not. `plain`
        allows a directory without git."""
        ...
