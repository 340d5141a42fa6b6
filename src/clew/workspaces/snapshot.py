"""Snapshots: a worktree as it is, with what is not committed, as a tree of git. The worktree is only read."""

import asyncio
import os
import secrets
import shutil
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from clew.workspaces.git import Git, Repository
from clew.workspaces.layout import Layout

LARGEST = 1024 * 1024
"""Bytes of a new file that is taken into a snapshot: git would store a copy of it."""

MOST = 2000
"""How many new files are taken."""


@dataclass(frozen=True, slots=True)
class Snapshot:
    """`tree` is the id of the tree. `left_out` are new files that are too large, or beyond the most that are taken."""

    tree: str
    left_out: tuple[str, ...] = ()


async def take_snapshot(git: Git, layout: Layout, directory: Path, admin: Path) -> Snapshot:
    """With an index of its own, so that neither the agent's index nor its lock is touched."""
    at = Repository(directory)
    index = layout.own / "snapshots" / secrets.token_hex(8)
    index.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    listed = index.with_suffix(".paths")
    environment = {"GIT_INDEX_FILE": os.fspath(index)}
    try:
        await asyncio.to_thread(_copy, admin / "index", index)
        await git.do(at, "add", "--update", "--", ":/", environment=environment)
        others = await git.do(at, "ls-files", "-z", "--others", "--exclude-standard", environment=environment)
        taken, left_out = await asyncio.to_thread(_small, directory, others.out.split(b"\0"))
        if taken:
            listed.write_bytes(b"\0".join(taken))
            paths = (f"--pathspec-from-file={listed}", "--pathspec-file-nul")
            await git.do(at, "--literal-pathspecs", "add", *paths, environment=environment)
        tree = await git.do(at, "write-tree", environment=environment)
        return Snapshot(tree.text, tuple(os.fsdecode(each) for each in left_out))
    finally:
        for left in (index, listed, index.with_suffix(".lock")):
            left.unlink(missing_ok=True)


def _copy(index: Path, to: Path) -> None:
    if index.exists():
        # With its time: git takes a file that changed in the very moment in which the index was written for unchanged
        # where the index looks newer.
        shutil.copy2(index, to)


def _small(directory: Path, names: Iterable[bytes]) -> tuple[list[bytes], list[bytes]]:
    taken: list[bytes] = []
    left_out: list[bytes] = []
    for name in names:
        # A name with a slash at its end is a repository of its own.
        if not name or name.endswith(b"/"):
            continue
        try:
            size = (directory / os.fsdecode(name)).lstat().st_size
        except OSError:
            continue
        (taken if size <= LARGEST and len(taken) < MOST else left_out).append(name)
    return taken, left_out
