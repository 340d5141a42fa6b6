"""Who has a session: the program itself locks nothing, so its transcript is locked by whoever of us has it open.

The lock is the system's own on the file that is there anyway, and goes with its holder. Beside it the session's id is
claimed where all of Clew's providers of this home do so, for another may open it by another program. Other people's
`claude` is found by the note that every running one leaves in the home.
"""

import fcntl
import os
import time
from collections.abc import Collection, Iterator
from pathlib import Path

import orjson

from clew.programs import locks as shared
from clew.programs.faults import SessionBusy
from clew.programs.process_tag import Owner
from clew.providers.claude.faults import Busy
from clew.providers.claude.home import Home

_OTHER = "another program of Clew"
_PATIENCE = 0.3
"""Seconds. Who only looks whether a session is held has the lock for an instant."""


class Hold:
    """A session that is ours until `release`."""

    def __init__(self, file: int) -> None:
        self._file: int | None = file

    def release(self) -> None:
        file, self._file = self._file, None
        if file is not None:
            os.close(file)


def take(home: Home, transcript: Path) -> Hold:
    """Hold a session that nobody has, or say who does. Blocks for a moment."""
    hold = lock(transcript)
    if (holder := running(home, transcript.stem)) is not None:
        hold.release()
        raise _busy(transcript, holder)
    return hold


def claim(home: Home, native_id: str) -> shared.SessionLock:
    """Hold an id against every other opening by Clew, by whichever program."""
    try:
        return shared.lock_session(home.locks, native_id)
    except SessionBusy as fault:
        words = f"Session {native_id} is open in {_OTHER}."
        raise Busy(words, "Close it there, or wait until it is.") from fault


def lock(transcript: Path, patience: float = _PATIENCE) -> Hold:
    """Hold a session against all others of us. Blocks for a moment."""
    deadline = time.monotonic() + patience
    while (hold := _locked(transcript, fcntl.LOCK_EX)) is None:
        if time.monotonic() > deadline:
            raise _busy(transcript, "another program")
        time.sleep(0.02)
    return hold


def holder(home: Home, transcript: Path) -> str | None:
    """Who has a session, and None when nobody does."""
    hold = _locked(transcript, fcntl.LOCK_SH)
    if hold is not None:
        hold.release()
    by = running(home, transcript.stem) or ("another program" if hold is None else None)
    return by or (_OTHER if shared.is_locked(home.locks, transcript.stem) else None)


def running(home: Home, native_id: str) -> str | None:
    """The `claude` that runs with this session, by its own note."""
    return next((f"claude, process {note['pid']}" for note in _notes(home, native_id)), None)


def driven(home: Home, native_id: str, but: Collection[int]) -> str | None:
    """The same of one that a program started, apart from those processes; one at a person's terminal is none."""
    notes = (note for note in _notes(home, native_id) if note.get("entrypoint") != "cli" and note["pid"] not in but)
    return next((f"claude, process {note['pid']}" for note in notes), None)


def _notes(home: Home, native_id: str) -> Iterator[dict[str, object]]:
    notes = map(note_in, sorted(home.root.glob("sessions/*.json")))
    return (note for note in notes if note.get("sessionId") == native_id)


def note_in(path: Path) -> dict[str, object]:
    """What a `claude` that runs says of itself; empty while it says nothing."""
    try:
        note = orjson.loads(path.read_bytes())
        # The note of a killed one stays behind, and its number passes to others.
        owner = Owner.read(f"{note['pid']} {note.get('procStart', 0)}")
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return {}
    return note if owner.lives else {}


def _busy(transcript: Path, holder: str) -> Busy:
    return Busy(f"Session {transcript.stem} is open in {holder}.", "Close it there, or wait until it is.")


def _locked(path: Path, how: int) -> Hold | None:
    """None when somebody else has it."""
    while True:
        file = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        try:
            fcntl.flock(file, how | fcntl.LOCK_NB)
            # A restore puts a new file in its place; a lock on the old one holds nothing.
            same = os.path.samestat(os.fstat(file), path.stat())
        except BlockingIOError:
            os.close(file)
            return None
        except OSError:
            os.close(file)
            raise
        if same:
            return Hold(file)
        os.close(file)
