"""The inventory: every workspace below the root, whose it is, its disk use, and what would be lost with it."""

import asyncio
import os
import stat
from collections.abc import Collection, Iterator
from pathlib import Path

from clew.kernel import Directory
from clew.ports.workspaces import DiskUse, Listed, ListedState
from clew.workspaces.faults import explain_git
from clew.workspaces.git import Git, Repository
from clew.workspaces.layout import Layout
from clew.workspaces.lock import DirectoryUses, Lock
from clew.workspaces.marker import NAME, Marker, Record, Unreadable
from clew.workspaces.paths import directory_at, resolved
from clew.workspaces.repository import Pointer, head_of, lock_reason, pointer_of, unfinished_operation

_AT_ONCE = 4
MOST = 500_000
"""Entries that are counted; beyond that the result is a minimum."""
_BLOCK = 512


class Inventory:
    def __init__(self, git: Git, layout: Layout, uses: DirectoryUses) -> None:
        self._git = git
        self._layout = layout
        self._uses = uses

    async def listed(self) -> list[Listed]:
        records = await asyncio.to_thread(self._records)
        there = await asyncio.to_thread(lambda: list(self._directories()))
        gone = [record for at, record in records.items() if not at.is_dir()]
        few = asyncio.Semaphore(_AT_ONCE)

        async def one(directory: Path) -> Listed:
            async with few:
                used_by = await asyncio.to_thread(self._user, directory)
                return await self.one(directory, records.get(resolved(directory)), used_by)

        found = await asyncio.gather(*(one(directory) for directory in there))
        return [*found, *(_gone(record, "its directory is gone") for record in gone)]

    async def one(self, directory: Path, record: Record | None, used_by: str) -> Listed:
        """One directory, as it is now."""
        pointer = await asyncio.to_thread(pointer_of, directory)
        if pointer is None or directory.is_symlink():
            return await self._without_git(directory, record)
        try:
            marker = Marker.read(pointer.admin / NAME)
        except Unreadable as fault:
            return Listed(directory_at(directory), ListedState.UNKNOWN, note=str(fault))
        known = marker or record
        state = ListedState.READY if marker else ListedState.UNFINISHED if record else ListedState.UNKNOWN
        changes, ignored, note = await self._status(directory)
        unmerged = None if note else await self._unmerged(directory, record)
        disk = await asyncio.to_thread(disk_use, directory, ignored)
        if known is None:
            note = "it has no marker of Clew"
        return Listed(
            directory=directory_at(directory),
            state=state,
            workspace=known.workspace if known else None,
            lane=known.lane if known else None,
            project=known.project if known else None,
            branch=head_of(pointer.admin).branch,
            own_branch=record.branch if record else None,
            disk=disk,
            changes=changes,
            midst=unfinished_operation(pointer.admin),
            unmerged=unmerged,
            submodules=_has_submodules(pointer),
            locked=lock_reason(pointer.admin),
            last_used=self._uses.last(directory),
            used_by=used_by,
            note=note,
        )

    def _user(self, directory: Path) -> str:
        """Who uses it. The check takes the use lock for a moment, so it holds the `making` lock meanwhile."""
        if not self._layout.use(directory).exists():
            return ""
        lock = Lock(self._layout.making(directory))
        try:
            return self._uses.user(directory) or "" if lock.acquire() else "it is being made"
        finally:
            lock.release()

    def record_of(self, directory: Path) -> Record | None:
        return self._records().get(resolved(directory))

    def _records(self) -> dict[Path, Record]:
        """The records of what Clew made, by directory."""
        found: dict[Path, Record] = {}
        for path in sorted(self._layout.records.glob("*.json")):
            try:
                record = Record.read(path)
            except Unreadable:
                continue
            if record is not None:
                found[resolved(Path(record.directory))] = record
        return found

    def _directories(self) -> Iterator[Path]:
        for project in _below(self._layout.root):
            if not project.is_symlink():
                yield from _below(project)

    async def _without_git(self, directory: Path, record: Record | None) -> Listed:
        if directory.is_symlink():
            return Listed(directory_at(directory), ListedState.UNKNOWN, note=f"it is a link to {directory.readlink()}")
        disk = await asyncio.to_thread(disk_use, directory)
        if record is None:
            return Listed(directory_at(directory), ListedState.UNKNOWN, disk=disk, note="it is not a git worktree")
        return _gone(record, "git has no reference to it any more")

    async def _status(self, directory: Path) -> tuple[int, list[Path], str]:
        """The number of changed or untracked paths, the ignored paths, and why git could not tell them."""
        answer = await self._git.ask(
            Repository(directory),
            "status",
            "--porcelain=v1",
            "-z",
            "--untracked-files=normal",
            "--ignored=matching",
            "--ignore-submodules=none",
        )
        if not answer.ok:
            return 0, [], " ".join(explain_git(answer.err, "git status failed."))
        changes, ignored = 0, []
        entries = iter(answer.out.split(b"\0"))
        for entry in entries:
            if entry.startswith(b"!! "):
                ignored.append(directory / os.fsdecode(entry[3:].rstrip(b"/")))
            elif entry:
                changes += 1
                if b"R" in entry[:2] or b"C" in entry[:2]:
                    # The old name follows as an entry of its own.
                    next(entries, None)
        return changes, ignored, ""

    async def _unmerged(self, directory: Path, record: Record | None) -> int | None:
        """The number of commits in the worktree and its branch that the base does not have."""
        at = Repository(directory)
        base = await self._first(at, *((record.base, record.start) if record else ()))
        ours = [name for name in ("HEAD", f"refs/heads/{record.branch}" if record else "") if name]
        known = [tip for name in ours if (tip := await self._first(at, name)) is not None]
        if base is None or not known:
            return None
        counted = await self._git.ask(at, "rev-list", "--count", *known, "--not", base)
        return int(counted.text) if counted.ok else None

    async def _first(self, at: Repository, *names: str) -> str | None:
        """The commit of the first name that exists."""
        for name in filter(None, names):
            found = await self._git.ask(
                at, "rev-parse", "--verify", "--quiet", "--end-of-options", f"{name}^{{commit}}"
            )
            if found.ok:
                return found.text
        return None


