"""Carrying a session: out of a home into one file, and into another home, whole or not at all."""

import contextlib
import re
from pathlib import Path, PurePosixPath

from clew.kernel import Cursor, Directory, NativeId
from clew.ports.provider import ArchiveFile
from clew.programs import locks as shared
from clew.programs.archive import pack, unpack
from clew.programs.faults import BadArchive, Refused
from clew.providers.claude import beside, diverging, holding
from clew.providers.claude.faults import Busy, NoSuchSession
from clew.providers.claude.holding import Hold
from clew.providers.claude.home import ID, Home, real
from clew.providers.claude.placing import Placing
from clew.providers.claude.store import find
from clew.providers.claude.transcript import binding, damage, lines_of, prompt_in, summary_in, summary_of
from clew.providers.claude.way import CURSOR_VERSION, must_be_there

PROVIDER = "claude"
FORMAT = "claude-jsonl-1"

_PATIENCE = 30.0
"""Seconds that one restore waits for another."""


def archive(
    home: Home, native_id: NativeId, directory: Directory, into: Path, since: Path | None = None
) -> ArchiveFile:
    """Its lines up to the last whole one. What lies beside is read first: a line may name it, and never the reverse."""
    stored = find(home, native_id, directory)
    if stored is None:
        raise NoSuchSession(f"Claude Code has no session {native_id} in {home.root}.", "There is nothing to archive.")
    files = beside.files_of(home, stored.path)
    whole, end, _ = stored.path.read_bytes().rpartition(b"\n")
    data = whole + end
    if (why := damage(data, native_id)) is not None:
        raise BadArchive(f"The transcript of {native_id} is damaged: {why}.", "Go on with it here, or begin afresh.")
    turns = _turns(data)
    packed = pack(into, PROVIDER, FORMAT, native_id, {f"{native_id}.jsonl": data, **files}, {"turns": turns}, since)
    return ArchiveFile(into, FORMAT, native_id, packed.digest, turns, packed.whole)


def restore(home: Home, archive_: Path, directory: Directory) -> Cursor:
    """All is checked before anything is written, and the transcript comes last: until then there is no session."""
    must_be_there(directory)
    contents, files = unpack(archive_, PROVIDER, frozenset({FORMAT}))
    native_id = contents.native_id
    data = _checked(archive_, native_id, files)
    target = home.project(directory) / f"{native_id}.jsonl"
    bound = summary_in(data, target.parent.name).is_of(real(directory))
    with contextlib.ExitStack() as held:
        held.callback(_alone(home).release)
        held.callback(_claimed(home, native_id).release)
        copies = home.copies(native_id)
        aside = [copy for copy in copies if not summary_of(copy).talks]
        for copy in copies:
            held.callback(_held(home, copy).release)
            if copy not in aside:
                more = diverging.goes_on(copy, data)
                files = diverging.beside(beside.all_of(home, copy), files, more)
        with Placing() as placing:
            for copy in aside:
                placing.move(copy, _free(copy))
            for path, each in beside.places(home, target.parent, native_id, files):
                placing.put(path, each)
            # Added at the end: what was there before stays the beginning of what is there now, byte by byte.
            placing.put(target, data if bound else data + binding(native_id, real(directory)))
            for copy in copies:
                if copy not in (target, *aside):
                    # The same session, as far as it had come, bound to the directory it had before.
                    placing.take_away(copy)
    return Cursor(CURSOR_VERSION, NativeId(native_id))


def _checked(archive_: Path, native_id: str, files: dict[str, bytes]) -> bytes:
    """The transcript, taken out of the files; those that are left belong beside it."""
    data = files.pop(f"{native_id}.jsonl", None)
    strange = [name for name in files if not beside.belongs(name, native_id)]
    broken = [name for name, thread in files.items() if not beside.is_whole(name, thread)]
    clashing = sorted(files.keys() & {str(above) for name in files for above in PurePosixPath(name).parents})
    if re.fullmatch(ID, native_id) is None:
        why: str | None = f"{native_id!r} is no id of a session"
    elif data is None:
        why = "it holds no transcript"
    elif strange:
        why = f"{strange[0]!r} does not belong to the session"
    elif broken:
        why = f"{broken[0]!r} is no thread"
    elif clashing:
        why = f"{clashing[0]!r} is both a file and a directory"
    else:
        why = damage(data, native_id)
    if data is None or why is not None:
        raise BadArchive(f"{archive_.name} is not a session whole: {why}.", "Nothing was changed; use another copy.")
    return data


def _alone(home: Home) -> Hold:
    """One restore at a time: two of one session would each go by what was there before the other."""
    home.projects.mkdir(parents=True, exist_ok=True, mode=0o700)
    try:
        return holding.lock(home.projects, _PATIENCE)
    except Busy as busy:
        raise Refused("Another session is being restored into this home.", "Try again when it is.") from busy


def _claimed(home: Home, native_id: str) -> shared.SessionLock:
    try:
        return holding.claim(home, native_id)
    except Busy as busy:
        raise _over(busy) from busy


def _held(home: Home, copy: Path) -> Hold:
    try:
        return holding.take(home, copy)
    except Busy as busy:
        raise _over(busy) from busy


def _over(busy: Busy) -> Refused:
    return Refused(f"It cannot be restored over: {busy.words}", "Close the session first.")


def _free(copy: Path) -> Path:
    """A name beside a damaged transcript under which the program does not look."""
    return next(free for number in range(1, 1000) if not (free := copy.with_suffix(f".jsonl.aside-{number}")).exists())


def _turns(data: bytes) -> int:
    return len({line["uuid"] for line in lines_of(data) if line is not None and prompt_in(line) is not None})
