"""Archives: the files a thread rests on in one, and what is checked before any of it is believed.

A fork or a rewind holds only what was added; so what it rests on comes along, up to the byte that counts.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from clew.kernel import NativeId
from clew.ports.provider import ArchiveFile
from clew.programs.archive import pack, unpack
from clew.programs.faults import BadArchive
from clew.providers.codex.faults import SessionMissing
from clew.providers.codex.history import Broken, Head, check, lost_prompt
from clew.providers.codex.names import Rollout, rollout_at
from clew.providers.codex.store import Index, Part, turns_of

FORMAT = "codex-rollout-1"
_PROVIDER = "codex"


def archive(root: Path, thread: str, into: Path, since: Path | None = None) -> ArchiveFile:
    """The session is only read; a line that is being written at the moment is left out."""
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
    packed = pack(into, _PROVIDER, FORMAT, thread, files, {"turns": turns, "version": heads[-1].version}, since)
    return ArchiveFile(into, FORMAT, NativeId(thread), packed.digest, turns, packed.whole)


@dataclass(frozen=True, slots=True)
class Copy:
    """An archive that was checked: its files, the oldest first; the last is the thread's own."""

    thread: str
    parts: Sequence[Part]


def read(path: Path) -> Copy:
    """Raises `BadArchive` for whatever Codex would load with a part of its history missing."""
    contents, files = unpack(path, _PROVIDER, frozenset({FORMAT}))
    parts = [Part(_rollout(name, path), data) for name, data in files.items()]
    try:
        heads = [check(part.data, part.rollout.thread) for part in parts]
    except Broken as fault:
        raise _bad(path, f"a history in it is not whole ({fault})") from fault
    _must_join(parts, heads, path)
    if not parts or parts[-1].rollout.thread != contents.native_id:
        raise _bad(path, f"it does not hold the session {contents.native_id} that it names")
    return Copy(contents.native_id, parts)


def _rollout(name: str, path: Path) -> Rollout:
    rollout = rollout_at(Path(PurePosixPath(name)))
    if rollout is None or rollout.packed or rollout.name != name:
        raise _bad(path, f"{name} is no history of Codex")
    return rollout


def _must_join(parts: Sequence[Part], heads: Sequence[Head], path: Path) -> None:
    """Each rests on the one before it, up to the byte at which that one ends here."""
    beneath: Part | None = None
    for part, head in zip(parts, heads, strict=True):
        base = head.base
        if base is None and beneath is None:
            joined = True
        elif base is None or beneath is None:
            joined = False
        else:
            joined = base.segment == beneath.rollout.segment and base.end in (None, len(beneath.data))
        if not joined:
            raise _bad(path, f"what {part.rollout.path.name} rests on is not in it")
        beneath = part


def _bad(path: Path, why: str) -> BadArchive:
    return BadArchive(f"{path.name} cannot be restored: {why}.", "Nothing was changed; use another copy.")
