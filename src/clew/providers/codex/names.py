"""Names: what an id of Codex looks like, and how its files are called by them."""

import re
from dataclasses import dataclass
from pathlib import Path

from clew.kernel import Cursor, NativeId
from clew.programs.checks import check_id

CURSOR_VERSION = 1
UUID = "[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"
ID_SHAPE = UUID
_FILE = re.compile(
    rf"rollout-(?P<day>\d{{4}}-\d{{2}}-\d{{2}})T\d{{2}}-\d{{2}}-\d{{2}}-(?P<thread>{UUID})(?:_(?P<segment>{UUID}))?"
    r"\.jsonl(?P<packed>\.zst)?"
)


def id_of(cursor: Cursor) -> NativeId:
    """The id, if it is one of ours: anything else would be taken by the program for a name, or for a path."""
    check_id(cursor, CURSOR_VERSION, ID_SHAPE, "Codex")
    return cursor.native_id


def cursor_of(id_: str) -> Cursor:
    return Cursor(CURSOR_VERSION, NativeId(id_))


@dataclass(frozen=True, slots=True)
class Rollout:
    """A file of a thread's history. The first has the thread's own id as its segment; a rewind begins another."""

    path: Path
    thread: str
    segment: str
    day: str
    packed: bool

    @property
    def name(self) -> str:
        """Where it belongs below a home."""
        return f"sessions/{self.day.replace('-', '/')}/{self.path.name}"

    @property
    def set_away(self) -> bool:
        """Whether its person archived it."""
        return "archived_sessions" in self.path.parts


def rollout_at(path: Path) -> Rollout | None:
    found = _FILE.fullmatch(path.name)
    if found is None:
        return None
    segment = found["segment"] or found["thread"]
    return Rollout(path, found["thread"], segment, found["day"], found["packed"] is not None)
