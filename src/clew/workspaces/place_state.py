"""The state of a worktree on disk. It is only read here; the kernel decides what to do about it."""

import stat
from dataclasses import dataclass
from pathlib import Path

from clew.kernel import Found
from clew.ports.workspaces import PlaceWanted
from clew.workspaces.marker import NAME, Marker, Record, Unreadable
from clew.workspaces.paths import escape_of, same_path
from clew.workspaces.repository import (
    Pointer,
    Refs,
    git_file,
    lock_reason,
    pointer_of,
    references,
    unfinished_operation,
    worktree_of,
)

INITIALIZING = "initializing"
"""The reason with which git locks a worktree while it makes it."""


@dataclass(frozen=True, slots=True)
class Site:
    """A wanted worktree and where it belongs. `common` is the repository's git directory, None where there is none."""

    wanted: PlaceWanted
    directory: Path
    root: Path
    source: Path
    common: Path | None
    branch: str
    record: Record | None = None
    # Whether a branch of that name is this lane's. Another lane's, or a person's, is never checked out for it.
    owned: bool = True


@dataclass(frozen=True, slots=True)
class PlaceState:
    """What was found. `reference`: git's own directory of a worktree that is gone. `branch`: whether its branch exists.

    `half`: Clew began to make it and did not finish. `mendable`: only git's pointers are wrong.
    """

    found: Found
    seen: str = ""
    branch: bool = False
    reference: Path | None = None
    half: bool = False
    mendable: bool = False


def inspect(site: Site, refs: Refs | None) -> PlaceState:
    outside = escape_of(site.directory, site.root)
    if outside is not None:
        return PlaceState(Found.OUTSIDE_ROOT, str(outside))
    try:
        mode = site.directory.stat().st_mode
    except FileNotFoundError:
        mode = None
    if mode is not None and not stat.S_ISDIR(mode):
        return PlaceState(Found.CANNOT_MAKE, "a file is in the way. Move it away.")
    if site.common is None or refs is None:
        return PlaceState(Found.PROJECT_MOVED, f"{site.source} is gone or is no git repository")
    entries = [] if mode is None else [each.name for each in site.directory.iterdir()]
    if not entries:
        return _inspect_for_traces(site, site.common, refs)
    return _inspect_inside(site, site.common, refs, entries)


def foreign_owner(admin: Path, wanted: PlaceWanted) -> str | None:
    """The lane whose marker is in a worktree's git directory, in words; None where it is the wanted lane, or none."""
    try:
        marker = Marker.read(admin / NAME)
    except Unreadable as fault:
        return str(fault)
    if marker is None or (marker.lane, marker.project) == (wanted.lane, wanted.workspace.project):
        return None
    return f"lane {marker.lane}, project {marker.project}"


def _inspect_inside(site: Site, common: Path, refs: Refs, entries: list[str]) -> PlaceState:
    dot = site.directory / ".git"
    if ".git" not in entries:
        return PlaceState(Found.NO_GIT, f"a directory with {len(entries)} entries and no .git")
    if git_file(dot) is None:
        return PlaceState(Found.NO_GIT, "a repository of its own")
    pointer = pointer_of(site.directory)
    if pointer is None and entries == [".git"] and site.record is not None and _was_of(site.directory, common):
        return PlaceState(Found.NOT_MADE, branch=refs.has(site.branch), half=True)
    if pointer is None:
        return _inspect_for_pointer(site, common)
    if pointer.common != common:
        return PlaceState(
            Found.PROJECT_MOVED, f"this worktree is of {pointer.common}, and the project is at {site.source}"
        )
    if pointer.back is None or not same_path(pointer.back, site.directory):
        return _inspect_at_back(site, pointer)
    foreign = foreign_owner(pointer.admin, site.wanted)
    if foreign is not None:
        return PlaceState(Found.FOREIGN_MARKER, foreign)
    half = not (pointer.admin / NAME).exists()
    if half and site.record is None:
        return PlaceState(Found.CANNOT_MAKE, "there is a worktree that Clew did not make. Remove it, or move it away.")
    if half and not (pointer.admin / "index").exists():
        # Git writes the index after all files.
        return PlaceState(Found.NOT_MADE, branch=refs.has(site.branch), half=True)
    return _inspect_at_branch(site, refs, pointer.admin, half)


