"""Branches and heads: read from files where a repository keeps them in files, else asked of git."""

from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from clew.workspaces.git import Git, Repository
from clew.workspaces.repository import Head, has_branch, head_of, keeps_refs_elsewhere, pointer_of


class Refs(Protocol):
    def head(self, admin: Path) -> Head: ...

    def has(self, branch: str) -> bool: ...


@dataclass(frozen=True, slots=True)
class FileRefs:
    common: Path

    def head(self, admin: Path) -> Head:
        return head_of(admin)

    def has(self, branch: str) -> bool:
        return has_branch(self.common, branch)


@dataclass(frozen=True, slots=True)
class AskedRefs:
    """What git said of one worktree and one branch."""

    on: Head
    exists: bool

    def head(self, admin: Path) -> Head:  # noqa: ARG002 - it was asked for this one
        return self.on

    def has(self, branch: str) -> bool:  # noqa: ARG002
        return self.exists


async def refs_of(git: Git, where: Repository, common: Path, directory: Path, branch: str) -> Refs:
    if not keeps_refs_elsewhere(common):
        return FileRefs(common)
    exists = (await git.ask(where, "show-ref", "--verify", "--quiet", f"refs/heads/{branch}")).ok
    head = Head()
    if pointer_of(directory) is not None:
        inside = Repository(directory)
        named = await git.ask(inside, "symbolic-ref", "--quiet", "--short", "HEAD")
        commit = await git.ask(inside, "rev-parse", "--verify", "--quiet", "HEAD")
        head = Head(named.text) if named.ok else Head(detached=commit.text if commit.ok else None)
    return AskedRefs(head, exists)
