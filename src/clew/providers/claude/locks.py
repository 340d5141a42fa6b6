"""Who has a session open.

Claude Code locks nothing, so Clew locks the transcript with flock(2); the lock ends with its process. In addition the
session's id is claimed in the home's lock directory, because another provider of Clew may open the session with
another program. A `claude` that Clew did not start is found by the note that every running one keeps in the home.
"""

import fcntl
import os
import time
from collections.abc import Collection, Iterator
from pathlib import Path

import orjson

from clew.programs.faults import SessionBusy
from clew.programs.locks import FileLock, SessionLock, is_locked, lock_session, open_locked
from clew.programs.process_tag import Owner
from clew.providers.claude.home import Home

_OTHER = "another program of Clew"
_PATIENCE = 0.3
"""Seconds. A process that only checks whether the session is locked has the lock for an instant."""


def lock_unused(home: Home, transcript: Path) -> FileLock:
    """Lock a session that no program has open; raises `SessionBusy` with the holder's name. Blocks for a moment."""
    lock = lock_transcript(transcript)
    if (by := running_in(home, transcript.stem)) is not None:
        lock.release()
        raise _busy(transcript.stem, by)
    return lock


def claim_id(home: Home, native_id: str) -> SessionLock:
    """Keep every other provider of Clew from opening the session, whichever program it uses."""
    try:
        return lock_session(home.locks, native_id)
    except SessionBusy as fault:
        raise _busy(native_id, _OTHER) from fault


def lock_transcript(transcript: Path, patience: float = _PATIENCE) -> FileLock:
    """Lock the file against other processes of Clew. Blocks for at most `patience` seconds."""
    deadline = time.monotonic() + patience
    while (file := open_locked(transcript, fcntl.LOCK_EX)) is None:
        if time.monotonic() > deadline:
            raise _busy(transcript.stem, "another program")
        time.sleep(0.02)
    return FileLock(file)


def holder(home: Home, transcript: Path) -> str | None:
    """The program that has the session open, in words; None when no program does."""
    file = open_locked(transcript, fcntl.LOCK_SH)
    if file is not None:
        os.close(file)
    by = running_in(home, transcript.stem) or ("another program" if file is None else None)
    return by or (_OTHER if is_locked(home.locks, transcript.stem) else None)


def running_in(home: Home, native_id: str) -> str | None:
    """The `claude` process that has this session open, by its own note."""
    return next((f"claude, process {note['pid']}" for note in _notes(home, native_id)), None)


def driven_in(home: Home, native_id: str, but: Collection[int]) -> str | None:
    """The same, without a `claude` at a person's terminal and without the processes `but`."""
    notes = (note for note in _notes(home, native_id) if note.get("entrypoint") != "cli" and note["pid"] not in but)
    return next((f"claude, process {note['pid']}" for note in notes), None)


def is_at_terminal(home: Home, native_id: str) -> bool:
    """Whether a `claude` at a person's terminal has this session open."""
    return any(note.get("entrypoint") == "cli" for note in _notes(home, native_id))


def _notes(home: Home, native_id: str) -> Iterator[dict[str, object]]:
    notes = map(read_note, sorted(home.root.glob("sessions/*.json")))
    return (note for note in notes if note.get("sessionId") == native_id)


def read_note(path: Path) -> dict[str, object]:
    """The note of a running `claude`; empty when there is none, or its process has ended."""
    try:
        note = orjson.loads(path.read_bytes())
        # A killed process leaves its note behind, and its pid may be given to another.
        owner = Owner.read(f"{note['pid']} {note.get('procStart', 0)}")
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return {}
    return note if owner.lives else {}


def _busy(native_id: str, holder: str) -> SessionBusy:
    return SessionBusy(f"Session {native_id} is open in {holder}.", "Close it there, or wait until it is closed.")
