"""Paths: one spelling for one place, and whether a place is below the root."""

import errno
import os
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path

from clew.kernel import Directory


def resolved(path: Path) -> Path:
    """With links and `..` resolved, and each name as the disk has it. What is not there yet stays as it is written."""
    try:
        return _as_stored(path.resolve(strict=True))
    except RuntimeError as fault:
        # What older Pythons say of links that lead in a circle.
        raise _circle(path) from fault
    except OSError as fault:
        if fault.errno == errno.ELOOP:
            raise
    return _as_stored(_as_far_as_it_is_there(path))


def placed(path: Path) -> Directory:
    return Directory(os.fspath(path), os.fspath(resolved(path)))


def same_place(one: Path, other: Path) -> bool:
    return resolved(one) == resolved(other)


def leads_out(directory: Path, root: Path) -> Path | None:
    """Where a directory leads that is not below the root, by its name or by a link; None when it is."""
    named = Path(os.path.normpath(directory))
    real_root, real = resolved(root), resolved(directory)
    if not any(named.is_relative_to(each) and named != each for each in (Path(os.path.normpath(root)), real_root)):
        return named
    return None if real.is_relative_to(real_root) and real != real_root else real


def _as_far_as_it_is_there(path: Path) -> Path:
    try:
        real = path.resolve()
        # Where links lead in a circle, what follows them is given back as it is.
        if real.resolve() == real:
            return real
    except RuntimeError as fault:
        raise _circle(path) from fault
    raise _circle(path)


def _circle(path: Path) -> OSError:
    return OSError(errno.ELOOP, os.strerror(errno.ELOOP), str(path))


def _as_stored(path: Path) -> Path:
    """Some disks take a name in any case; then the one it was made with counts."""
    try:
        seen = os.stat(path)  # noqa: PTH116 - every run asks, and this is half of it
    except OSError:
        return _with_stored_names(path)
    return path if _is_exact(path, seen.st_dev, seen.st_ino) else _with_stored_names(path)


@lru_cache(maxsize=1024)
def _is_exact(path: Path, device: int, inode: int) -> bool:  # noqa: ARG001 - another disk in its place is asked again
    """Whether each name of it is taken in one way of writing only: so it stays for as long as it is the same place."""
    return not any(_is_same(at, other) for at, other in _otherwise(path))


def _with_stored_names(path: Path) -> Path:
    for at, other in _otherwise(path):
        if _is_same(at, other):
            parent = _with_stored_names(at.parent)
            return parent / _stored_name(parent, at.name) / path.relative_to(at)
    return path


def _otherwise(path: Path) -> Iterator[tuple[Path, Path]]:
    """The place and all above it, each beside another way of writing its name."""
    for at in (path, *path.parents):
        if at.name != at.name.swapcase():
            yield at, at.with_name(at.name.swapcase())


def _is_same(one: Path, other: Path) -> bool:
    try:
        # The other first: mostly there is none.
        return other.samefile(one)
    except OSError:
        return False


def _stored_name(parent: Path, name: str) -> str:
    try:
        names = [each.name for each in parent.iterdir()]
    except OSError:
        return name
    return name if name in names else next((each for each in names if each.casefold() == name.casefold()), name)
