"""The threads in a home, read from its files: which there are, where, and on which files each history rests.

No program is started, and nothing is changed.
"""

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from clew.ports.provider import FoundSession
from clew.programs.checks import directory_at
from clew.programs.faults import NotAble, Refused
from clew.providers.codex.rollout import (
    CURSORS,
    Broken,
    Head,
    Rollout,
    head_of,
    place_in,
    rollout_at,
    title_in,
    turns_in,
    whole_lines,
)


class SessionArchived(Refused):
    """A person archived it in Codex."""

    code = "codex:archived"


_PLACES = ("sessions", "archived_sessions")


@dataclass(frozen=True, slots=True)
class Part:
    """One file of a lineage, up to the byte that the thread rests on."""

    rollout: Rollout
    data: bytes


def rollouts_of(root: Path, thread: str) -> list[Rollout]:
    """The files of one thread; first the one that it goes on in. Raises where a directory cannot be read."""
    found = [
        rollout
        for place in _PLACES
        if (root / place).exists()
        for where, _, names in os.walk(root / place, onerror=_raise)
        for name in names
        if thread in name and (rollout := rollout_at(Path(where, name))) is not None and rollout.thread == thread
    ]
    return sorted(found, key=lambda rollout: (rollout.segment, not rollout.is_archived), reverse=True)


def _raise(fault: OSError) -> None:
    raise fault


class Index:
    """The rollouts of a home at one moment."""

    def __init__(self, root: Path) -> None:
        self.root = root
        found = (path for place in _PLACES for path in (root / place).rglob("rollout-*.jsonl*"))
        self._segments: dict[str, Rollout] = {}
        self._threads: dict[str, list[Rollout]] = {}
        for path in sorted(found, reverse=True):
            rollout = rollout_at(path)
            # `sessions` comes first in this order, so a file in use takes precedence over an archived one.
            if rollout is not None and rollout.segment not in self._segments:
                self._segments[rollout.segment] = rollout
                self._threads.setdefault(rollout.thread, []).append(rollout)

    def segment(self, segment: str) -> Rollout | None:
        return self._segments.get(segment)

    def current(self, thread: str) -> Rollout | None:
        """The file that the thread goes on in: the latest segment, because segment ids ascend with time."""
        return max(self._threads.get(thread, ()), key=lambda rollout: rollout.segment, default=None)

    def lineage(self, rollout: Rollout) -> list[Part]:
        """The file and all it rests on, the oldest first. Raises if one of them is missing."""
        parts = [Part(rollout, whole_lines(_read(rollout)))]
        while (base := _head(parts[0]).base) is not None:
            beneath = self.segment(base.segment)
            if beneath is None or any(part.rollout == beneath for part in parts):
                raise Refused(
                    f"Session {rollout.thread} rests on {base.segment}, which is not in {self.root}.",
                    "Bring that file back; without it the history is not whole.",
                )
            parts.insert(0, Part(beneath, whole_lines(_read(beneath)[: base.end])))
        return parts

    def sessions(self) -> Sequence[FoundSession]:
        """Every thread, newest first, without those of sub-agents and archived ones."""
        found = [session for thread in self._threads for session in self._session(thread)]
        return sorted(found, key=lambda each: (each.updated_at or 0.0, each.cursor.native_id), reverse=True)

    def _session(self, thread: str) -> Iterator[FoundSession]:
        current = self.current(thread)
        if current is None or current.is_archived:
            return
        try:
            changed = current.path.stat().st_mtime
            parts = self.lineage(current)
            head = _head(parts[-1])
        except (OSError, Refused, NotAble):
            # The others are listed all the same.
            return
        if head.side:
            return
        place = place_in(parts[-1].data) or head.directory
        yield FoundSession(
            cursor=CURSORS.cursor(thread),
            directory=None if place is None else directory_at(place),
            title=next((title for part in parts if (title := title_in(part.data))), ""),
            updated_at=changed,
            turns=turns_of(parts),
        )


def turns_of(parts: Sequence[Part]) -> int:
    return sum(turns_in(part.data) for part in parts)


def _read(rollout: Rollout) -> bytes:
    if rollout.packed:
        raise NotAble(
            f"{rollout.path.name} is compressed, and Clew does not read that.", "Open the session in Codex once."
        )
    return rollout.path.read_bytes()


def _head(part: Part) -> Head:
    try:
        return head_of(part.data.partition(b"\n")[0])
    except Broken as fault:
        raise Refused(f"{part.rollout.path} is damaged: {fault}.", "Restore the session from its archive.") from fault
