"""The workspaces of one machine, below one root."""

import asyncio
import os
import stat
from collections.abc import Collection, Sequence
from pathlib import Path

from clew.kernel import Found, PlaceStep, WorkspaceId, WorkspaceKind, resolve_place
from clew.ports.fault import Fault
from clew.ports.workspaces import Cleaned, Ensured, Held, Listed, PlaceWanted, Progress, SourceFound
from clew.workspaces.cleanup import Cleaner
from clew.workspaces.faults import CannotMake, GitTooSlow, SourceUnreachable, StillBusy, told_by_system
from clew.workspaces.git import Git
from clew.workspaces.inventory import Lister
from clew.workspaces.layout import Layout
from clew.workspaces.lock import Uses, locked
from clew.workspaces.paths import leads_out, placed
from clew.workspaces.place_state import Look, whose
from clew.workspaces.repository import pointer_of
from clew.workspaces.source import inspect_source
from clew.workspaces.worktree import Worktrees


class GitWorkspaces:
    """`homes` is the directory below which agents' homes are made; the root, unless another is named."""

    def __init__(self, root: Path, homes: Path | None = None, git: Git | None = None) -> None:
        self._layout = Layout(root.absolute())
        self._homes = (homes or root).absolute()
        self._git = git or Git()
        self._uses = Uses(self._layout)
        self._worktrees = Worktrees(self._git, self._layout)
        self._lister = Lister(self._git, self._layout, self._uses)

    async def ensure(self, wanted: PlaceWanted, progress: Progress | None = None) -> Ensured | Held:
        try:
            return await self._ensure(wanted, progress)
        except OSError as fault:
            words, remedy = told_by_system(fault)
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

    async def forget(self, workspace: WorkspaceId) -> None:
        await asyncio.to_thread(self._layout.record(workspace).unlink, missing_ok=True)

    async def listed(self) -> Sequence[Listed]:
        return await self._lister.listed()

    async def clean(self, asked: Collection[WorkspaceId] = (), idle: float = 0.0) -> Sequence[Cleaned]:
        cleaner = Cleaner(self._git, self._layout, self._uses, self._lister)
        return await cleaner.clean(asked, idle)

    async def inspect(self, source: str, plain: bool = False, base: str | None = None) -> SourceFound:
        return await inspect_source(self._git, source, plain, base)

    async def close(self) -> None:
        """Let go of everything that is kept."""
        self._uses.close()

    async def _ensure(self, wanted: PlaceWanted, progress: Progress | None) -> Ensured | Held:
        directory = Path(wanted.workspace.directory.path)
        if wanted.workspace.kind is WorkspaceKind.AGENT_HOME:
            # All lanes of an agent share its home.
            return await asyncio.to_thread(self._home, wanted)
        self._layout.prepare()
        async with locked(self._layout.making(directory)):
            if wanted.workspace.kind is WorkspaceKind.DIRECTORY:
                result = _settled(wanted, await asyncio.to_thread(look_at_directory, wanted))
            elif wanted.source is None:
                return _cannot(wanted, "nothing is known of its project. Add the project again.")
            else:
                result = await self._worktrees.ensure(wanted, wanted.source, progress)
            if isinstance(result, Held):
                return result
            other = self._uses.take(wanted, directory)
        if other is None:
            return result
        settled = resolve_place(wanted.workspace, Found.FOREIGN_MARKER, other)
        return Held(settled.reason, settled.words, passing=True)

    def _home(self, wanted: PlaceWanted) -> Ensured | Held:
        seen = look_at_home(wanted, self._homes)
        if seen.found is Found.NOT_MADE:
            make_home(wanted)
        return _settled(wanted, seen)


def _settled(wanted: PlaceWanted, seen: Look) -> Ensured | Held:
    settled = resolve_place(wanted.workspace, seen.found, seen.seen)
    if settled.step is PlaceStep.HOLD:
        return Held(settled.reason, settled.words)
    directory = placed(Path(wanted.workspace.directory.path))
    return Ensured(directory, settled.step, settled.reason, settled.words)


def _cannot(wanted: PlaceWanted, seen: str, passing: bool = False, output: Path | None = None) -> Held:
    settled = resolve_place(wanted.workspace, Found.CANNOT_MAKE, seen)
    return Held(settled.reason, settled.words, passing, output if output is not None and output.exists() else None)


def look_at_directory(wanted: PlaceWanted) -> Look:
    """A plain directory is somebody's own: it is never made, and never one that another lane has as its worktree."""
    directory = Path(wanted.workspace.directory.path)
    try:
        mode = directory.stat().st_mode
    except FileNotFoundError:
        gone = Found.CANNOT_MAKE if wanted.workspace.project is None else Found.PROJECT_MOVED
        return Look(gone, f"{directory} is gone")
    if not stat.S_ISDIR(mode):
        return Look(Found.CANNOT_MAKE, "it is no directory.")
    if not os.access(directory, os.R_OK | os.X_OK):
        return Look(Found.CANNOT_MAKE, "Clew's user may not enter it. Give it the right to.")
    real = directory.resolve()
    for at in (real, *real.parents):
        if (at / ".git").exists():
            pointer = pointer_of(at)
            foreign = None if pointer is None else whose(pointer.admin, wanted)
            return Look(Found.READY) if foreign is None else Look(Found.FOREIGN_MARKER, foreign)
    return Look(Found.READY)


def look_at_home(wanted: PlaceWanted, homes: Path) -> Look:
    """Below the place for homes it must stay there; a home elsewhere was named by a person, links and all."""
    home = Path(wanted.workspace.directory.path)
    if Path(os.path.normpath(home)).is_relative_to(os.path.normpath(homes)):
        outside = leads_out(home, homes)
        if outside is not None:
            return Look(Found.OUTSIDE_ROOT, str(outside))
    try:
        mode = home.stat().st_mode
    except FileNotFoundError:
        if home.is_symlink():
            return Look(Found.CANNOT_MAKE, f"it is a link to {home.readlink()}, which is gone.")
        return Look(Found.NOT_MADE)
    return Look(Found.READY) if stat.S_ISDIR(mode) else Look(Found.CANNOT_MAKE, "a file is in the way. Move it away.")


def make_home(wanted: PlaceWanted) -> None:
    home = Path(wanted.workspace.directory.path)
    home.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    home.mkdir(exist_ok=True, mode=0o700)
