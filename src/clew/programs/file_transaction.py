"""Files put in place together: all of them, or every file stays as it was."""

import contextlib
import errno
import os
import shutil
import uuid
from collections.abc import Callable
from functools import partial
from pathlib import Path
from types import TracebackType

_PART, _BEFORE = ".clew-part", ".clew-before"


class FileTransaction:
    """A `with` block that ends well commits; one that raises rolls back. Both can also be called later."""

    def __init__(self) -> None:
        self._undo: list[tuple[Path, Callable[[], object]]] = []
        self._on_commit = contextlib.ExitStack()

    def __enter__(self) -> "FileTransaction":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, fault: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is None:
            self.commit()
        else:
            self.roll_back()

    def commit(self) -> None:
        # All files are in place: a backup that cannot be removed is no reason to undo them.
        with contextlib.suppress(OSError):
            self._on_commit.close()

    def roll_back(self, unless: Callable[[Path], bool] = lambda _: False) -> None:
        """Restore every file, in reverse order, but not those for which `unless` is true."""
        kept = {path for path in dict(self._undo) if unless(path)}
        with contextlib.ExitStack() as stack:
            for path, undo in self._undo:
                if path not in kept:
                    stack.callback(undo)
        self._undo.clear()

    def put(self, path: Path, data: bytes, keep_as: Path | None = None) -> None:
        """Write the file atomically. `keep_as` is the name under which a file that was there stays."""
        self._make_directory(path.parent)
        # Not named after the file: a name may be as long as the system allows.
        part = _hidden(path, _PART)
        try:
            file = os.open(part, os.O_CREAT | os.O_WRONLY | os.O_TRUNC, 0o600)
            with os.fdopen(file, "wb") as written:
                written.write(data)
                written.flush()
                os.fsync(written.fileno())
            if path.exists():
                before = keep_as or _hidden(path, _BEFORE)
                if keep_as is None:
                    self._on_commit.callback(before.unlink, missing_ok=True)
                # rename(2) of a file to a link of itself leaves both names.
                self._undo.append((path, partial(before.unlink, missing_ok=True)))
                _link_or_copy(path, before)
                self._undo.append((path, partial(before.replace, path)))
            else:
                self._undo.append((path, partial(path.unlink, missing_ok=True)))
            part.replace(path)
        finally:
            part.unlink(missing_ok=True)

    def move(self, path: Path, to: Path) -> None:
        path.replace(to)
        self._undo.append((path, partial(to.replace, path)))

    def remove(self, path: Path) -> None:
        before = _hidden(path, _BEFORE)
        self.move(path, before)
        self._on_commit.callback(before.unlink, missing_ok=True)

    def _make_directory(self, path: Path) -> None:
        missing = [each for each in (path, *path.parents) if not each.exists()]
        for each in reversed(missing):
            with contextlib.suppress(FileExistsError):
                each.mkdir(mode=0o700)
                self._undo.append((each, partial(_remove_if_empty, each)))
        if not path.is_dir():
            raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), str(path))


def is_temporary(path: Path) -> bool:
    """Whether a transaction made the file for itself; one that was killed leaves such files behind."""
    return path.name.endswith((_PART, _BEFORE))


def free_name(path: Path, word: str) -> Path:
    """A name in the same directory, such as `x.jsonl.damaged-1`, that no file has."""
    names = (path.with_name(f"{path.name}.{word}-{number}") for number in range(1, 1_000_000))
    return next(name for name in names if not name.exists())


def _hidden(path: Path, suffix: str) -> Path:
    return path.with_name(f".{uuid.uuid4().hex}{suffix}")


def _link_or_copy(path: Path, before: Path) -> None:
    try:
        os.link(path, before)
    except OSError:
        # Not every file system has hard links.
        shutil.copy2(path, before)


def _remove_if_empty(directory: Path) -> None:
    # Another process may have put a file there since.
    with contextlib.suppress(OSError):
        directory.rmdir()
