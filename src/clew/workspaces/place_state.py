"""What the disk says of a worktree. Only looking: what is to be done about it is the kernel's."""

import stat
from dataclasses import dataclass
from pathlib import Path

from clew.kernel import Found
from clew.ports.workspaces import PlaceWanted
from clew.workspaces.marker import NAME, Marker, Record, Unreadable
from clew.workspaces.paths import leads_out, same_place
from clew.workspaces.repository import (
    Pointer,
    Refs,
    git_file,
    in_midst_of,
    lock_reason,
    pointer_of,
    points_back,
    references,
)

INITIALIZING = "initializing"
"""The reason with which git itself locks a worktree while it makes one."""


@dataclass(frozen=True, slots=True)
class Site:
    """A worktree that is wanted, and where it belongs. `common` is None where there is no repository."""

    wanted: PlaceWanted
    directory: Path
    root: Path
    source: Path
    common: Path | None
    branch: str
    record: Record | None = None


@dataclass(frozen=True, slots=True)
class Look:
    """What was found. `reference` is what git keeps of a directory that is gone, `branch` whether there is one.

    `half` says that we began to make it and did not finish; `mendable` that only the pointers of git are wrong.
    """

    found: Found
    seen: str = ""
    branch: bool = False
    reference: Path | None = None
    half: bool = False
    mendable: bool = False


def look(site: Site, refs: Refs | None) -> Look:
    outside = leads_out(site.directory, site.root)
    if outside is not None:
        return Look(Found.OUTSIDE_ROOT, str(outside))
    try:
        mode = site.directory.stat().st_mode
    except FileNotFoundError:
        mode = None
    if mode is not None and not stat.S_ISDIR(mode):
        return Look(Found.CANNOT_MAKE, "a file is in the way. Move it away.")
    if site.common is None or refs is None:
        return Look(Found.PROJECT_MOVED, f"{site.source} is gone or is no git repository")
    entries = [] if mode is None else [each.name for each in site.directory.iterdir()]
    if not entries:
        return _look_for_traces(site, site.common, refs)
    return _look_inside(site, site.common, refs, entries)


def whose(admin: Path, wanted: PlaceWanted) -> str | None:
    """Whose marker a worktree's git directory bears, when it is not the lane's: in words."""
    try:
        marker = Marker.read(admin / NAME)
    except Unreadable as fault:
        return str(fault)
    if marker is None or (marker.lane, marker.project) == (wanted.lane, wanted.workspace.project):
        return None
    return f"lane {marker.lane}, project {marker.project}"


def _look_inside(site: Site, common: Path, refs: Refs, entries: list[str]) -> Look:
    dot = site.directory / ".git"
    if ".git" not in entries:
        return Look(Found.NO_GIT, f"a directory with {len(entries)} entries and no .git")
    if git_file(dot) is None:
        return Look(Found.NO_GIT, "a repository of its own")
    pointer = pointer_of(site.directory)
    if pointer is None and entries == [".git"] and site.record is not None and _was_of(site.directory, common):
        return Look(Found.NOT_MADE, branch=refs.has(site.branch), half=True)
    if pointer is None:
        return _look_for_pointer(site, common)
    if pointer.common != common:
        return Look(Found.PROJECT_MOVED, f"this worktree is of {pointer.common}, and the project is at {site.source}")
    if pointer.back is None or not same_place(pointer.back, site.directory):
        return _look_at_back(site, pointer)
    foreign = whose(pointer.admin, site.wanted)
    if foreign is not None:
        return Look(Found.FOREIGN_MARKER, foreign)
    half = not (pointer.admin / NAME).exists()
    if half and site.record is None:
        return Look(Found.CANNOT_MAKE, "a worktree that Clew did not make is there. Remove it, or move it away.")
    if half and not (pointer.admin / "index").exists():
        # Git writes the index once all files are there.
        return Look(Found.NOT_MADE, branch=refs.has(site.branch), half=True)
    return _look_at_branch(site, refs, pointer.admin, half)


def _look_at_branch(site: Site, refs: Refs, admin: Path, half: bool) -> Look:
    head = refs.head(admin)
    if head.branch != site.branch:
        midst = in_midst_of(admin)
        where = head.branch or (f"no branch (detached at {head.detached[:12]})" if head.detached else "no branch")
        return Look(Found.OTHER_BRANCH, f"{where}, {midst}" if midst else where)
    if not refs.has(site.branch):
        return Look(Found.OTHER_BRANCH, "a branch of that name without a commit, because it was deleted")
    return Look(Found.NOT_MADE if half else Found.READY, branch=True, half=half)


def _look_for_pointer(site: Site, common: Path) -> Look:
    """What its `.git` points at is gone: the project was moved, or git was made to forget the worktree."""
    was = git_file(site.directory / ".git")
    for admin in references(common):
        back = points_back(admin)
        known = back is not None and same_place(back, site.directory)
        if known and (admin / NAME).exists() and whose(admin, site.wanted) is None:
            return Look(Found.PROJECT_MOVED, f"{was} is gone, {admin} stands for it", mendable=True)
    if _was_of(site.directory, common):
        return Look(
            Found.NO_GIT, f"git was made to forget it, {was} is gone; moved away, it is made again from its branch"
        )
    return Look(Found.PROJECT_MOVED, f"{was} is gone, and the repository at {site.source} does not know this worktree")


def _was_of(directory: Path, common: Path) -> bool:
    """Whether it points into this repository, at something that is gone."""
    was = git_file(directory / ".git")
    return was is not None and same_place(was.parent, common / "worktrees")


def _look_at_back(site: Site, pointer: Pointer) -> Look:
    """Git believes that the worktree is elsewhere."""
    if pointer.back is not None and (pointer.back / ".git").exists():
        return Look(Found.NO_GIT, f"a copy of the worktree {pointer.back}")
    if (pointer.admin / NAME).exists() and whose(pointer.admin, site.wanted) is None:
        return Look(Found.PROJECT_MOVED, f"git has it at {pointer.back}", mendable=True)
    if site.record is not None and not (pointer.admin / NAME).exists():
        return Look(Found.NOT_MADE, half=True)
    return Look(Found.NO_GIT, f"git has it at {pointer.back}")


def _look_for_traces(site: Site, common: Path, refs: Refs) -> Look:
    """There is no directory: was there ever one, and is its branch still there?"""
    reference = _reference(site, common)
    branch = refs.has(site.branch)
    made = site.record is not None and site.record.ready_at is not None
    if reference is not None:
        foreign = whose(reference, site.wanted)
        if foreign is not None:
            return Look(Found.FOREIGN_MARKER, foreign)
        locked = lock_reason(reference)
        if locked is not None and locked != INITIALIZING:
            words = f"git keeps its worktree locked ({locked or 'without a reason'}). Unlock it, or bring it back."
            return Look(Found.CANNOT_MAKE, words)
        made = made or (reference / NAME).exists()
    if branch and (made or site.record is None):
        return Look(Found.DIRECTORY_GONE, branch=True, reference=reference)
    if made:
        return Look(Found.BRANCH_GONE)
    return Look(Found.NOT_MADE if reference is None else Found.ORPHANED_REFERENCE, "", branch, reference)


def _reference(site: Site, common: Path) -> Path | None:
    for admin in references(common):
        back = points_back(admin)
        if back is not None and same_place(back, site.directory):
            return admin
    return None
