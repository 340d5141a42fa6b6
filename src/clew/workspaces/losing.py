"""What an agent is told of a worktree that was gone and is made again: from what, and what git knows of the loss."""

import os
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from clew.ports.fault import Fault
from clew.workspaces.git import Git, Repository
from clew.workspaces.looking import Site
from clew.workspaces.repository import head_of, in_midst_of

_NAMED = 5
"""How many of the files that were staged are named."""

_LONGEST = 72


async def words_of_loss(git: Git, where: Repository, site: Site, reference: Path | None) -> str:
    """Asked before it is made again, for that removes `reference`: what git keeps of a worktree that is gone."""
    branch = f"refs/heads/{site.branch}"
    tip, _, subject = (await _asked(git, where, "log", "-1", "--format=%h%x00%s", branch, "--")).partition("\0")
    at = f", at commit {tip}" + (f" ({_line(subject)})" if subject.strip() else "") if tip else ""
    words = [
        f"{_line(os.fspath(site.directory), 4096)} was gone and was made again from branch {site.branch}{at}.",
        "Whatever was not committed there is lost.",
    ]
    if reference is not None:
        words += await _of_worktree(git, site, reference)
    stashes = await _asked(git, where, "log", "--walk-reflogs", "--format=%gs", "refs/stash", "--")
    number = sum(_is_of(line, site.branch) for line in stashes.splitlines())
    if number:
        them = "1 stash that was made on this branch is" if number == 1 else f"{number} stashes made on this branch are"
        words.append(f"{them} still there: see `git stash list`.")
    return " ".join(words)


async def _of_worktree(git: Git, site: Site, reference: Path) -> list[str]:
    words = []
    head, midst = head_of(reference), in_midst_of(reference)
    if head.branch != site.branch and (head.branch or head.detached):
        was = f"on branch {head.branch}" if head.branch else f"at commit {(head.detached or '')[:12]}, on no branch"
        words.append(f"Before that it was {was}.")
    if midst:
        words.append(f"It was {midst}.")
    # Its owner was checked when git was asked for the branch in the project's own directory.
    staged = await _asked(git, Repository(git_dir=reference), "diff", "--cached", "--name-only", "-z", "HEAD", "--")
    files = [_line(name) for name in staged.split("\0") if name]
    if files:
        words.append(f"Staged there and never committed: {_listed(files)}.")
    return words


async def _asked(git: Git, where: Repository, *arguments: str) -> str:
    """What git says; nothing where it refuses. To know less is no reason not to make it again."""
    with suppress(Fault):
        answer = await git.ask(where, *arguments)
        return answer.text if answer.ok else ""
    return ""


def _is_of(stash: str, branch: str) -> bool:
    return stash.startswith((f"WIP on {branch}:", f"On {branch}:"))


def _listed(names: Sequence[str]) -> str:
    more = len(names) - _NAMED
    return ", ".join(names[:_NAMED]) + (f" and {more} more" if more > 0 else "")


def _line(text: str, longest: int = _LONGEST) -> str:
    """On one line and of no great length: it goes into a prompt."""
    line = " ".join("".join(each if each.isprintable() else " " for each in text).split())
    return line if len(line) <= longest else f"{line[:longest]} …"
