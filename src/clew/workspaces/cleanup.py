"""Removing workspaces: unasked only where nothing is lost, more only by name, and a branch only when it is merged."""

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
from clew.workspaces.faults import StillBusy, explain_os_error
from clew.workspaces.git import Git, Repository
from clew.workspaces.inventory import Inventory
from clew.workspaces.layout import SOURCE, Layout
from clew.workspaces.lock import DirectoryUses, locked
from clew.workspaces.repository import pointer_of
from clew.workspaces.worktree import LOCK

WORDS: Mapping[CleanReason, str] = {
    CleanReason.MERGED: "Nothing unmerged; removed the worktree and its branch.",
    CleanReason.ASKED: "Removed, because you named it; its branch is kept.",
    CleanReason.ASKED_MERGED: "Removed with its merged branch, because you named it.",
    CleanReason.CLEARED: "It is not a worktree any more; removed its record. Its branch is kept.",
    CleanReason.GONE: "Kept its record: it is not a worktree any more ({seen}). Name it to remove the record.",
    CleanReason.DIRTY: "Kept: uncommitted changes ({seen}).",
    CleanReason.UNMERGED: "Kept: unmerged commits ({seen}).",
    CleanReason.IN_USE: "Kept: in use ({seen}).",
    CleanReason.RECENT: "Kept: it was used a short while ago.",
    CleanReason.LOCKED: "Kept: git has it locked ({seen}). Unlock it first.",
    CleanReason.SUBMODULES: "Kept: it has submodules, whose commits may exist nowhere else.",
    CleanReason.NOT_OURS: "Kept: Clew did not make it ({seen}).",
    CleanReason.FAILED: "It could not be removed: {seen}",
}

REMOVING = frozenset({CleanReason.MERGED, CleanReason.ASKED, CleanReason.ASKED_MERGED, CleanReason.CLEARED})


def judge(listed: Listed, asked: bool, idle: float, now: float) -> tuple[CleanReason, str]:
    """Whether a workspace may be removed, and why."""
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
        return CleanReason.DIRTY, listed.midst or _counted(listed.changes, "file")
    if listed.unmerged != 0:
        return CleanReason.UNMERGED, "its base is not known" if listed.unmerged is None else f"{listed.unmerged}"
    if listed.submodules:
        return CleanReason.SUBMODULES, ""
    if idle > 0 and listed.last_used is not None and now - listed.last_used < idle:
        return CleanReason.RECENT, ""
    return CleanReason.MERGED, ""


def _counted(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


class Cleaner:
    def __init__(self, git: Git, layout: Layout, uses: DirectoryUses, inventory: Inventory) -> None:
        self._git = git
        self._layout = layout
        self._uses = uses
        self._inventory = inventory

    async def clean(self, asked: Collection[WorkspaceId], idle: float) -> list[Cleaned]:
        await asyncio.to_thread(self._empty_trash)
        found = [each for each in await self._inventory.listed() if not asked or each.workspace in asked]
        return [await self._one(listed, listed.workspace in asked, idle) for listed in found]

    async def _one(self, listed: Listed, asked: bool, idle: float) -> Cleaned:
        reason, seen = judge(listed, asked, idle, time.time())
        if reason not in REMOVING:
            return _kept(listed, reason, seen)
        directory = Path(listed.directory.path)
        try:
            async with locked(self._layout.making(directory), patience=0.0):
                tip = await self._tip(directory)
                # A lane may have used it meanwhile.
                if listed.state is not ListedState.ORPHANED:
                    user = self._uses.user(directory) or ""
                    listed = await self._inventory.one(directory, self._inventory.record_of(directory), user)
                    reason, seen = judge(listed, asked, idle, time.time())
                if reason not in REMOVING:
                    return _kept(listed, reason, seen)
                await self._remove(listed, directory, reason, tip)
        except StillBusy:
            return _kept(listed, CleanReason.IN_USE, "it is being made")
        except OSError as fault:
            return _kept(listed, CleanReason.FAILED, " ".join(explain_os_error(fault)))
        except Fault as fault:
            return _kept(listed, CleanReason.FAILED, str(fault))
        await asyncio.to_thread(self._empty_trash)
        return Cleaned(listed, True, reason, WORDS[reason], listed.disk.total)

    async def _tip(self, directory: Path) -> tuple[str, str] | None:
        """The lane's branch and its commit, read before it is judged: a commit that is added later is not removed."""
        record, common = self._inventory.record_of(directory), self._common(directory)
        if record is None or not record.branch or common is None:
            return None
        branch = f"refs/heads/{record.branch}"
        tip = await self._git.ask(self._where(common), "rev-parse", "--verify", "--quiet", branch)
        return (branch, tip.text) if tip.ok else None

    def _common(self, directory: Path) -> Path | None:
        pointer = pointer_of(directory)
        if pointer is not None:
            return pointer.common
        record = self._inventory.record_of(directory)
        return Path(record.common) if record and record.common and Path(record.common).is_dir() else None

    async def _remove(self, listed: Listed, directory: Path, reason: CleanReason, tip: tuple[str, str] | None) -> None:
        """Each step leaves a state from which the lane's next wake can continue."""
        common, workspace = self._common(directory), listed.workspace
        assert workspace is not None, "only a workspace with an id is removed"
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
                # It fails where git has removed its reference itself.
                directory.parent.mkdir(parents=True, exist_ok=True)
                path = os.fspath(directory)
                await self._git.ask(where, "worktree", "remove", "--force", "--", path, keep=(lock.file,))
            if tip is not None and reason in (CleanReason.MERGED, CleanReason.ASKED_MERGED):
                await self._git.do(where, "update-ref", "-d", *tip, keep=(lock.file,))
                section = f"branch.{tip[0].removeprefix('refs/heads/')}"
                await self._git.ask(where, "config", "--remove-section", section, keep=(lock.file,))

    def _where(self, common: Path) -> Repository:
        ours = common.name == SOURCE and common.is_relative_to(self._layout.root.resolve())
        return Repository(git_dir=common) if ours else Repository(common)

    def _empty_trash(self) -> None:
        for each in self._layout.trash.glob("*"):
            remove_tree(each)


def _kept(listed: Listed, reason: CleanReason, seen: str) -> Cleaned:
    return Cleaned(listed, False, reason, WORDS[reason].format(seen=seen))


def remove_tree(directory: Path) -> None:
    """Remove a directory, also where a tool made parts of it read-only."""
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
    """What cannot be removed now is tried again the next time the trash is emptied."""
    with contextlib.suppress(OSError):
        step()