def _below(directory: Path) -> list[Path]:
    try:
        return sorted(each for each in directory.iterdir() if not each.name.startswith(".") and each.is_dir())
    except FileNotFoundError:
        return []


def _gone(record: Record, note: str) -> Listed:
    return Listed(
        directory=Directory(record.directory),
        state=ListedState.ORPHANED,
        workspace=record.workspace,
        lane=record.lane,
        project=record.project,
        branch=record.branch,
        note=note,
    )


def _has_submodules(pointer: Pointer) -> bool:
    return (pointer.admin / "modules").is_dir()


def disk_use(directory: Path, ignored: Collection[Path] = (), most: int = MOST) -> DiskUse:
    """The disk use of a directory. What is mounted in it from another disk is not counted."""
    apart = {os.fspath(each) for each in ignored}
    try:
        device = directory.stat().st_dev
    except OSError:
        return DiskUse()
    total = of_ignored = seen = 0
    linked: set[int] = set()
    waiting = [(os.fspath(directory), False)]
    while waiting:
        at, inside = waiting.pop()
        try:
            entries = list(os.scandir(at))
        except OSError:
            continue
        for entry in entries:
            seen += 1
            if seen > most:
                return DiskUse(total, of_ignored, whole=False)
            try:
                found = entry.stat(follow_symlinks=False)
            except OSError:
                continue
            if found.st_dev != device:
                continue
            counted = inside or entry.path in apart
            if stat.S_ISDIR(found.st_mode):
                waiting.append((entry.path, counted))
            elif found.st_nlink > 1:
                if found.st_ino in linked:
                    continue
                linked.add(found.st_ino)
            size = found.st_blocks * _BLOCK
            total += size
            of_ignored += size if counted else 0
    return DiskUse(total, of_ignored)
