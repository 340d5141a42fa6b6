"""The workspaces of one machine, below one root."""

import asyncio
import os
import stat
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType

from clew.kernel import Found, LaneId, PlaceStep, RunId, WorkspaceId, WorkspaceKind, resolve_place
from clew.ports.fault import Fault
from clew.ports.work import Committed, Diff, DiffWanted, Merged, Proposed, Work
from clew.ports.workspaces import Cleaned, Ensured, Held, Listed, PlaceWanted, Progress, SourceFound
from clew.workspaces.cleanup import Cleaner
from clew.workspaces.commit import Committing
from clew.workspaces.faults import CannotMake, GitTooSlow, SourceUnreachable, StillBusy, explain_os_error
from clew.workspaces.git import Git
from clew.workspaces.inventory import Inventory
from clew.workspaces.layout import Layout
from clew.workspaces.lock import DirectoryUses, locked
from clew.workspaces.merge import Merging
from clew.workspaces.paths import directory_at, escape_of
from clew.workspaces.place_state import PlaceState, foreign_owner
from clew.workspaces.proposal import Proposing
from clew.workspaces.repository import pointer_of
from clew.workspaces.source import inspect_source
from clew.workspaces.work import LaneWork
from clew.workspaces.worktree import Worktrees


class GitWorkspaces:
    """`homes` is the directory below which agents' homes are made: the root, unless another is given."""

    def __init__(self, root: Path, homes: Path | None = None, git: Git | None = None) -> None:
        self._layout = Layout(root.absolute())
        self._homes = (homes or root).absolute()
        self._git = git or Git()
        self._uses = DirectoryUses(self._layout)
        self._worktrees = Worktrees(self._git, self._layout)
        self._work = LaneWork(self._git, self._layout)
        self._committing = Committing(self._git, self._layout, self._uses, self._work)
        self._inventory = Inventory(self._git, self._layout, self._uses)

    async def ensure(self, wanted: PlaceWanted, progress: Progress | None = None) -> Ensured | Held:
        try:
            return await self._ensure(wanted, progress)
        except OSError as fault:
            words, remedy = explain_os_error(fault)
            return _cannot(wanted, f"{words} {remedy}")
        except Fault as fault:
            passing = isinstance(fault, StillBusy | GitTooSlow | SourceUnreachable)
            output = self._layout.setup_output(wanted.workspace.id)
            return _cannot(wanted, str(fault), passing, output if isinstance(fault, CannotMake) else None)

    async def release(self, wanted: PlaceWanted) -> None:
        if wanted.workspace.kind is not WorkspaceKind.AGENT_HOME:
            self._uses.release(wanted, Path(wanted.workspace.directory.path))

    async def acknowledge(self, wanted: PlaceWanted) -> None:
        await asyncio.to_thread(self._worktrees.acknowledge, wanted.workspace.id)

    async def begin_run(self, wanted: PlaceWanted, run: RunId) -> None:
        await self._work.mark(wanted.workspace.id, run, "before")

    async def end_run(self, wanted: PlaceWanted, run: RunId) -> Work:
        return await self._work.ended(wanted.workspace.id, run)

    async def work(self, workspace: WorkspaceId) -> Work:
        return await self._work.work(workspace)

    async def contains(self, workspace: WorkspaceId, commit: str) -> bool:
        return await self._work.contains(workspace, commit)

    async def diff(self, workspace: WorkspaceId, wanted: DiffWanted) -> Diff:
        return await self._work.diff(workspace, wanted)

    async def commit(self, workspace: WorkspaceId, message: str, by: str) -> Committed:
        return await self._committing.commit(workspace, message, by)

    async def merge(self, workspace: WorkspaceId, into: str | None, message: str, by: str) -> Merged:
        return await Merging(self._git, self._layout, self._work, self._committing).merge(workspace, into, message, by)

    async def propose(self, workspace: WorkspaceId, title: str, body: str) -> Proposed:
        return await Proposing(self._git, self._layout, self._work, self._committing).propose(workspace, title, body)

    async def accept_branch(self, workspace: WorkspaceId) -> Work:
        return await self._committing.accept_branch(workspace)

    async def listed(self) -> Sequence[Listed]:
        return await self._inventory.listed()

    async def clean(
        self,
        asked: Collection[WorkspaceId] = (),
        idle: float = 0.0,
        spared: Mapping[LaneId, str] = MappingProxyType({}),
        dry: bool = False,
    ) -> Sequence[Cleaned]:
        cleaner = Cleaner(self._git, self._layout, self._uses, self._inventory)
        return await cleaner.clean(asked, idle, spared, dry)

    async def inspect(self, source: str, plain: bool = False, base: str | None = None) -> SourceFound:
        return await inspect_source(self._git, source, plain, base)

    async def close(self) -> None:
        """Release every directory that is in use."""
        self._uses.close()

    async def _ensure(self, wanted: PlaceWanted, progress: Progress | None) -> Ensured | Held:
        directory = Path(wanted.workspace.directory.path)
        if wanted.workspace.kind is WorkspaceKind.AGENT_HOME:
            # All lanes of an agent share its home.
            return await asyncio.to_thread(self._home, wanted)
        self._layout.prepare()
        async with locked(self._layout.making(directory)):
            if wanted.workspace.kind is WorkspaceKind.DIRECTORY:
                result = _resolved(wanted, await asyncio.to_thread(_state_of_directory, wanted))
            elif wanted.source is None:
                return _cannot(wanted, "its project is unknown. Add the project again.")
            else:
                result = await self._worktrees.ensure(wanted, wanted.source, progress)
            if isinstance(result, Held):
                return result
            other = self._uses.acquire(wanted, directory)
        if other is None:
            return result
        place = resolve_place(wanted.workspace, Found.IN_USE, other)
        return Held(place.reason, place.words, passing=True)

    def _home(self, wanted: PlaceWanted) -> Ensured | Held:
        seen = _state_of_home(wanted, self._homes)
        if seen.found is Found.NOT_MADE:
            _make_home(wanted)
        return _resolved(wanted, seen)


