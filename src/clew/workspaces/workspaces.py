"""The workspaces of one machine, below one root."""

import asyncio
from collections.abc import Collection, Sequence
from pathlib import Path

from clew.kernel import Found, PlaceStep, WorkspaceId, WorkspaceKind, resolve_place
from clew.ports.fault import Fault
from clew.ports.workspaces import Cleaned, Ensured, Held, Listed, PlaceWanted, Progress, SourceFound
from clew.workspaces.cleaning import Cleaner
from clew.workspaces.ensuring import Worktrees
from clew.workspaces.faults import CannotMake, GitTooSlow, SourceUnreachable, StillBusy
from clew.workspaces.git import Git
from clew.workspaces.inspecting import inspect_source
from clew.workspaces.layout import Layout
from clew.workspaces.listing import Lister
from clew.workspaces.locks import locked
from clew.workspaces.looking import Look
from clew.workspaces.plain import look_at_directory, look_at_home, make_home
from clew.workspaces.refusals import told_by_system
from clew.workspaces.spelling import placed
from clew.workspaces.use import Uses


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
