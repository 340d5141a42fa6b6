"""What a provider keeps on disk for the start after a crash: the tags of its processes, and temporary directories."""

import asyncio
import contextlib
import os
import shutil
import tempfile
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


@contextlib.contextmanager
def _writable(directory: Path) -> Iterator[None]:
    """A program that cannot be recorded is not started."""
    try:
        yield
    except OSError as fault:
        words = f"The ledger {directory} cannot be written, so no program is started: {fault.strerror}."
        raise CannotStart(words, "Make it a directory that Clew may write to.") from fault


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


class ProviderState:
    """The ledger and the temporary directories of one provider. Without a directory, no ledger is kept."""

    def __init__(self, directory: Path | None) -> None:
        self._directory = directory
        self.scratch = Scratch(directory / "scratch" if directory is not None else None)
        self._ledger: Ledger | None = None
        self._opening = asyncio.Lock()

    def open(self) -> Ledger | None:
        """The ledger, after the processes and directories that a crash has left are removed. Blocks."""
        if self._ledger is None and self._directory is not None:
            ledger = Ledger(self._directory / "ledger")
            ledger.end_orphans()
            self.scratch.remove_orphans()
            self._ledger = ledger
        return self._ledger

    async def ledger(self) -> Ledger | None:
        """The same. The first call opens it, in a thread."""
        async with self._opening:
            return self._ledger or await asyncio.to_thread(self.open)


def _owner_lives(name: str) -> bool:
    try:
        _, pid, started, _ = name.split("-", 3)
        return Owner(int(pid), int(started)).lives
    except ValueError:
        return False
