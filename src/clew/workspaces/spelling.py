"""Paths: one spelling for one place, and whether a place is below the root."""

import errno
import os
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
    for at in (path, *path.parents):
        other = at.with_name(at.name.swapcase()) if at.name else at
        if other != at and _is_same(at, other):
            parent = _as_stored(at.parent)
            return parent / _stored_name(parent, at.name) / path.relative_to(at)
    return path


def _is_same(one: Path, other: Path) -> bool:
    try:
        return one.samefile(other)
    except OSError:
        return False


def _stored_name(parent: Path, name: str) -> str:
    try:
        names = [each.name for each in parent.iterdir()]
    except OSError:
        return name
    return name if name in names else next((each for each in names if each.casefold() == name.casefold()), name)
