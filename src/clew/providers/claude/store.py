"""The sessions in a home, as their transcripts tell them."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from clew.kernel import Cursor, Directory, NativeId
from clew.ports.provider import FoundSession
from clew.providers.claude.home import ID, Home, real
from clew.providers.claude.transcript import Summary, summary_of


@dataclass(frozen=True, slots=True)
class Stored:
    """A session that is there. `here` when it belongs to the directory it was asked for in."""

    path: Path
    summary: Summary
    directory: Directory | None
    here: bool


def find(home: Home, native_id: NativeId, directory: Directory) -> Stored | None:
    """Of several copies the one of that directory, or else the one that was used last."""
    project = home.project(directory)
    copies = sorted(home.copies(native_id), key=lambda path: (path.parent == project, path.stat().st_mtime))
    if not copies:
        return None
    path = copies[-1]
    summary = summary_of(path)
    place = _place(summary)
    # Who copied it there by hand wants it there; one that does not say where it belongs can go on anywhere.
    copied = path.parent == project and not summary.bound
    here = copied or place is None or summary.is_of(real(directory))
    return Stored(path, summary, place, here)


def sessions(home: Home, version: int) -> Sequence[FoundSession]:
    found: dict[str, FoundSession] = {}
    for path in home.transcripts():
        if re.fullmatch(ID, path.stem) is None:
            continue
        try:
            updated, summary = path.stat().st_mtime, summary_of(path)
        except FileNotFoundError:
            continue
        before = found.get(path.stem)
        if not summary.talks or (before is not None and (before.updated_at or 0) >= updated):
            continue
        cursor = Cursor(version, NativeId(path.stem))
        found[path.stem] = FoundSession(cursor, _place(summary), summary.title, updated, summary.turns)
    return sorted(found.values(), key=lambda session: session.updated_at or 0.0, reverse=True)


def _place(summary: Summary) -> Directory | None:
    told = summary.directory
    return Directory(told, told) if told is not None and told.startswith("/") else None
