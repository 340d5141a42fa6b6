"""Archive a thread with the files it rests on, and place an archive in another home: whole, or not at all.

The file of a fork or a rewind holds only additions to other files; so those are archived too, up to the byte that they
count for. A history that has diverged in the target home is never overwritten.
"""

import contextlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from clew.ports.provider import ArchiveFile
from clew.programs.archive import not_restorable, pack, unpack
from clew.programs.faults import BadArchive, SessionBusy, SessionDiverged, SessionMissing
from clew.programs.file_transaction import FileTransaction, free_name
from clew.providers.codex.locks import lock_threads
from clew.providers.codex.rollout import (
    Broken,
    Head,
    Rollout,
    check,
    holds_conversation,
    lost_prompt,
    rollout_at,
    whole_lines,
)
from clew.providers.codex.store import Index, Part, SessionArchived, turns_of

FORMAT = "codex-rollout-1"
_PROVIDER = "codex"


def archive_thread(root: Path, thread: str, into: Path, since: Path | None = None) -> ArchiveFile:
    """Pack a thread. A last line that is not written to its end is left out."""
    index = Index(root)
    current = index.current(thread)
    if current is None:
        raise SessionMissing(f"There is no session {thread} in {root}.", "Start a new session.")
    parts = index.lineage(current)
    try:
        heads = [check(part.data, part.rollout.thread) for part in parts]
    except Broken as fault:
        raise BadArchive(f"Session {thread} is not whole: {fault}.", "Keep the archive there was before.") from fault
    if lost_prompt(parts[-1].data):
        words = f"Session {thread} is not whole: a prompt was lost in {current.path}, as on a full disk."
        raise BadArchive(words, "Keep the archive there was before, or begin a new session.")
    files = {part.rollout.name: part.data for part in parts}
    turns = turns_of(parts)
    facts = {"turns": turns, "version": heads[-1].version}
    return pack(into, _PROVIDER, FORMAT, thread, files, facts, since, turns)


@dataclass(frozen=True, slots=True)
class Copy:
    """The files of a checked archive, the oldest first; the last is the thread's own."""

    thread: str
    parts: Sequence[Part]


def read_archive(path: Path) -> Copy:
    """Raises `BadArchive` for an archive that Codex would load with a part of its history missing."""
    manifest, files = unpack(path, _PROVIDER, frozenset({FORMAT}))
    parts = [Part(_rollout(name, path), data) for name, data in files.items()]
    try:
        heads = [check(part.data, part.rollout.thread) for part in parts]
    except Broken as fault:
        raise not_restorable(path, f"a history in it is not whole ({fault})") from fault
    _check_joins(parts, heads, path)
    if not parts or parts[-1].rollout.thread != manifest.native_id:
        raise not_restorable(path, f"it does not hold the session {manifest.native_id} that it names")
    return Copy(manifest.native_id, parts)


def _rollout(name: str, path: Path) -> Rollout:
    rollout = rollout_at(Path(PurePosixPath(name)))
    if rollout is None or rollout.packed or rollout.name != name:
        raise not_restorable(path, f"{name} is not a rollout of Codex")
    return rollout


def _check_joins(parts: Sequence[Part], heads: Sequence[Head], path: Path) -> None:
    """Each file must rest on the one before it, up to the byte at which that one ends in the archive."""
    beneath: Part | None = None
    for part, head in zip(parts, heads, strict=True):
        base = head.base
        if base is None or beneath is None:
            joined = base is None and beneath is None
        else:
            joined = base.segment == beneath.rollout.segment and base.end in (None, len(beneath.data))
        if not joined:
            raise not_restorable(path, f"what {part.rollout.path.name} rests on is not in it")
        beneath = part


# ---------------------------------------------------------------- restore


@dataclass(frozen=True, slots=True)
class _Put:
    """One file to write. A damaged file that is there is kept under another name."""

    thread: str
    target: Path
    data: bytes
    damaged: bool


