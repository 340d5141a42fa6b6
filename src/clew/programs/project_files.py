"""Files of a project that an agent obeys. An agent that may write to its project could widen its mode by them."""

import os
from collections.abc import Iterator, Sequence
from pathlib import Path

GIT = (".git",)


def find_files(
    directory: Path, patterns: Sequence[str], roots: Sequence[str] = GIT, alone: bool = True
) -> Iterator[Path]:
    """The files that match the patterns, in the directory and above it up to the project's root."""
    for place in directories(directory, roots, alone) if patterns else ():
        for pattern in patterns:
            yield from sorted(path for path in place.glob(pattern) if path.is_file() or path.is_symlink())


def directories(directory: Path, roots: Sequence[str] = GIT, alone: bool = True) -> list[Path]:
    """The directory and its parents up to the first that holds one of `roots`.

    Without a root: the directory `alone`, or with all its parents.
    """
    here = Path(os.path.realpath(directory))
    places = [here, *here.parents]
    top = next((at for at, place in enumerate(places) if any((place / root).exists() for root in roots)), None)
    if top is None:
        return places[:1] if alone else places
    return places[: top + 1]


def main_worktree(directory: Path) -> Path | None:
    """The main worktree of the repository, for a directory in a linked worktree; otherwise None."""
    for place in directories(directory):
        try:
            pointer = (place / ".git").read_text("utf-8").strip()
        except (OSError, ValueError):
            continue
        git_dir = Path(os.path.realpath(place / pointer.removeprefix("gitdir:").strip()))
        if git_dir.parent.name == "worktrees":
            return git_dir.parent.parent.parent
    return None
