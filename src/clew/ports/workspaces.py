"""The port of workspaces: the directories that lanes work in, looked at, made, listed and removed on their machine.

What is to be done about what the disk says is the kernel's (`resolve_place`). No answer here is ever another directory
than the one asked for.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Protocol

from clew.kernel import (
    Directory,
    FoundReason,
    Instant,
    LaneId,
    PlaceStep,
    ProjectId,
    Workspace,
    WorkspaceId,
)

Progress = Callable[[str], None]
"""Told what the setup writes, line by line."""


class SourceKind(StrEnum):
    REPOSITORY = "repository"
    """A git repository of this machine."""
    ADDRESS = "address"
    """One that is cloned, once for each machine."""
    PLAIN = "plain"
    """A directory without git, used in place by one lane at a time."""


@dataclass(frozen=True, slots=True)
class Setup:
    """What is run in a worktree once it is made. It gets this environment and nothing of ours."""

    commands: tuple[str, ...] = ()
    environment: Mapping[str, str] = field(default_factory=dict, repr=False)
    seconds: float = 600.0


@dataclass(frozen=True, slots=True)
class ProjectSource:
    """Where a project comes from. `base` is what new branches start from; None is the branch the source is on."""

    project: ProjectId
    source: str = field(repr=False)
    kind: SourceKind = SourceKind.REPOSITORY
    base: str | None = None
    setup: Setup = field(default_factory=Setup)


@dataclass(frozen=True, slots=True)
class PlaceWanted:
    """The workspace a lane is to work in. `who` is the lane for people, as in "agent Ada's lane ln_1"."""

    lane: LaneId
    workspace: Workspace
    source: ProjectSource | None = None
    who: str = ""

    @property
    def holder(self) -> str:
        return self.who or f"lane {self.lane}"


@dataclass(frozen=True, slots=True)
class Ensured:
    """It is there, and the lane's until it is released. `directory` has its links resolved.

    `remade` says, in words for its agent, that it was gone and was made again, and what was lost. It is said each time
    until `acknowledge`, also after a crash: the disk keeps it.
    """

    directory: Directory
    step: PlaceStep
    reason: FoundReason
    words: str
    setup_output: Path | None = None
    remade: str = ""


@dataclass(frozen=True, slots=True)
class Held:
    """It is not to be had. `passing` says that another try may find it otherwise with nobody doing anything."""

    reason: FoundReason
    words: str
    passing: bool = False
    setup_output: Path | None = None


@dataclass(frozen=True, slots=True)
class SourceFound:
    """What is behind a path or an address. `source` is how it is to be written down."""

    source: str = field(repr=False)
    kind: SourceKind
    default_branch: str | None = None
    commit: str | None = None


class ListedState(StrEnum):
    READY = "ready"
    UNFINISHED = "unfinished"
    """Begun and not finished: the next wake of its lane does that."""
    ORPHANED = "orphaned"
    """Its directory is gone, or its project does not know it any more."""
    UNKNOWN = "unknown"
    """Not made by Clew, or it does not show whose it is."""


@dataclass(frozen=True, slots=True)
class DiskUse:
    """Bytes on disk, a hard link counted once. `ignored` is the part that git ignores; `whole` whether all was seen."""

    total: int = 0
    ignored: int = 0
    whole: bool = True


@dataclass(frozen=True, slots=True)
class Listed:
    """A workspace on disk. `unmerged` counts commits that its base does not reach; None where that is not known."""

    directory: Directory
    state: ListedState
    workspace: WorkspaceId | None = None
    lane: LaneId | None = None
    project: ProjectId | None = None
    branch: str | None = None
    disk: DiskUse = field(default_factory=DiskUse)
    # Paths that are changed or untracked; `midst` is a rebase or the like that is not finished.
    changes: int = 0
    midst: str = ""
    unmerged: int | None = None
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
    FAILED = "clean:failed"


@dataclass(frozen=True, slots=True)
class Cleaned:
    """What was done about one workspace, and why. `freed` is in bytes."""

    listed: Listed
    removed: bool
    reason: CleanReason
    words: str
    freed: int = 0


class Workspaces(Protocol):
    async def ensure(self, wanted: PlaceWanted, progress: Progress | None = None) -> Ensured | Held:
        """Look, do what the kernel says about it, and keep the place for the lane until it is released."""
        ...

    async def release(self, wanted: PlaceWanted) -> None:
        """As often as it was ensured. Whoever ends without it has released it, too."""
        ...

    async def acknowledge(self, wanted: PlaceWanted) -> None:
        """What `Ensured.remade` said is kept by the server: it is not said again."""
        ...

    async def forget(self, workspace: WorkspaceId) -> None:
        """A person wants the lane to begin anew where workspace and branch are both gone."""
        ...

    async def listed(self) -> Sequence[Listed]:
        """Every workspace below the root."""
        ...

    async def clean(self, asked: Collection[WorkspaceId] = (), idle: float = 0.0) -> Sequence[Cleaned]:
        """Remove what is merged, unchanged and not in use for so many seconds; anything more only if asked by name."""
        ...

    async def inspect(self, source: str, plain: bool = False, base: str | None = None) -> SourceFound:
        """What a project could be made of, beginning from that base. Raises a fault that says why it cannot; `plain`
        allows no git."""
        ...
