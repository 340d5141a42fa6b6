"""Temporary directories of a process. After a crash, the next start finds and removes them."""

import contextlib
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

from clew.programs.faults import CannotStart
from clew.programs.process_tag import Owner


class Scratch:
    """Each directory is named after the process that made it. Without a `place` they are made in the system's own."""

    def __init__(self, place: Path | None) -> None:
        self._place = place

    def remove_orphans(self) -> None:
        """Remove the directories of processes that have ended."""
        if self._place is None or not self._place.is_dir():
            return
        for each in self._place.iterdir():
            if not _owner_lives(each.name):
                shutil.rmtree(each, ignore_errors=True)

    def make(self) -> Path:
        """Readable for this user only."""
        owner = Owner.ourselves()
        try:
            if self._place is not None:
                self._place.mkdir(parents=True, exist_ok=True, mode=0o700)
            return Path(tempfile.mkdtemp(prefix=f"clew-{owner.pid}-{owner.started}-", dir=self._place))
        except OSError as fault:
            words = f"No temporary directory can be made in {self._place or tempfile.gettempdir()}: {fault.strerror}."
            raise CannotStart(words, "Make it a directory that Clew may write to.") from fault

    @contextlib.contextmanager
    def temporary(self) -> Iterator[Path]:
        made = self.make()
        try:
            yield made
        finally:
            shutil.rmtree(made, ignore_errors=True)


def _owner_lives(name: str) -> bool:
    try:
        _, pid, started, _ = name.split("-", 3)
        return Owner(int(pid), int(started)).lives
    except ValueError:
        return False
