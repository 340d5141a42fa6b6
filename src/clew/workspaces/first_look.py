"""What a new worktree does not have, although the project has it: uncommitted changes, and the files of submodules."""

from pathlib import Path

from clew.ports.fault import Fault
from clew.ports.workspaces import SourceKind
from clew.workspaces.changed_paths import listed, split, uncommitted
from clew.workspaces.git import Git, Repository
from clew.workspaces.place_state import Site


async def missing_in_worktree(git: Git, site: Site, where: Repository, start: str) -> str:
    """In words for the agent and the person; empty where nothing is missing. Knowing less is no reason to fail."""
    try:
        words = [await _uncommitted(git, site), await _submodules(git, where, start)]
    except (Fault, OSError):
        return ""
    return " ".join(each for each in words if each)


async def _uncommitted(git: Git, site: Site) -> str:
    source = site.wanted.source
    if source is None or source.kind is not SourceKind.REPOSITORY:
        return ""
    names = await uncommitted(git, Repository(Path(source.source)))
    if not names:
        return ""
    return f"Uncommitted changes in {source.source} are not in this worktree: {listed(names)}."


async def _submodules(git: Git, where: Repository, start: str) -> str:
    """By the tree that is checked out: a link to a commit has the mode 160000."""
    said = await git.ask(where, "ls-tree", "-r", "-z", "--full-tree", start)
    links = [entry.partition("\t")[2] for entry in split(said.out) if entry.startswith("160000 ")] if said.ok else []
    if not links:
        return ""
    return f"Submodules are empty in this worktree ({listed(links)}); `git submodule update --init` fills them."
