"""The guide's memory: one JSON file per session, replaced atomically, and written by one process at a time."""

import contextlib
import fcntl
import json
import os
import re
import secrets
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

VARIABLE = "GUIDE_HOME"
HOMES = frozenset({VARIABLE, "XDG_DATA_HOME", "HOME"})
"""The variables that locate its home."""


def home_of(environment: Mapping[str, str] = os.environ) -> Path:
    named = environment.get(VARIABLE)
    if named:
        return Path(named)
    shared = environment.get("XDG_DATA_HOME") or str(Path(environment.get("HOME", "/")) / ".local" / "share")
    return Path(shared) / "clew" / "guide"


VERSION = 1
BEGUN, FINISHED = "begun", "end_turn"
"""The ending of a turn that has begun, and of one that finished."""
SHAPE = r"guide_[0-9a-f]{24}"


class Missing(Exception):
    """There is no such session."""


class Damaged(Exception):
    """There is one, and it cannot be read."""


class Busy(Exception):
    """Another process has it open."""


@dataclass
class Turn:
    """`ending` is empty before any work on the prompt, and `BEGUN` until the turn has ended; a crash leaves it so.

    `told` are the instructions. `ids` are the client's ids of the prompts: the first, and those added during the turn.
    """

    prompt: str
    told: str = ""
    reply: str = ""
    ending: str = ""
    ids: list[str] = field(default_factory=list)


@dataclass
class Session:
    id: str
    directory: str
    created: float
    updated: float
    turns: list[Turn] = field(default_factory=list)

    @property
    def title(self) -> str:
        return self.turns[0].prompt.partition("\n")[0][:60] if self.turns else ""


def written(turn: Turn) -> dict[str, Any]:
    """Without `ids` if there are none, so that a turn of an earlier version keeps its exact bytes."""
    return {name: value for name, value in asdict(turn).items() if value or name != "ids"}


def write(session: Session) -> bytes:
    stored = {"version": VERSION, **asdict(session), "turns": [written(turn) for turn in session.turns]}
    return json.dumps(stored, indent=1, ensure_ascii=False).encode(errors="replace")


def read(data: bytes) -> Session:
    """Raises `Damaged` unless the bytes are a session."""
    try:
        stored: dict[str, Any] = json.loads(data)
        if stored.pop("version") != VERSION or re.fullmatch(SHAPE, stored["id"]) is None:
            raise Damaged("it has another version, or no id of the guide")
        turns = [Turn(**turn) for turn in stored.pop("turns")]
        session = Session(**stored, turns=turns)
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as fault:
        raise Damaged(str(fault)) from fault
    texts = [session.directory, *(text for turn in turns for text in _texts(turn))]
    times = [session.created, session.updated]
    if not all(isinstance(each, str) for each in texts) or not all(type(each) in (int, float) for each in times):
        raise Damaged("a text or a time of it has another type")
    return session


def _texts(turn: Turn) -> list[object]:
    """All values that must be text; the file may hold anything."""
    ids: object = turn.ids
    return [turn.prompt, turn.told, turn.reply, turn.ending, *(ids if isinstance(ids, list) else [ids])]


class Memory:
    def __init__(self, home: Path) -> None:
        self._sessions = home / "sessions"
        self._locks: dict[str, int] = {}

    @property
    def is_there(self) -> bool:
        """Whether there has ever been a session."""
        return self._sessions.is_dir()

    def path(self, id_: str) -> Path:
        if re.fullmatch(SHAPE, id_) is None:
            raise Missing(id_)
        return self._sessions / f"{id_}.json"

    def create(self, directory: str, turns: list[Turn]) -> Session:
        now = time.time()
        session = Session(f"guide_{secrets.token_hex(12)}", directory, now, now, turns)
        self.lock(session.id)
        self.save(session)
        return session

    def load(self, id_: str) -> Session:
        try:
            session = read(self.path(id_).read_bytes())
        except FileNotFoundError as fault:
            raise Missing(id_) from fault
        if session.id != id_:
            raise Damaged(f"the file of {id_} holds {session.id}")
        return session

    def save(self, session: Session, lasting: bool = True) -> None:
        """Atomic, and visible to every process when this returns. `lasting` (fsync): it survives a power failure."""
        self._sessions.mkdir(parents=True, exist_ok=True, mode=0o700)
        path = self.path(session.id)
        beside = path.with_suffix(f".{os.getpid()}.part")
        with beside.open("wb") as file:
            file.write(write(session))
            file.flush()
            if lasting:
                os.fsync(file.fileno())
        beside.replace(path)

    def all(self) -> list[Session]:
        """Newest first. A session that cannot be read is skipped; a directory that cannot be read is an error."""
        try:
            paths = [path for path in self._sessions.iterdir() if path.suffix == ".json"]
        except FileNotFoundError:
            return []
        found = []
        for path in paths:
            with contextlib.suppress(Damaged, OSError):
                found.append(read(path.read_bytes()))
        return sorted(found, key=lambda session: session.updated, reverse=True)

    def delete(self, id_: str) -> None:
        self.path(id_).unlink(missing_ok=True)
        self.release(id_)
        self._lock(id_).unlink(missing_ok=True)

    def lock(self, id_: str) -> None:
        """Lock it (flock) until `release`, or until this process ends. Raises `Busy`."""
        if id_ in self._locks:
            return
        path = self._lock(id_)
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        file = os.open(path, os.O_CREAT | os.O_RDWR, 0o600)
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as fault:
            os.close(file)
            raise Busy(id_) from fault
        self._locks[id_] = file

    def release(self, id_: str) -> None:
        file = self._locks.pop(id_, None)
        if file is not None:
            os.close(file)

    def _lock(self, id_: str) -> Path:
        return self.path(id_).parent.parent / "locks" / id_
