"""A repository's worktrees and branches, read from its files: to start git costs more than all the rest of a run.

Only a repository that keeps its refs in a reftable has git asked.
"""

import os
import re
from dataclasses import dataclass
from pathlib import Path

from clew.workspaces.git import Git, Repository

_HEADS = "refs/heads/"
_HEX = re.compile(r"[0-9a-f]{40,64}")

# Files in a worktree's git directory while an operation is unfinished, and the operation.
_MIDST = {
    "rebase-merge": "a rebase",
    "rebase-apply": "a rebase",
    "MERGE_HEAD": "a merge",
    "CHERRY_PICK_HEAD": "a cherry-pick",
    "REVERT_HEAD": "a revert",
    "BISECT_START": "a bisection",
}


@dataclass(frozen=True, slots=True)
class Pointer:
    """The two files that tie a worktree to its repository: `.git` in it, and `gitdir` in `admin`, which points back."""

    admin: Path
    common: Path
    back: Path | None


@dataclass(frozen=True, slots=True)
class Head:
    """What a worktree has checked out: a branch, or a commit (`detached`); neither where it cannot be read."""

    branch: str | None = None
    detached: str | None = None


def common_of(source: Path) -> Path | None:
    """The git directory that all worktrees of a repository share; None where there is no repository."""
    dot = source / ".git"
    if dot.is_dir():
        return dot.resolve()
    admin = git_file(dot)
    if admin is not None:
        return common_dir_of(admin)
    return source.resolve() if (source / "HEAD").is_file() and (source / "objects").is_dir() else None


def git_file(dot: Path) -> Path | None:
    """Where a `.git` file points; None when it is no such file."""
    try:
        text = dot.read_bytes()
    except (FileNotFoundError, NotADirectoryError, IsADirectoryError):
        return None
    if not text.startswith(b"gitdir: "):
        return None
    return dot.parent / os.fsdecode(text[8:].rstrip(b"\r\n"))


def common_dir_of(admin: Path) -> Path | None:
    """The common git directory of a worktree's own one."""
    if not admin.is_dir():
        return None
    try:
        text = (admin / "commondir").read_bytes()
    except FileNotFoundError:
        return admin.resolve()
    return (admin / os.fsdecode(text.rstrip(b"\r\n"))).resolve()


def pointer_of(directory: Path) -> Pointer | None:
    """None when it is no worktree, or its git directory is gone."""
    admin = git_file(directory / ".git")
    common = None if admin is None else common_dir_of(admin)
    if admin is None or common is None:
        return None
    return Pointer(admin.resolve(), common, worktree_of(admin))


def worktree_of(admin: Path) -> Path | None:
    """The worktree that a git directory says it belongs to."""
    try:
        text = (admin / "gitdir").read_bytes()
    except (FileNotFoundError, NotADirectoryError):
        return None
    return (admin / os.fsdecode(text.rstrip())).parent if text.strip() else None


def references(common: Path) -> list[Path]:
    """The git directories of all worktrees of a repository."""
    try:
        return sorted(each for each in (common / "worktrees").iterdir() if each.is_dir())
    except (FileNotFoundError, NotADirectoryError):
        return []


def head_of(admin: Path) -> Head:
    try:
        text = os.fsdecode((admin / "HEAD").read_bytes()).strip()
    except FileNotFoundError:
        return Head()
    if text.startswith(f"ref: {_HEADS}"):
        return Head(branch=text.removeprefix(f"ref: {_HEADS}"))
    return Head(detached=text) if _HEX.fullmatch(text) else Head()


def has_branch(common: Path, branch: str) -> bool:
    if (common / _HEADS / branch).is_file():
        return True
    try:
        packed = (common / "packed-refs").read_bytes()
    except FileNotFoundError:
        return False
    return f" {_HEADS}{branch}\n".encode() in packed


def has_reftable(common: Path) -> bool:
    """Whether its branches are in a reftable, which only git reads."""
    return (common / "reftable").is_dir()


def unfinished_operation(admin: Path) -> str:
    """The unfinished operation of a worktree, in words; empty when there is none."""
    for name, words in _MIDST.items():
        if (admin / name).exists():
            branch = _head_name(admin / name)
            return f"in the midst of {words}" + (f" of {branch}" if branch else "")
    return ""


def lock_reason(admin: Path) -> str | None:
    """Git's own lock on a worktree; None when there is none."""
    try:
        return (admin / "locked").read_text(errors="replace").strip()
    except FileNotFoundError:
        return None


def _head_name(state: Path) -> str:
    try:
        return (state / "head-name").read_text(errors="replace").strip().removeprefix(_HEADS)
    except (FileNotFoundError, NotADirectoryError):
        return ""


@dataclass(frozen=True, slots=True)
class Refs:
    """Heads and branches, read from the repository's files; or git's answers for one worktree and one branch."""

    common: Path
    asked: tuple[Head, bool] | None = None

    def head(self, admin: Path) -> Head:
        return head_of(admin) if self.asked is None else self.asked[0]

    def has(self, branch: str) -> bool:
        return has_branch(self.common, branch) if self.asked is None else self.asked[1]


async def refs_of(git: Git, where: Repository, common: Path, directory: Path, branch: str) -> Refs:
    if not has_reftable(common):
        return Refs(common)
    exists = (await git.ask(where, "show-ref", "--verify", "--quiet", f"refs/heads/{branch}")).ok
    head = Head()
    if pointer_of(directory) is not None:
        inside = Repository(directory)
        named = await git.ask(inside, "symbolic-ref", "--quiet", "--short", "HEAD")
        commit = await git.ask(inside, "rev-parse", "--verify", "--quiet", "HEAD")
        head = Head(named.text) if named.ok else Head(detached=commit.text if commit.ok else None)
    return Refs(common, (head, exists))
