"""Archive a session into one file, and restore it into another home: whole, or not at all.

A session that has more turns in the target home is never overwritten.
"""

import contextlib
import re
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path, PurePosixPath
from typing import TypeVar

from clew.kernel import Cursor, Directory, NativeId
from clew.ports.provider import ArchiveFile
from clew.programs.archive import not_restorable, pack, unpack
from clew.programs.checks import check_directory
from clew.programs.faults import BadArchive, Refused, SessionBusy, SessionMissing
from clew.programs.file_transaction import FileTransaction, free_name
from clew.programs.locks import FileLock
from clew.providers.claude import locks, side_files
from clew.providers.claude.home import CURSORS, Home, real
from clew.providers.claude.transcript import binding, damage, find, lines_of, prompt_in, summary_in, summary_of

PROVIDER = "claude"
FORMAT = "claude-jsonl-1"

T = TypeVar("T")

_PATIENCE = 30.0
"""Seconds that one restore waits for another."""


def archive_session(
    home: Home, native_id: NativeId, directory: Directory, into: Path, since: Path | None = None
) -> ArchiveFile:
    """Pack the transcript up to its last whole line.

    Side files are read first: a line of the transcript may name one, and never the reverse.
    """
    stored = find(home, native_id, directory)
    if stored is None:
        raise SessionMissing(f"Claude Code has no session {native_id} in {home.root}.", "There is nothing to archive.")
    files = side_files.archivable_files(home, stored.path)
    whole, end, _ = stored.path.read_bytes().rpartition(b"\n")
    data = whole + end
    if (why := damage(data, native_id)) is not None:
        raise BadArchive(f"The transcript of {native_id} is damaged: {why}.", "Use it here, or start a new session.")
    turns = _turns(data)
    files[f"{native_id}.jsonl"] = data
    return pack(into, PROVIDER, FORMAT, native_id, files, {"turns": turns}, since, turns)


def restore_session(home: Home, archive: Path, directory: Directory) -> Cursor:
    """Check everything before anything is written. The transcript is written last: without it there is no session."""
    check_directory(Path(directory.path))
    manifest, files = unpack(archive, PROVIDER, frozenset({FORMAT}))
    native_id = manifest.native_id
    data = _transcript_in(archive, native_id, files)
    target = home.project(directory) / f"{native_id}.jsonl"
    is_bound = summary_in(data, target.parent.name).is_of(real(directory))
    with contextlib.ExitStack() as held:
        held.callback(_lock_home(home).release)
        held.callback(_or_refuse(partial(locks.claim_id, home, native_id)).release)
        copies = home.copies(native_id)
        damaged = [copy for copy in copies if not summary_of(copy).talks]
        for copy in copies:
            held.callback(_or_refuse(partial(locks.lock_unused, home, copy)).release)
            if copy not in damaged:
                more = _archive_says_more(copy, data)
                files = _merged(side_files.all_files(home, copy), files, more)
        with FileTransaction() as transaction:
            for copy in damaged:
                # Claude Code does not look under the new name.
                transaction.move(copy, free_name(copy, "aside"))
            for path, each in side_files.targets(home, target.parent, native_id, files):
                transaction.put(path, each)
            # Appended: the bytes of the archive stay the beginning of the file.
            transaction.put(target, data if is_bound else data + binding(native_id, real(directory)))
            for copy in copies:
                if copy not in (target, *damaged):
                    # An earlier state of this session, bound to the directory that it had before.
                    transaction.remove(copy)
    return CURSORS.cursor(native_id)


def _transcript_in(archive: Path, native_id: str, files: dict[str, bytes]) -> bytes:
    """Take the transcript out of `files`, and check that the rest are its side files."""
    data = files.pop(f"{native_id}.jsonl", None)
    strange = [name for name in files if not side_files.belongs(name, native_id)]
    broken = [name for name, thread in files.items() if not side_files.is_whole(name, thread)]
    clashing = sorted(files.keys() & {str(above) for name in files for above in PurePosixPath(name).parents})
    if re.fullmatch(CURSORS.shape, native_id) is None:
        why: str | None = f"{native_id!r} is not a session id"
    elif data is None:
        why = "it holds no transcript"
    elif strange:
        why = f"{strange[0]!r} does not belong to the session"
    elif broken:
        why = f"{broken[0]!r} is not a whole side thread"
    elif clashing:
        why = f"{clashing[0]!r} is both a file and a directory"
    else:
        why = damage(data, native_id)
    if data is None or why is not None:
        raise not_restorable(archive, why or "it holds no transcript")
    return data


def _lock_home(home: Home) -> FileLock:
    """One restore at a time: two of the same session would each decide by the state before the other."""
    home.projects.mkdir(parents=True, exist_ok=True, mode=0o700)
    try:
        return locks.lock_transcript(home.projects, _PATIENCE)
    except SessionBusy as busy:
        raise Refused("Another session is being restored into this home.", "Try again when it is done.") from busy


def _or_refuse(lock: Callable[[], T]) -> T:
    try:
        return lock()
    except SessionBusy as busy:
        raise Refused(f"The session cannot be restored over: {busy.words}", "Close the session first.") from busy


def _turns(data: bytes) -> int:
    return len({line["uuid"] for line in lines_of(data) if line is not None and prompt_in(line) is not None})


# ---------------------------------------------------------------- a session that is there already


def _archive_says_more(copy: Path, data: bytes) -> bool:
    """Whether the archive goes on beyond the transcript that is there.

    The archive must have all of that transcript, except notes that the program writes when it ends.
    """
    there, archived = copy.read_bytes().splitlines(keepends=True), data.splitlines(keepends=True)
    pairs = zip(there, archived, strict=False)
    shared = next((at for at, (one, two) in enumerate(pairs) if one != two), min(len(there), len(archived)))
    if _has_messages(there[shared:]):
        raise Refused(
            f"Session {copy.stem} has more messages in {copy.parent} than the archive.",
            "Use the session that is here, or move it away first.",
        )
    return _has_messages(archived[shared:])


def _has_messages(lines: list[bytes]) -> bool:
    return any(line is not None and "uuid" in line for line in lines_of(b"".join(lines)))


def _merged(there: Mapping[str, bytes], archived: Mapping[str, bytes], more: bool) -> dict[str, bytes]:
    """The side files to restore. Of a side thread, the longer version.

    Files that are rewritten, such as the list of tasks, have no order: the archive's count if it says `more`.
    """
    return {name: _longer(name, there.get(name), data, more) for name, data in archived.items()}


def _longer(name: str, there: bytes | None, archived: bytes, more: bool) -> bytes:
    if there is None or there == archived:
        return archived
    if not side_files.is_side_thread(name):
        if more:
            return archived
        raise _differs(name)
    # A last line without its newline was never written to its end.
    whole = there[: there.rfind(b"\n") + 1]
    if archived.startswith(whole):
        return archived
    if whole.startswith(archived):
        return there
    raise _differs(name)


def _differs(name: str) -> Refused:
    words = f"{name} of the session has changed here; the archive has another version."
    return Refused(words, "Use the session that is here, or move it away first.")
