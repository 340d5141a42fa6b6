"""Paths: one spelling for one place, and whether a place is below the root."""

import errno
import os
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path

from clew.kernel import Directory


def resolved(path: Path) -> Path:
    """With links and `..` resolved, and each name spelled as on disk. Parts that do not exist stay as written."""
    try:
        return _as_stored(path.resolve(strict=True))
    except RuntimeError as fault:
        # Older Pythons raise this for links that lead in a circle.
        raise _circle(path) from fault
    except OSError as fault:
        if fault.errno == errno.ELOOP:
            raise
    return _as_stored(_resolved_as_far_as_possible(path))


def directory_at(path: Path) -> Directory:
    return Directory(os.fspath(path), os.fspath(resolved(path)))


def same_path(one: Path, other: Path) -> bool:
    return resolved(one) == resolved(other)


def escape_of(directory: Path, root: Path) -> Path | None:
    """Where a directory is that is not below the root, by its name or by a link; None when it is below."""
    named = Path(os.path.normpath(directory))
    real_root, real = resolved(root), resolved(directory)
    if not any(named.is_relative_to(each) and named != each for each in (Path(os.path.normpath(root)), real_root)):
        return named
    return None if real.is_relative_to(real_root) and real != real_root else real


def _resolved_as_far_as_possible(path: Path) -> Path:
    try:
        real = path.resolve()
        # Where links lead in a circle, resolve() returns the rest of the path unresolved.
        if real.resolve() == real:
            return real
    except RuntimeError as fault:
        raise _circle(path) from fault
    raise _circle(path)


def _circle(path: Path) -> OSError:
    return OSError(errno.ELOOP, os.strerror(errno.ELOOP), str(path))


def _as_stored(path: Path) -> Path:
    """On a disk that ignores case, the spelling with which a name was made counts."""
    try:
        seen = os.stat(path)  # noqa: PTH116 - every run calls it, and Path.stat takes twice as long
    except OSError:
        return _with_stored_names(path)
    return path if _is_exact(path, seen.st_dev, seen.st_ino) else _with_stored_names(path)


@lru_cache(maxsize=1024)
def _is_exact(path: Path, device: int, inode: int) -> bool:  # noqa: ARG001 - part of the cache key: another disk in its place is checked again
    """Whether the disk knows each name in this spelling only. That cannot change while it is the same directory."""
    return not any(_is_same(at, other) for at, other in _respelled(path))


def _with_stored_names(path: Path) -> Path:
    for at, other in _respelled(path):
        if _is_same(at, other):
            parent = _with_stored_names(at.parent)
            return parent / _stored_name(parent, at.name) / path.relative_to(at)
    return path


def _respelled(path: Path) -> Iterator[tuple[Path, Path]]:
    """The path and all its parents, each beside another spelling of its name."""
    for at in (path, *path.parents):
        if at.name != at.name.swapcase():
            yield at, at.with_name(at.name.swapcase())


def _is_same(one: Path, other: Path) -> bool:
    try:
        # The other spelling first: mostly it does not exist.
        return other.samefile(one)
    except OSError:
        return False


def _stored_name(parent: Path, name: str) -> str:
    try:
        names = [each.name for each in parent.iterdir()]
    except OSError:
        return name
    return name if name in names else next((each for each in names if each.casefold() == name.casefold()), name)
