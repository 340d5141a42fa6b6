"""Places without a worktree: plain directories, used as they are, and agents' homes, made on demand."""

import os
import stat
from pathlib import Path

from clew.kernel import Found
from clew.ports.workspaces import PlaceWanted
from clew.workspaces.looking import Look, whose
from clew.workspaces.repository import pointer_of
from clew.workspaces.spelling import leads_out


def look_at_directory(wanted: PlaceWanted) -> Look:
    """A plain directory is somebody's own: it is never made, and never one that another lane has as its worktree."""
    directory = Path(wanted.workspace.directory.path)
    try:
        mode = directory.stat().st_mode
    except FileNotFoundError:
        gone = Found.CANNOT_MAKE if wanted.workspace.project is None else Found.PROJECT_MOVED
        return Look(gone, f"{directory} is gone")
    if not stat.S_ISDIR(mode):
        return Look(Found.CANNOT_MAKE, "it is no directory.")
    if not os.access(directory, os.R_OK | os.X_OK):
        return Look(Found.CANNOT_MAKE, "Clew's user may not enter it. Give it the right to.")
    real = directory.resolve()
    for at in (real, *real.parents):
        if (at / ".git").exists():
            pointer = pointer_of(at)
            foreign = None if pointer is None else whose(pointer.admin, wanted)
            return Look(Found.READY) if foreign is None else Look(Found.FOREIGN_MARKER, foreign)
    return Look(Found.READY)


def look_at_home(wanted: PlaceWanted, homes: Path) -> Look:
    """Below the place for homes it must stay there; a home elsewhere was named by a person, links and all."""
    home = Path(wanted.workspace.directory.path)
    if Path(os.path.normpath(home)).is_relative_to(os.path.normpath(homes)):
        outside = leads_out(home, homes)
        if outside is not None:
            return Look(Found.OUTSIDE_ROOT, str(outside))
    try:
        mode = home.stat().st_mode
    except FileNotFoundError:
        if home.is_symlink():
            return Look(Found.CANNOT_MAKE, f"it is a link to {home.readlink()}, which is gone.")
        return Look(Found.NOT_MADE)
    return Look(Found.READY) if stat.S_ISDIR(mode) else Look(Found.CANNOT_MAKE, "a file is in the way. Move it away.")


def make_home(wanted: PlaceWanted) -> None:
    home = Path(wanted.workspace.directory.path)
    home.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    home.mkdir(exist_ok=True, mode=0o700)
