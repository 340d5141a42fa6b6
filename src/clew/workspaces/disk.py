"""How much of the disk a directory takes, and removing one."""

import contextlib
import os
import stat
from collections.abc import Callable, Collection
from functools import partial
from pathlib import Path

from clew.ports.workspaces import DiskUse

MOST = 500_000
"""Entries that are looked at; beyond that it is "at least so much"."""
_BLOCK = 512


def disk_use(directory: Path, ignored: Collection[Path] = (), most: int = MOST) -> DiskUse:
    """What belongs to another disk is not counted."""
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
