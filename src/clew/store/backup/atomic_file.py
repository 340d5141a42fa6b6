"""Filing: a file appears under its name whole and safe on the disk, or not at all."""

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from clew.store.faults import StoreFault


class CannotWrite(StoreFault):
    code = "store:cannot-write"


@contextmanager
def whole_file(target: Path) -> Iterator[Path]:
    """An empty file beside the target, to be filled; it takes the target's place when the block ends well."""
    try:
        handle, name = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.", suffix=".part")
    except OSError as fault:
        raise cannot_write(target, fault) from fault
    os.close(handle)
    part = Path(name)
    try:
        yield part
        if target.exists():
            # Who may read it stays as it was; a new one is its owner's alone.
            part.chmod(target.stat().st_mode)
        _to_disk(part)
        part.replace(target)
        _to_disk(target.parent)
    except OSError as fault:
        raise cannot_write(target, fault) from fault
    finally:
        part.unlink(missing_ok=True)


def cannot_write(target: Path, fault: OSError) -> CannotWrite:
    return CannotWrite(
        f"{target} cannot be written: {fault.strerror or fault}.", "Choose a place with room that you may write to."
    )


def _to_disk(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
