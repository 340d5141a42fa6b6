"""Ensuring a worktree: inspect it, let the kernel decide, make or mend it, and inspect it again before use."""

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
from clew.workspaces.branch import lane_of_branch, oldest_name
from clew.workspaces.checkout import Checkout
from clew.workspaces.faults import CannotMake
from clew.workspaces.git import Git, Repository
from clew.workspaces.layout import Layout
from clew.workspaces.lock import locked
from clew.workspaces.marker import Record, Unreadable
from clew.workspaces.paths import directory_at, escape_of
from clew.workspaces.place_state import PlaceState, Site, inspect
from clew.workspaces.repository import Refs, common_of, git_file, has_reftable, references, refs_of
from clew.workspaces.setup import run_setup
from clew.workspaces.source import Mirror

LOCK = "clew.lock"
"""In the repository itself, so that every Clew that makes worktrees of it takes the same lock, whatever its root."""


@dataclass(frozen=True, slots=True)
class _Made:
    place: ResolvedPlace
    record: Record | None


class Worktrees:
    def __init__(self, git: Git, layout: Layout) -> None:
        self._git = git
        self._layout = layout
        self._checkout = Checkout(git, layout)

    async def ensure(self, wanted: PlaceWanted, source: ProjectSource, progress: Progress | None) -> Ensured | Held:
        """The caller holds the directory's `making` lock."""
        site = await asyncio.to_thread(self._ready_by_files, wanted, source)
        if site is None:
            return await self._make_ready(wanted, source, progress)
        if wanted.workspace.begins is not None and site.record is not None:
            site = replace(site, record=await self._checkout.handover.news(site, site.record))
        return _ensured(wanted, resolve_place(wanted.workspace, Found.READY), None, site.record)

    def acknowledge(self, workspace: WorkspaceId) -> None:
        """The server has recorded that it was made again, so the record on disk need not say it any more."""
        path = self._layout.record(workspace)
        with suppress(Unreadable):
            record = Record.read(path)
            if record is not None and record.remade:
                replace(record, remade="").write(path)

    def _ready_by_files(self, wanted: PlaceWanted, source: ProjectSource) -> Site | None:
        """Without starting git, by the repository's files. None where it is not ready, or where only git can tell."""
        site = self._site(wanted, source)
        if site.common is None or has_reftable(site.common):
            return None
        return site if inspect(site, Refs(site.common)).found is Found.READY else None

    async def _make_ready(
        self, wanted: PlaceWanted, source: ProjectSource, progress: Progress | None
    ) -> Ensured | Held:
        if source.kind is SourceKind.ADDRESS and self._may_clone_for(Path(wanted.workspace.directory.path)):
            await self._fetch_for(wanted, source)
        site = await asyncio.to_thread(self._site, wanted, source)
        if site.common is None:
            return _held(await self._inspect(site), wanted)
        async with locked(site.common / LOCK) as lock:
            await asyncio.to_thread(sweep, self._layout, site.common, site.directory, site.branch)
            made = await self._make_or_mend(self._site(wanted, source), source, (lock.file,))
        if isinstance(made, Held):
            return made
        output, record = None, site.record
        if made.record is not None:
            output = self._layout.setup_output(wanted.workspace.id)
            output = await run_setup(source.setup, site.directory, output, self._layout, progress)
            record = await asyncio.to_thread(self._checkout.finish, site, made.record, time.time())
            await self._verify(wanted, source)
        return _ensured(wanted, made.place, output, record)

    async def _fetch_for(self, wanted: PlaceWanted, source: ProjectSource) -> None:
        """Fetch, so that a new branch starts from what the address has now. The repository is not locked meanwhile: no
        other lane waits for the network."""
        mirror = Mirror(self._git, self._layout, source)
        if await mirror.ensure():
            return
        site = self._site(wanted, source)
        if site.common is None:
            return
        async with locked(site.common / LOCK):
            await asyncio.to_thread(sweep, self._layout, site.common, site.directory, site.branch)
        seen = await self._inspect(site)
        if seen.found in (Found.NOT_MADE, Found.ORPHANED_REFERENCE) and not seen.branch:
            await mirror.refresh()

    async def _make_or_mend(self, site: Site, source: ProjectSource, keep: tuple[int, ...]) -> "_Made | Held":
        where = self._where(site, source)
        seen = await self._inspect(site)
        if seen.mendable:
            await self._checkout.mend(where, keep)
            await self._checkout.mend_back(where, site.directory, keep)
            seen = await self._inspect(site)
        place = resolve_place(site.wanted.workspace, seen.found, seen.seen)
        match place.step:
            case PlaceStep.USE:
                return _Made(place, None)
            case PlaceStep.HOLD:
                return _held(seen, site.wanted)
            case PlaceStep.MAKE | PlaceStep.REPAIR_THEN_MAKE | PlaceStep.MAKE_AGAIN:
                return _Made(place, await self._checkout.make(site, where, seen, keep))

    async def _verify(self, wanted: PlaceWanted, source: ProjectSource) -> None:
        seen = await self._inspect(self._site(wanted, source))
        if seen.found is not Found.READY:
            raise CannotMake(
                f"it was made, but then it was found {seen.found.value} ({seen.seen}).", "Wake the lane again."
            )

    async def _inspect(self, site: Site) -> PlaceState:
        refs: Refs | None = None
        if site.common is not None:
            where = Repository(site.source)
            refs = await refs_of(self._git, where, site.common, site.directory, site.branch)
            if site.record is None and site.branch != oldest_name(site.wanted.lane) and refs.has(site.branch):
                lane = await lane_of_branch(self._git, where, site.branch)
                site = replace(site, owned=lane == site.wanted.lane)
        return await asyncio.to_thread(inspect, site, refs)

    def _may_clone_for(self, directory: Path) -> bool:
        """False if the worktree exists: it belongs to a clone that is gone, and a new clone would not know it."""
        filled = directory.is_dir() and any(directory.iterdir())
        return not filled and escape_of(directory, self._layout.root) is None

    def _where(self, site: Site, source: ProjectSource) -> Repository:
        # The clone is Clew's own and bare. A person's is found by git from its directory, so that git checks the owner.
        return Repository(git_dir=site.common) if source.kind is SourceKind.ADDRESS else Repository(site.source)

    def _site(self, wanted: PlaceWanted, source: ProjectSource) -> Site:
        mirrored = source.kind is SourceKind.ADDRESS
        at = self._layout.mirror(source.project) if mirrored else Path(source.source)
        try:
            record = Record.read(self._layout.record(wanted.workspace.id))
        except Unreadable:
            record = None
        directory = Path(wanted.workspace.directory.path)
        # The record has the branch that was made: the wanted name may have been another's.
        branch = (record.branch if record else "") or wanted.workspace.branch or oldest_name(wanted.lane)
        return Site(wanted, directory, self._layout.root, at, common_of(at), branch, record)


