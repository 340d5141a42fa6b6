"""The ledger: the process tags in use, on disk, so that the next start can end what a crash left running."""

import asyncio
import contextlib
import os
import time
from collections.abc import Iterator
from pathlib import Path

from clew.programs.faults import CannotStart
from clew.programs.process_tag import Owner, ProcessTag, end_tagged, new_tag, tagged_processes


class Ledger:
    """One small file per tag. It is written before the program starts, and removed when all it started has ended.

    An entry names the process that made it. Several providers may share a ledger: the entries of a living process are
    left alone.
    """

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        with _writable(directory):
            directory.mkdir(parents=True, exist_ok=True, mode=0o700)

    def add(self, tag: ProcessTag, owner: Owner | None = None) -> None:
        """The owner is this process, unless another is named."""
        entry, part = self._directory / tag.token, self._directory / f".{tag.token}"
        with _writable(self._directory):
            file = os.open(part, os.O_CREAT | os.O_WRONLY | os.O_TRUNC, 0o600)
            with os.fdopen(file, "w", encoding="ascii") as written:
                written.write((owner or Owner.ourselves()).written)
            # Renamed when whole: a reader would take an unfinished entry for a dead owner's.
            part.rename(entry)

    def remove(self, tag: ProcessTag) -> None:
        with contextlib.suppress(FileNotFoundError):
            (self._directory / tag.token).unlink()

    def end_orphans(self) -> int:
        """End the processes whose owner has died; returns how many there were."""
        with _writable(self._directory):
            tags = [ProcessTag(entry.name) for entry in self._directory.iterdir() if not entry.name.startswith(".")]
        tags = [tag for tag in tags if not self._owner_lives(tag)]
        swept = end_tagged(tags)
        for tag in tags:
            # A process that could not be ended stays in the ledger for the next start.
            if swept.clean or not tagged_processes(tag):
                self.remove(tag)
        return swept.ended

    def _owner_lives(self, tag: ProcessTag) -> bool:
        try:
            owner = Owner.read((self._directory / tag.token).read_text(encoding="ascii"))
        except FileNotFoundError:
            # Its owner removed it just now, so there is nothing to end.
            return True
        except (OSError, ValueError):
            return False
        return owner.lives


class LedgerEntry:
    """A new tag, in the ledger (if there is one) until `remove`. `began` is its time by `time.monotonic`."""

    def __init__(self, ledger: Ledger | None) -> None:
        self.tag = new_tag()
        self.began = time.monotonic()
        self._ledger = ledger
        if ledger is not None:
            # Before the program starts: after a crash in between, an entry without processes does no harm.
            ledger.add(self.tag)

    def remove(self) -> None:
        if self._ledger is not None:
            self._ledger.remove(self.tag)

    async def end_processes(self) -> None:
        await asyncio.to_thread(end_tagged, [self.tag])


def open_ledger(state: Path | None) -> Ledger | None:
    """The ledger of a provider, after its orphans have been ended; None where the provider keeps no state. Blocks."""
    if state is None:
        return None
    ledger = Ledger(state / "ledger")
    ledger.end_orphans()
    return ledger


@contextlib.contextmanager
def _writable(directory: Path) -> Iterator[None]:
    """A program that cannot be recorded is not started."""
    try:
        yield
    except OSError as fault:
        words = f"The ledger {directory} cannot be written, so no program is started: {fault.strerror}."
        raise CannotStart(words, "Make it a directory that Clew may write to.") from fault
