"""Putting files in place together: until all are, each can be taken back, and what was there is as it was."""

import contextlib
import errno
import os
import shutil
import uuid
from pathlib import Path
from types import TracebackType

_PART, _BEFORE = ".clew-part", ".clew-before"


class Placing:
    """A `with` that ends well keeps all that was done in it; any other leaves nothing of it."""

    def __init__(self) -> None:
        self._undo, self._settle = contextlib.ExitStack(), contextlib.ExitStack()

    def __enter__(self) -> "Placing":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, fault: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is not None:
            self._undo.close()
        else:
            # All is in place: what is left over in the way of it is no reason to take it back.
            with contextlib.suppress(OSError):
                self._settle.close()

    def put(self, path: Path, data: bytes) -> None:
        """The file is there with all of it, or it is as it was."""
        self._directory(path.parent)
        # Not named after it: a name may be as long as the system allows.
        part = _beside(path, _PART)
        try:
            file = os.open(part, os.O_CREAT | os.O_WRONLY | os.O_TRUNC, 0o600)
            with os.fdopen(file, "wb") as written:
                written.write(data)
                written.flush()
                os.fsync(written.fileno())
            if path.exists():
                before = _beside(path, _BEFORE)
                self._settle.callback(before.unlink, missing_ok=True)
                # Renamed to a link of itself it would stay.
                self._undo.callback(before.unlink, missing_ok=True)
                _same(path, before)
                self._undo.callback(before.replace, path)
            else:
                self._undo.callback(path.unlink, missing_ok=True)
            part.replace(path)
        finally:
            part.unlink(missing_ok=True)

    def move(self, path: Path, to: Path) -> None:
        path.replace(to)
        self._undo.callback(to.replace, path)

    def take_away(self, path: Path) -> None:
        before = _beside(path, _BEFORE)
        self.move(path, before)
        self._settle.callback(before.unlink, missing_ok=True)

    def _directory(self, path: Path) -> None:
        missing = [each for each in (path, *path.parents) if not each.exists()]
        for each in reversed(missing):
            with contextlib.suppress(FileExistsError):
                each.mkdir(mode=0o700)
                self._undo.callback(_remove, each)
        if not path.is_dir():
            raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), str(path))


def is_ours(path: Path) -> bool:
    return path.name.endswith((_PART, _BEFORE))


def _beside(path: Path, kind: str) -> Path:
    return path.with_name(f".{uuid.uuid4().hex}{kind}")


def _same(path: Path, before: Path) -> None:
    try:
        os.link(path, before)
    except OSError:
        # Not every file system has links.
        shutil.copy2(path, before)


def _remove(directory: Path) -> None:
    # Somebody else may have put something there meanwhile.
    with contextlib.suppress(OSError):
        directory.rmdir()
