"""Paths with changes that are in no commit, and lists of paths in words."""

import os
from collections.abc import Sequence

from clew.workspaces.git import Git, Repository

_NAMED = 5


async def uncommitted(git: Git, at: Repository, untracked: bool = True) -> list[str]:
    """Changed paths; with `untracked`, new ones too."""
    how = "all" if untracked else "no"
    said = await git.do(
        at, "status", "--porcelain=v1", "-z", "--no-renames", f"--untracked-files={how}", "--ignore-submodules=dirty"
    )
    return [name[3:] for name in split(said.out)]


def split(out: bytes) -> list[str]:
    return [os.fsdecode(each) for each in out.split(b"\0") if each]


def listed(names: Sequence[str]) -> str:
    more = len(names) - _NAMED
    return ", ".join(names[:_NAMED]) + (f" and {more} more" if more > 0 else "")
