"""What a git that was killed in its first moments leaves of a worktree: it can stop every git in that repository."""

import contextlib
import re
import shutil
from pathlib import Path

from clew.workspaces.layout import Layout
from clew.workspaces.marker import Record, Unreadable
from clew.workspaces.repository import git_file, references

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
