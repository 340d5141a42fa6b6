"""Ensuring a worktree: look, let the kernel say what to do, do it, and look again before anybody works there."""

import asyncio
import contextlib
import re
import shlex
import shutil
import time
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

from clew.kernel import Found, FoundReason, PlaceStep, ResolvedPlace, WorkspaceId, resolve_place
from clew.ports.workspaces import Ensured, Held, PlaceWanted, Progress, ProjectSource, SourceKind
from clew.workspaces.checkout import Maker
from clew.workspaces.faults import CannotMake
from clew.workspaces.git import Git, Repository
from clew.workspaces.layout import Layout
from clew.workspaces.lock import locked
from clew.workspaces.marker import Record, Unreadable
from clew.workspaces.paths import leads_out, placed
from clew.workspaces.place_state import Look, Site, look
from clew.workspaces.repository import FileRefs, Refs, common_of, git_file, keeps_refs_elsewhere, references, refs_of
from clew.workspaces.setup import run_setup
from clew.workspaces.source import Mirror

LOCK = "clew.lock"
"""In the repository itself, so that all who make worktrees of it meet there, whatever their roots."""


@dataclass(frozen=True, slots=True)
class _Made:
    settled: ResolvedPlace
    record: Record | None


class Worktrees:
    def __init__(self, git: Git, layout: Layout) -> None:
        self._git = git
        self._layout = layout
        self._maker = Maker(git, layout)

    async def ensure(self, wanted: PlaceWanted, source: ProjectSource, progress: Progress | None) -> Ensured | Held:
        """Whoever calls holds the lock of making of this directory."""
        site = await asyncio.to_thread(self._glance, wanted, source)
        if site is None:
            return await self._settle(wanted, source, progress)
        return _ensured(wanted, resolve_place(wanted.workspace, Found.READY), None, site.record)

    def acknowledge(self, workspace: WorkspaceId) -> None:
        """What was said of its having been made again is kept elsewhere by now."""
        path = self._layout.record(workspace)
        with suppress(Unreadable):
            record = Record.read(path)
            if record is not None and record.remade:
                replace(record, remade="").write(path)

    def _glance(self, wanted: PlaceWanted, source: ProjectSource) -> Site | None:
        """By files alone; None where it is not ready, or where git must be asked."""
        site = self._site(wanted, source)
        if site.common is None or keeps_refs_elsewhere(site.common):
            return None
        return site if look(site, FileRefs(site.common)).found is Found.READY else None

    async def _settle(self, wanted: PlaceWanted, source: ProjectSource, progress: Progress | None) -> Ensured | Held:
        if source.kind is SourceKind.ADDRESS and self._may_clone_for(Path(wanted.workspace.directory.path)):
            await self._fetch_for(wanted, source)
        site = await asyncio.to_thread(self._site, wanted, source)
        if site.common is None:
            return _held(await self._look(site), wanted)
        async with locked(site.common / LOCK) as lock:
            await asyncio.to_thread(sweep, self._layout, site.common, site.directory, site.branch)
            made = await self._carry_out(self._site(wanted, source), source, (lock.file,))
        if isinstance(made, Held):
            return made
        output, record = None, site.record
        if made.record is not None:
            output = self._layout.setup_output(wanted.workspace.id)
            output = await run_setup(source.setup, site.directory, output, self._layout, progress)
            record = await asyncio.to_thread(self._maker.finish, site, made.record, time.time())
            await self._verify(wanted, source)
        return _ensured(wanted, made.settled, output, record)

    async def _fetch_for(self, wanted: PlaceWanted, source: ProjectSource) -> None:
        """A new branch starts from what the address has now. Nobody else is kept waiting for the network."""
        mirror = Mirror(self._git, self._layout, source)
        if await mirror.ensure():
            return
        site = self._site(wanted, source)
        if site.common is None:
            return
        async with locked(site.common / LOCK):
            await asyncio.to_thread(sweep, self._layout, site.common, site.directory, site.branch)
        seen = await self._look(site)
        if seen.found in (Found.NOT_MADE, Found.ORPHANED_REFERENCE) and not seen.branch:
            await mirror.refresh()

    async def _carry_out(self, site: Site, source: ProjectSource, keep: tuple[int, ...]) -> "_Made | Held":
        where = self._where(site, source)
        seen = await self._look(site)
        if seen.mendable:
            await self._maker.mend(where, keep)
            await self._maker.mend_back(where, site.directory, keep)
            seen = await self._look(site)
        settled = resolve_place(site.wanted.workspace, seen.found, seen.seen)
        match settled.step:
            case PlaceStep.USE:
                return _Made(settled, None)
            case PlaceStep.HOLD:
                return _held(seen, site.wanted)
            case PlaceStep.MAKE | PlaceStep.REPAIR_THEN_MAKE | PlaceStep.MAKE_AGAIN:
                return _Made(settled, await self._maker.make(site, where, seen, keep))

    async def _verify(self, wanted: PlaceWanted, source: ProjectSource) -> None:
        seen = await self._look(self._site(wanted, source))
        if seen.found is not Found.READY:
            raise CannotMake(f"it was made, and is now {seen.found.value} ({seen.seen}).", "Wake the lane again.")

    async def _look(self, site: Site) -> Look:
        refs: Refs | None = None
        if site.common is not None:
            where = Repository(site.source)
            refs = await refs_of(self._git, where, site.common, site.directory, site.branch)
        return await asyncio.to_thread(look, site, refs)

    def _may_clone_for(self, directory: Path) -> bool:
        """A worktree that is there was made of a clone that is gone; another clone would know nothing of it."""
        filled = directory.is_dir() and any(directory.iterdir())
        return not filled and leads_out(directory, self._layout.root) is None

    def _where(self, site: Site, source: ProjectSource) -> Repository:
        # The clone is Clew's own and bare; somebody's repository is found by git, which looks at its owner.
        return Repository(git_dir=site.common) if source.kind is SourceKind.ADDRESS else Repository(site.source)

    def _site(self, wanted: PlaceWanted, source: ProjectSource) -> Site:
        mirrored = source.kind is SourceKind.ADDRESS
        at = self._layout.mirror(source.project) if mirrored else Path(source.source)
        try:
            record = Record.read(self._layout.record(wanted.workspace.id))
        except Unreadable:
            record = None
        directory = Path(wanted.workspace.directory.path)
        branch = wanted.workspace.branch or f"clew/{wanted.lane}"
        return Site(wanted, directory, self._layout.root, at, common_of(at), branch, record)


