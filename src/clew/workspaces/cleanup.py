"""Removing workspaces: by itself only what loses nothing, more only by name, and a branch only when it is merged."""

import asyncio
import contextlib
import os
import secrets
import time
from collections.abc import Callable, Collection, Mapping
from functools import partial
from pathlib import Path

from clew.kernel import WorkspaceId
from clew.ports.fault import Fault
from clew.ports.workspaces import Cleaned, CleanReason, Listed, ListedState
from clew.workspaces.faults import StillBusy, told_by_system
from clew.workspaces.git import Git, Repository
from clew.workspaces.inventory import Lister
from clew.workspaces.layout import SOURCE, Layout
from clew.workspaces.lock import Uses, locked
from clew.workspaces.repository import pointer_of
from clew.workspaces.worktree import LOCK

WORDS: Mapping[CleanReason, str] = {
    CleanReason.MERGED: "It had nothing that its base does not have; it and its branch are removed.",
    CleanReason.ASKED: "It was asked for by name and is removed; its branch stays.",
    CleanReason.ASKED_MERGED: "It was asked for by name and is removed, and its branch, which is merged.",
    CleanReason.CLEARED: "It is no worktree any more; what was still known of it is forgotten. Its branch stays.",
    CleanReason.GONE: "It is no worktree any more ({seen}). Asked for by name, it is forgotten.",
    CleanReason.DIRTY: "It has changes that are in no commit ({seen}).",
    CleanReason.UNMERGED: "It has commits that its base does not have ({seen}).",
    CleanReason.IN_USE: "It is in use: {seen}.",
    CleanReason.RECENT: "It was used a short while ago.",
    CleanReason.LOCKED: "Git keeps it locked ({seen}); unlock it first.",
    CleanReason.SUBMODULES: "It has submodules, whose commits may be nowhere else.",
    CleanReason.NOT_OURS: "Clew did not make it ({seen}).",
    CleanReason.FAILED: "It could not be removed: {seen}",
}

REMOVING = frozenset({CleanReason.MERGED, CleanReason.ASKED, CleanReason.ASKED_MERGED, CleanReason.CLEARED})


def judge(listed: Listed, asked: bool, idle: float, now: float) -> tuple[CleanReason, str]:
    """Whether a workspace may go, and why."""
    if listed.state is ListedState.ORPHANED:
        return (CleanReason.CLEARED if asked else CleanReason.GONE), listed.note
    if listed.state is ListedState.UNKNOWN:
        return CleanReason.NOT_OURS, listed.note
    if listed.used_by:
        return CleanReason.IN_USE, listed.used_by
    if listed.locked is not None:
        return CleanReason.LOCKED, listed.locked or "without a reason"
    if listed.note:
        return CleanReason.FAILED, listed.note
    if asked:
        return (CleanReason.ASKED_MERGED if listed.unmerged == 0 else CleanReason.ASKED), ""
    return _judge_unasked(listed, idle, now)


def _judge_unasked(listed: Listed, idle: float, now: float) -> tuple[CleanReason, str]:
    if listed.dirty:
        return CleanReason.DIRTY, listed.midst or f"{listed.changes} paths"
    if listed.unmerged != 0:
        return CleanReason.UNMERGED, "its base is not known" if listed.unmerged is None else f"{listed.unmerged}"
    if listed.submodules:
        return CleanReason.SUBMODULES, ""
    if idle > 0 and listed.last_used is not None and now - listed.last_used < idle:
        return CleanReason.RECENT, ""
    return CleanReason.MERGED, ""