def _inspect_at_branch(site: Site, refs: Refs, admin: Path, half: bool) -> PlaceState:
    head = refs.head(admin)
    if head.branch != site.branch:
        midst = unfinished_operation(admin)
        where = head.branch or (f"no branch (detached at {head.detached[:12]})" if head.detached else "no branch")
        return PlaceState(Found.OTHER_BRANCH, f"{where}, {midst}" if midst else where)
    if not refs.has(site.branch):
        return PlaceState(Found.OTHER_BRANCH, "a branch of that name without a commit, because it was deleted")
    return PlaceState(Found.NOT_MADE if half else Found.READY, branch=True, half=half)


def _inspect_for_pointer(site: Site, common: Path) -> PlaceState:
    """What its `.git` points at is gone: the project was moved, or git's reference to the worktree was removed."""
    was = git_file(site.directory / ".git")
    for admin in references(common):
        back = worktree_of(admin)
        known = back is not None and same_path(back, site.directory)
        if known and (admin / NAME).exists() and foreign_owner(admin, site.wanted) is None:
            return PlaceState(Found.PROJECT_MOVED, f"{was} is gone, {admin} stands for it", mendable=True)
    if _was_of(site.directory, common):
        return PlaceState(
            Found.NO_GIT,
            f"git's reference to it was removed, {was} is gone; move it away, and it is made again from its branch",
        )
    return PlaceState(
        Found.PROJECT_MOVED, f"{was} is gone, and the repository at {site.source} does not know this worktree"
    )


def _was_of(directory: Path, common: Path) -> bool:
    """Whether it points into this repository, to a directory that is gone."""
    was = git_file(directory / ".git")
    return was is not None and same_path(was.parent, common / "worktrees")


def _inspect_at_back(site: Site, pointer: Pointer) -> PlaceState:
    """Git's reference to the worktree names another directory."""
    if pointer.back is not None and (pointer.back / ".git").exists():
        return PlaceState(Found.NO_GIT, f"a copy of the worktree {pointer.back}")
    if (pointer.admin / NAME).exists() and foreign_owner(pointer.admin, site.wanted) is None:
        return PlaceState(Found.PROJECT_MOVED, f"git has it at {pointer.back}", mendable=True)
    if site.record is not None and not (pointer.admin / NAME).exists():
        return PlaceState(Found.NOT_MADE, half=True)
    return PlaceState(Found.NO_GIT, f"git has it at {pointer.back}")


def _inspect_for_traces(site: Site, common: Path, refs: Refs) -> PlaceState:
    """The directory does not exist: whether it ever did, and whether its branch still does."""
    reference = _reference(site, common)
    branch = refs.has(site.branch) and (site.owned or reference is not None)
    made = site.record is not None and site.record.ready_at is not None
    if reference is not None:
        foreign = foreign_owner(reference, site.wanted)
        if foreign is not None:
            return PlaceState(Found.FOREIGN_MARKER, foreign)
        locked = lock_reason(reference)
        if locked is not None and locked != INITIALIZING:
            words = f"git keeps its worktree locked ({locked or 'without a reason'}). Unlock it, or bring it back."
            return PlaceState(Found.CANNOT_MAKE, words)
        made = made or (reference / NAME).exists()
    if branch and (made or site.record is None):
        return PlaceState(Found.DIRECTORY_GONE, branch=True, reference=reference)
    if made:
        return PlaceState(Found.BRANCH_GONE)
    return PlaceState(Found.NOT_MADE if reference is None else Found.ORPHANED_REFERENCE, "", branch, reference)


def _reference(site: Site, common: Path) -> Path | None:
    for admin in references(common):
        back = worktree_of(admin)
        if back is not None and same_path(back, site.directory):
            return admin
    return None