def _ensured(wanted: PlaceWanted, place: ResolvedPlace, output: Path | None, record: Record | None) -> Ensured:
    directory = directory_at(Path(wanted.workspace.directory.path))
    remade, branch = ("", "") if record is None else (record.remade, record.branch)
    return Ensured(directory, place.step, place.reason, place.words, output, remade, branch or wanted.workspace.branch)


def _held(seen: PlaceState, wanted: PlaceWanted) -> Held:
    place = resolve_place(wanted.workspace, seen.found, seen.seen)
    words = place.words
    if place.reason is FoundReason.BRANCH_GONE:
        words += f" `clew workspaces clean {shlex.quote(wanted.workspace.directory.path)}` lets it start over there."
    if place.reason is FoundReason.OTHER_BRANCH:
        at = shlex.quote(wanted.workspace.directory.path)
        words += f" Work on there with `clew workspaces accept {at}`, or go back with `git -C {at} switch "
        words += f"{wanted.workspace.branch}`."
    return Held(place.reason, words)


_NEEDED = ("gitdir", "commondir", "HEAD")


def sweep(layout: Layout, common: Path, wanted: Path, branch: str) -> None:
    """Remove what a git that was killed in its first moments left of Clew's worktrees: an incomplete git directory can
    stop every git in that repository. The caller holds the repository's lock, so no Clew is making one.

    A person may be making a worktree at this moment; it has another name than any directory of Clew's.
    """
    incomplete = [admin for admin in references(common) if not all(map(_has_text, (admin / name for name in _NEEDED)))]
    ours = {wanted, *_directories(layout, common)} if incomplete else set()
    # Longest name first: "lane-12" is that lane's rather than a second "lane-1".
    named = sorted(ours, key=lambda directory: len(directory.name), reverse=True)
    for admin in incomplete:
        for directory in named:
            # Git appends a number where the name is taken.
            if re.fullmatch(re.escape(directory.name) + r"\d*", admin.name):
                _remove_incomplete(directory, admin)
                break
    if not wanted.exists():
        # No agent can be using a branch that has no worktree yet.
        with contextlib.suppress(FileNotFoundError, NotADirectoryError):
            (common / "refs" / "heads" / f"{branch}.lock").unlink()


def _remove_incomplete(directory: Path, admin: Path) -> None:
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