class Cleaner:
    def __init__(self, git: Git, layout: Layout, uses: Uses, lister: Lister) -> None:
        self._git = git
        self._layout = layout
        self._uses = uses
        self._lister = lister

    async def clean(self, asked: Collection[WorkspaceId], idle: float) -> list[Cleaned]:
        await asyncio.to_thread(self._empty_trash)
        found = [each for each in await self._lister.listed() if not asked or each.workspace in asked]
        return [await self._one(listed, listed.workspace in asked, idle) for listed in found]

    async def _one(self, listed: Listed, asked: bool, idle: float) -> Cleaned:
        reason, seen = judge(listed, asked, idle, time.time())
        if reason not in REMOVING:
            return _kept(listed, reason, seen)
        directory = Path(listed.directory.path)
        try:
            async with locked(self._layout.making(directory), patience=0.0):
                tip = await self._tip(directory)
                # Meanwhile somebody may have worked there.
                if listed.state is not ListedState.ORPHANED:
                    user = self._uses.user(directory) or ""
                    listed = await self._lister.one(directory, self._lister.record_of(directory), user)
                    reason, seen = judge(listed, asked, idle, time.time())
                if reason not in REMOVING:
                    return _kept(listed, reason, seen)
                await self._remove(listed, directory, reason, tip)
        except StillBusy:
            return _kept(listed, CleanReason.IN_USE, "somebody is just making it")
        except OSError as fault:
            return _kept(listed, CleanReason.FAILED, " ".join(told_by_system(fault)))
        except Fault as fault:
            return _kept(listed, CleanReason.FAILED, str(fault))
        await asyncio.to_thread(self._empty_trash)
        return Cleaned(listed, True, reason, WORDS[reason], listed.disk.total)

    async def _tip(self, directory: Path) -> tuple[str, str] | None:
        """The lane's branch and its commit, from before it is judged: what is added later is not removed with it."""
        record, common = self._lister.record_of(directory), self._common(directory)
        if record is None or not record.branch or common is None:
            return None
        branch = f"refs/heads/{record.branch}"
        tip = await self._git.ask(self._where(common), "rev-parse", "--verify", "--quiet", branch)
        return (branch, tip.text) if tip.ok else None

    def _common(self, directory: Path) -> Path | None:
        pointer = pointer_of(directory)
        if pointer is not None:
            return pointer.common
        record = self._lister.record_of(directory)
        return Path(record.common) if record and record.common and Path(record.common).is_dir() else None

    async def _remove(self, listed: Listed, directory: Path, reason: CleanReason, tip: tuple[str, str] | None) -> None:
        """Each step leaves something that the next wake of the lane can go on from."""
        common, workspace = self._common(directory), listed.workspace
        assert workspace is not None, "what is removed is known by name"
        if common is None:
            self._layout.record(workspace).unlink(missing_ok=True)
            return
        where = self._where(common)
        async with locked(common / LOCK) as lock:
            if pointer_of(directory) is not None:
                self._layout.trash.mkdir(parents=True, exist_ok=True, mode=0o700)
                directory.rename(self._layout.trash / secrets.token_hex(8))
            self._layout.record(workspace).unlink(missing_ok=True)
            self._layout.setup_output(workspace).unlink(missing_ok=True)
            self._layout.use(directory).unlink(missing_ok=True)
            if not directory.exists():
                # It fails when git has forgotten it by itself.
                directory.parent.mkdir(parents=True, exist_ok=True)
                path = os.fspath(directory)
                await self._git.ask(where, "worktree", "remove", "--force", "--", path, keep=(lock.file,))
            if tip is not None and reason in (CleanReason.MERGED, CleanReason.ASKED_MERGED):
                await self._git.do(where, "update-ref", "-d", *tip, keep=(lock.file,))

    def _where(self, common: Path) -> Repository:
        ours = common.name == SOURCE and common.is_relative_to(self._layout.root.resolve())
        return Repository(git_dir=common) if ours else Repository(common)

    def _empty_trash(self) -> None:
        for each in self._layout.trash.glob("*"):
            remove_tree(each)


def _kept(listed: Listed, reason: CleanReason, seen: str) -> Cleaned:
    return Cleaned(listed, False, reason, WORDS[reason].format(seen=seen))


def remove_tree(directory: Path) -> None:
    """Also what a tool made read-only."""
    for at, names, _ in os.walk(directory):
        for name in names:
            below = Path(at) / name
            if not below.is_symlink():
                _quietly(partial(below.chmod, 0o700))
    _remove(directory)


def _remove(directory: Path) -> None:
    for at, names, files in os.walk(directory, topdown=False):
        for name in files:
            _quietly((Path(at) / name).unlink)
        for name in names:
            below = Path(at) / name
            _quietly(below.unlink if below.is_symlink() else below.rmdir)
    _quietly(directory.rmdir)


def _quietly(step: Callable[[], None]) -> None:
    """What cannot be removed now is tried again the next time."""
    with contextlib.suppress(OSError):
        step()
