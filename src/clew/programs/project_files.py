"""Files of a project that an agent obeys: whoever may write to the project could get more by them than its mode."""

import os
from collections.abc import Iterator, Sequence
from pathlib import Path

GIT = (".git",)


def find_files(
    directory: Path, patterns: Sequence[str], roots: Sequence[str] = GIT, alone: bool = True
) -> Iterator[Path]:
    """The files of these patterns in the directory and above it, as far as the project reaches."""
    for place in directories(directory, roots, alone) if patterns else ():
        for pattern in patterns:
            yield from sorted(path for path in place.glob(pattern) if path.is_file() or path.is_symlink())


def directories(directory: Path, roots: Sequence[str] = GIT, alone: bool = True) -> list[Path]:
    """The directory and those above it, up to the first that holds a `root`; where none does, it `alone`, or all."""
    here = Path(os.path.realpath(directory))
    places = [here, *here.parents]
    top = next((at for at, place in enumerate(places) if any((place / root).exists() for root in roots)), None)
    if top is None:
        return places[:1] if alone else places
    return places[: top + 1]


def main_worktree(directory: Path) -> Path | None:
    """The repository that a linked worktree belongs to; None for every other directory."""
    for place in directories(directory):
        try:
            said = (place / ".git").read_text("utf-8").strip()
        except (OSError, ValueError):
            continue
        kept = Path(os.path.realpath(place / said.removeprefix("gitdir:").strip()))
        if kept.parent.name == "worktrees":
            return kept.parent.parent.parent
    return None