def _ensured(wanted: PlaceWanted, settled: ResolvedPlace, output: Path | None, record: Record | None) -> Ensured:
    directory = placed(Path(wanted.workspace.directory.path))
    remade = "" if record is None else record.remade
    return Ensured(directory, settled.step, settled.reason, settled.words, output, remade)


def _held(seen: Look, wanted: PlaceWanted) -> Held:
    settled = resolve_place(wanted.workspace, seen.found, seen.seen)
    words = settled.words
    if settled.reason is FoundReason.BRANCH_GONE:
        words += f" `clew workspaces clean {shlex.quote(wanted.workspace.directory.path)}` lets it begin anew there."
    return Held(settled.reason, words)


_NEEDED = ("gitdir", "commondir", "HEAD")


def sweep(layout: Layout, common: Path, wanted: Path, branch: str) -> None:
    """Remove what is unborn and ours. Whoever calls holds the lock of the repository, so that nobody of ours is at it.

    A person may be making a worktree at this moment; theirs has another name than any directory of ours.
    """
    unborn = [admin for admin in references(common) if not all(map(_has_text, (admin / name for name in _NEEDED)))]
    ours = {wanted, *_directories(layout, common)} if unborn else set()
    # Longest name first: "lane-12" is rather that lane's than the second of "lane-1".
    named = sorted(ours, key=lambda directory: len(directory.name), reverse=True)
    for admin in unborn:
        for directory in named:
            # Git adds a number where the name is taken.
            if re.fullmatch(re.escape(directory.name) + r"\d*", admin.name):
                _take_back(directory, admin)
                break
    if not wanted.exists():
        # Nobody can be at work on a branch that has no worktree yet.
        with contextlib.suppress(FileNotFoundError, NotADirectoryError):
            (common / "refs" / "heads" / f"{branch}.lock").unlink()


def _take_back(directory: Path, admin: Path) -> None:
    with contextlib.suppress(FileNotFoundError, NotADirectoryError):
        begun = [each.name for each in directory.iterdir()] == [".git"]
        dot = directory / ".git"
        if begun and dot.is_file() and (not _has_text(dot) or git_file(dot) == admin):
            dot.unlink()
            directory.rmdir()
    shutil.rmtree(admin, ignore_errors=True)


def _directories(layout: Layout, common: Path) -> list[Path]:
    found = []
    for path in layout.records.glob("*.json"):
        with contextlib.suppress(Unreadable):
            record = Record.read(path)
            if record is not None and record.common == str(common):
                found.append(Path(record.directory))
    return found


def _has_text(path: Path) -> bool:
    try:
        return path.stat().st_size > 0
    except OSError:
        return False