class Placed:
    """Files of a copy that were put into a home. They can be removed again until a program has added to them."""

    def __init__(self, root: Path, own: str) -> None:
        self._root, self._own = root, own
        self._transaction = FileTransaction()
        self._puts: dict[Path, _Put] = {}

    @property
    def threads(self) -> list[str]:
        """The threads that a file was written for; the copy's own thread comes last."""
        beneath = (put.thread for put in self._puts.values())
        return [*dict.fromkeys(thread for thread in beneath if thread != self._own), self._own]

    def put(self, put: _Put) -> None:
        self._puts[put.target] = put
        self._transaction.put(put.target, put.data, free_name(put.target, "damaged") if put.damaged else None)

    def keep(self) -> None:
        self._transaction.commit()

    def take_back(self) -> None:
        # A thread that another program has opened by now is left to it.
        with contextlib.suppress(SessionBusy), lock_threads(self._root, self.threads):
            self.undo()

    def undo(self) -> None:
        """The caller must hold the locks of the threads."""
        self._transaction.roll_back(unless=self._has_gone_on)

    def _has_gone_on(self, path: Path) -> bool:
        put = self._puts.get(path)
        return put is not None and path.exists() and holds_conversation(path.read_bytes()[len(put.data) :])


def place(root: Path, copy: Copy) -> Placed:
    """Put the files that are missing or shorter. The threads are locked, so Codex loads none of them meanwhile."""
    expected = _plan(root, copy)
    threads = frozenset({copy.thread, *(put.thread for put in expected)})
    with lock_threads(root, threads):
        puts = _plan(root, copy)
        if not {put.thread for put in puts} <= threads:
            raise SessionBusy(f"The files of session {copy.thread} changed meanwhile.", "Try again.")
        placed = Placed(root, copy.thread)
        try:
            for put in puts:
                placed.put(put)
        except OSError:
            placed.undo()
            raise
    return placed


def _plan(root: Path, copy: Copy) -> list[_Put]:
    index = Index(root)
    _check_same_line(index, copy)
    return [put for part in copy.parts for put in _puts(index, part, own=part is copy.parts[-1])]


def _check_same_line(index: Index, copy: Copy) -> None:
    """A rewind goes on in a new file, and Codex remembers which: it would not read a file of another line."""
    here, own = index.current(copy.thread), copy.parts[-1].rollout
    if here is not None and here.segment != own.segment:
        raise _diverged(here, "was rewound on one side")
    if here is not None and here.is_archived:
        raise SessionArchived(f"Session {copy.thread} was archived here.", f"First: codex unarchive {copy.thread}")


def _puts(index: Index, part: Part, own: bool) -> Iterator[_Put]:
    here = index.segment(part.rollout.segment)
    if here is None:
        yield _Put(part.rollout.thread, index.root / part.rollout.name, part.data, damaged=False)
        return
    if here.packed:
        raise _diverged(here, "is compressed here")
    old = whole_lines(here.path.read_bytes())
    try:
        check(old, here.thread)
    except Broken:
        yield _Put(here.thread, here.path, part.data, damaged=True)
        return
    common = _common(old, part.data)
    beyond = holds_conversation(old[common:])
    if common == len(part.data):
        # All of the copy is here already. A file that others rest on may be longer here.
        if own and beyond:
            raise _diverged(here, "has more turns here")
    elif beyond:
        raise _diverged(here, "has other turns here")
    else:
        yield _Put(here.thread, here.path, part.data, damaged=False)


def _common(one: bytes, other: bytes) -> int:
    """The length of the common beginning, in whole lines."""
    low, high = 0, min(len(one), len(other))
    while low < high:
        middle = (low + high + 1) // 2
        if one[low:middle] == other[low:middle]:
            low = middle
        else:
            high = middle - 1
    return low if low in (len(one), len(other)) else one.rfind(b"\n", 0, low) + 1


def _diverged(here: Rollout, why: str) -> SessionDiverged:
    return SessionDiverged(
        f"Session {here.thread} {why}, so the archive is not put over it.", "Use the session that is here."
    )