def _resolved(wanted: PlaceWanted, seen: PlaceState) -> Ensured | Held:
    place = resolve_place(wanted.workspace, seen.found, seen.seen)
    if place.step is PlaceStep.HOLD:
        return Held(place.reason, place.words)
    directory = directory_at(Path(wanted.workspace.directory.path))
    return Ensured(directory, place.step, place.reason, place.words)


def _cannot(wanted: PlaceWanted, seen: str, passing: bool = False, output: Path | None = None) -> Held:
    place = resolve_place(wanted.workspace, Found.CANNOT_MAKE, seen)
    return Held(place.reason, place.words, passing, output if output is not None and output.exists() else None)


def _state_of_directory(wanted: PlaceWanted) -> PlaceState:
    """A plain directory is a person's: it is never made, and refused where it is another lane's worktree."""
    directory = Path(wanted.workspace.directory.path)
    try:
        mode = directory.stat().st_mode
    except FileNotFoundError:
        gone = Found.CANNOT_MAKE if wanted.workspace.project is None else Found.PROJECT_MOVED
        return PlaceState(gone, f"{directory} is gone")
    if not stat.S_ISDIR(mode):
        return PlaceState(Found.CANNOT_MAKE, "it is not a directory.")
    if not os.access(directory, os.R_OK | os.X_OK):
        return PlaceState(Found.CANNOT_MAKE, "Clew's user may not enter it. Give it the right to.")
    real = directory.resolve()
    for at in (real, *real.parents):
        if (at / ".git").exists():
            pointer = pointer_of(at)
            foreign = None if pointer is None else foreign_owner(pointer.admin, wanted)
            return PlaceState(Found.READY) if foreign is None else PlaceState(Found.FOREIGN_MARKER, foreign)
    return PlaceState(Found.READY)


def _state_of_home(wanted: PlaceWanted, homes: Path) -> PlaceState:
    """A home below `homes` must not lead out of it by a link. One elsewhere was chosen by a person, links and all."""
    home = Path(wanted.workspace.directory.path)
    if Path(os.path.normpath(home)).is_relative_to(os.path.normpath(homes)):
        outside = escape_of(home, homes)
        if outside is not None:
            return PlaceState(Found.OUTSIDE_ROOT, str(outside))
    try:
        mode = home.stat().st_mode
    except FileNotFoundError:
        if home.is_symlink():
            return PlaceState(Found.CANNOT_MAKE, f"it is a link to {home.readlink()}, which is gone.")
        return PlaceState(Found.NOT_MADE)
    return (
        PlaceState(Found.READY)
        if stat.S_ISDIR(mode)
        else PlaceState(Found.CANNOT_MAKE, "a file is in the way. Move it away.")
    )


def _make_home(wanted: PlaceWanted) -> None:
    home = Path(wanted.workspace.directory.path)
    home.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    home.mkdir(exist_ok=True, mode=0o700)
