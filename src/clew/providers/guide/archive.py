"""A session of the guide as an archive, and back."""

import json
import time
from dataclasses import replace
from pathlib import Path

from clew.kernel import Directory, NativeId
from clew.ports.provider import ArchiveFile
from clew.programs.archive import pack, unpack
from clew.programs.faults import BadArchive, Refused
from clew.providers.guide.memory import Busy, Damaged, Memory, Missing, Session, Turn, read, write, written

FORMAT = "guide-2"
_HEAD = "session.json"
# Apart, and one line for each, so that it only grows.
_TURNS = "turns.jsonl"


def carry_out(home: Path, native_id: NativeId, into: Path, since: Path | None = None) -> ArchiveFile:
    """The file is replaced as a whole by its agent, so what is read here is whole, too."""
    try:
        session = Memory(home).load(native_id)
    except Missing as fault:
        raise Refused(f"The guide has no session {native_id}.", "There is nothing to archive.") from fault
    except Damaged as fault:
        raise Refused(f"Session {native_id} cannot be read: {fault}.", "Use an earlier archive.") from fault
    packed = pack(into, "guide", FORMAT, native_id, _files(session), {}, since)
    return ArchiveFile(into, FORMAT, native_id, packed.digest, len(session.turns), packed.whole)


def carry_in(home: Path, archive: Path, directory: Directory) -> NativeId:
    """Put it in unless what is here has gone on by itself. Modes are not in it: every opening sets them anew."""
    contents, files = unpack(archive, "guide", frozenset({FORMAT}))
    try:
        session = _session(files)
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


def _files(session: Session) -> dict[str, bytes]:
    lines = "".join(json.dumps(written(turn)) + "\n" for turn in session.turns)
    return {_HEAD: write(replace(session, turns=[])), _TURNS: lines.encode()}


def _session(files: dict[str, bytes]) -> Session:
    try:
        turns = [json.loads(line) for line in files[_TURNS].splitlines()]
        return read(json.dumps({**json.loads(files[_HEAD]), "turns": turns}).encode())
    except (ValueError, TypeError, KeyError, RecursionError) as fault:
        raise Damaged(str(fault)) from fault


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
