"""The ledger: which marks are out, on disk, so that whoever starts after a crash ends what the crash left behind."""

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path

from clew.programs.faults import CannotStart
from clew.programs.process_tag import Owner, ProcessTag, end_tagged, tagged_processes


class Ledger:
    """One small file for each mark; it is there before the program starts and goes when all it started has ended.

    An entry names who made it. Several providers may share a ledger: what belongs to a process that lives is its own.
    """

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        with _writable(directory):
            directory.mkdir(parents=True, exist_ok=True, mode=0o700)

    def add(self, mark: ProcessTag, owner: Owner | None = None) -> None:
        """Ours, unless another owner is named."""
        entry, beside = self._directory / mark.token, self._directory / f".{mark.token}"
        with _writable(self._directory):
            file = os.open(beside, os.O_CREAT | os.O_WRONLY | os.O_TRUNC, 0o600)
            with os.fdopen(file, "w", encoding="ascii") as written:
                written.write((owner or Owner.ourselves()).written)
            # Whole or not at all: a reader in between would take an unfinished entry for a dead owner's.
            beside.rename(entry)

    def remove(self, mark: ProcessTag) -> None:
        with contextlib.suppress(FileNotFoundError):
            (self._directory / mark.token).unlink()

    def end_orphans(self) -> int:
        """End what owners that are gone left going; how many processes there were."""
        with _writable(self._directory):
            left = [ProcessTag(entry.name) for entry in self._directory.iterdir() if not entry.name.startswith(".")]
        left = [mark for mark in left if not self._owner_lives(mark)]
        swept = end_tagged(left)
        for mark in left:
            # What could not be ended stays in the ledger for whoever comes next.
            if swept.clean or not tagged_processes(mark):
                self.remove(mark)
        return swept.ended

    def _owner_lives(self, mark: ProcessTag) -> bool:
        try:
            owner = Owner.read((self._directory / mark.token).read_text(encoding="ascii"))
        except FileNotFoundError:
            # It has just left by itself, so there is nothing to end.
            return True
        except (OSError, ValueError):
            return False
        return owner.lives


@contextlib.contextmanager
def _writable(directory: Path) -> Iterator[None]:
    """A program of which nothing could be written down is not started."""
    try:
        yield
    except OSError as fault:
        words = f"Nothing can be kept in {directory}, so nothing is started: {fault.strerror}."
        raise CannotStart(words, "Make it a directory that Clew may write to.") from fault
