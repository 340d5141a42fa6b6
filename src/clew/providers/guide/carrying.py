"""A session of the guide as an archive, and back."""

import time
from pathlib import Path

from clew.kernel import Directory, NativeId
from clew.ports.provider import ArchiveFile
from clew.programs.archive import pack, unpack
from clew.programs.faults import BadArchive, Refused
from clew.providers.guide.memory import Busy, Damaged, Memory, Missing, Turn, read, write

FORMAT = "guide-1"
_FILE = "session.json"


def carry_out(home: Path, native_id: NativeId, into: Path) -> ArchiveFile:
    """The file is replaced as a whole by its agent, so what is read here is whole, too."""
    try:
        session = Memory(home).load(native_id)
    except Missing as fault:
        raise Refused(f"The guide has no session {native_id}.", "There is nothing to archive.") from fault
    except Damaged as fault:
        raise Refused(f"Session {native_id} cannot be read: {fault}.", "Use an earlier archive.") from fault
    digest = pack(into, "guide", FORMAT, native_id, {_FILE: write(session)}, {})
    return ArchiveFile(into, FORMAT, native_id, digest, len(session.turns))


def carry_in(home: Path, archive: Path, directory: Directory) -> NativeId:
    """Put it in unless what is here has gone on by itself. Modes are not in it: every opening sets them anew."""
    contents, files = unpack(archive, "guide", frozenset({FORMAT}))
    try:
        session = read(files.get(_FILE, b""))
    except Damaged as fault:
        raise BadArchive(
            f"{archive.name} holds no session: {fault}.", "Nothing was changed; use another copy."
        ) from fault
    if session.id != contents.native_id:
        raise BadArchive(
            f"{archive.name} holds another session than it says.", "Nothing was changed; use another copy."
        )
    memory = Memory(home)
    try:
        memory.hold(session.id)
    except Busy as fault:
        raise Refused(f"Session {session.id} is open.", "Close it first.") from fault
    try:
        _make_room(memory, session.id, session.turns)
        session.directory = directory.real or str(Path(directory.path).resolve())
        memory.save(session)
    finally:
        memory.release(session.id)
    return NativeId(session.id)


def _make_room(memory: Memory, id_: str, turns: list[Turn]) -> None:
    """What is here must be the beginning of what comes, word for word: the same prompt may have had two answers."""
    try:
        here = memory.load(id_).turns
    except Missing:
        return
    except Damaged:
        path = memory.path(id_)
        path.rename(path.with_suffix(f".damaged-{time.time_ns()}"))
        return
    if here != turns[: len(here)]:
        raise Refused(
            f"Session {id_} has gone on here by itself, or further than the archive.", "Nothing was changed; fork it."
        )
