"""Archives of the guide's sessions."""

import json
import time
from dataclasses import replace
from pathlib import Path

from clew.kernel import Directory, NativeId
from clew.ports.provider import ArchiveFile
from clew.programs.archive import not_restorable, pack, unpack
from clew.programs.faults import Refused
from clew.providers.guide.memory import Busy, Damaged, Memory, Missing, Session, Turn, read, write, written

FORMAT = "guide-2"
_HEAD = "session.json"
# A file of its own with one line per turn: it only grows, so a later archive holds only what was added.
_TURNS = "turns.jsonl"


def write_archive(home: Path, native_id: NativeId, into: Path, since: Path | None = None) -> ArchiveFile:
    """The agent replaces the session's file atomically, so what is read here is complete."""
    try:
        session = Memory(home).load(native_id)
    except Missing as fault:
        raise Refused(f"The guide has no session {native_id}.", "There is nothing to archive.") from fault
    except Damaged as fault:
        raise Refused(f"Session {native_id} cannot be read: {fault}.", "Use an earlier archive.") from fault
    return pack(into, "guide", FORMAT, native_id, _files(session), {}, since, len(session.turns))


def restore_archive(home: Path, archive: Path, directory: Directory) -> NativeId:
    """Refused if the session here has turns that the archive lacks. An archive holds no mode: every opening sets it."""
    contents, files = unpack(archive, "guide", frozenset({FORMAT}))
    try:
        session = _session(files)
    except Damaged as fault:
        raise not_restorable(archive, f"it holds no session ({fault})") from fault
    if session.id != contents.native_id:
        raise not_restorable(archive, "it holds another session than its manifest names")
    memory = Memory(home)
    try:
        memory.lock(session.id)
    except Busy as fault:
        raise Refused(f"Session {session.id} is open.", "Close it first.") from fault
    try:
        _check_existing(memory, session.id, session.turns)
        session.directory = directory.real or str(Path(directory.path).resolve())
        memory.save(session)
    finally:
        memory.release(session.id)
    return NativeId(session.id)


def _files(session: Session) -> dict[str, bytes]:
    lines = "".join(json.dumps(written(turn)) + "\n" for turn in session.turns)
    return {_HEAD: write(replace(session, turns=[])), _TURNS: lines.encode()}


def _session(files: dict[str, bytes]) -> Session:
    try:
        turns = [json.loads(line) for line in files[_TURNS].splitlines()]
        return read(json.dumps({**json.loads(files[_HEAD]), "turns": turns}).encode())
    except (ValueError, TypeError, KeyError, RecursionError) as fault:
        raise Damaged(str(fault)) from fault


def _check_existing(memory: Memory, id_: str, turns: list[Turn]) -> None:
    """A session that is here must be the exact beginning of the archived one. A damaged one is moved aside."""
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
            f"Session {id_} has other turns here than in the archive, or more.", "Nothing was changed; fork it."
        )
