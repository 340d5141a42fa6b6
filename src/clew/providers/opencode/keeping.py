"""What OpenCode's database holds of one prompt. It is only read, and whether or not a server is running."""

import sqlite3
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

import orjson

from clew.providers.opencode.http import Json

_PATIENCE = 0.5
"""Seconds for a lock to be released. Who writes does not keep out who reads, except for a moment."""

_FROM_IT_ON = """
    SELECT id, data FROM message
    WHERE session_id = :session
        AND (time_created, id) >= (SELECT time_created, id FROM message WHERE id = :message AND session_id = :session)
    ORDER BY time_created, id
"""
_REVERTED = """
    SELECT 1 FROM message AS first, message AS own
    WHERE first.id = :first AND own.id = :message AND (first.time_created, first.id) <= (own.time_created, own.id)
"""
_REMOVED = """
    SELECT 1 FROM event
    WHERE aggregate_id = :session AND type LIKE 'message.removed%' AND json_extract(data, '$.messageID') = :message
"""


@dataclass(frozen=True, slots=True)
class Message:
    id: str
    info: Json
    parts: tuple[Json, ...]

    @property
    def is_prompt(self) -> bool:
        """Told from outside; not what OpenCode tells itself, to go on or to make a history shorter."""
        asked = (part for part in self.parts if part.get("type") == "text" and not part.get("synthetic"))
        return self.info.get("role") == "user" and any(asked)


@dataclass(frozen=True, slots=True)
class Kept:
    """`messages` are the prompt's own and all after it; none when the session does not hold it.

    `undone` says that the session did hold it, and that somebody has taken it back.
    """

    directory: str
    messages: tuple[Message, ...]
    undone: bool

    @property
    def holds_it(self) -> bool:
        """With its text: OpenCode writes that after the message, and leaves out a message that has none."""
        return bool(self.messages) and self.messages[0].is_prompt


def read(store: Path, session: str, message: str) -> Kept | None:
    """None when there is no such session. Raises `sqlite3.Error` or `ValueError` when it cannot be read."""
    with closing(sqlite3.connect(f"file:{quote(str(store))}?mode=ro", uri=True, timeout=_PATIENCE)) as database:
        database.isolation_level = None
        # One moment for all that is read.
        database.execute("BEGIN")
        about = {"session": session, "message": message}
        row = database.execute("SELECT directory, revert FROM session WHERE id = :session", about).fetchone()
        if row is None:
            return None
        rows = database.execute(_FROM_IT_ON, about).fetchall()
        messages = tuple(Message(id_, _object(data), _parts(database, id_)) for id_, data in rows)
        undone = _is_reverted(database, row[1], about) if rows else _is_removed(database, about)
        return Kept(str(row[0]), messages, undone)


def _parts(database: sqlite3.Connection, message: str) -> tuple[Json, ...]:
    rows = database.execute("SELECT data FROM part WHERE message_id = ? ORDER BY id", (message,))
    return tuple(_object(data) for (data,) in rows)


def _is_removed(database: sqlite3.Connection, about: dict[str, str]) -> bool:
    return database.execute(_REMOVED, about).fetchone() is not None


def _is_reverted(database: sqlite3.Connection, revert: str | None, about: dict[str, str]) -> bool:
    """Whether it goes with the next prompt: what was undone is removed then, with all that came after."""
    if revert is None:
        return False
    first = {**about, "first": str(_object(revert).get("messageID"))}
    return database.execute(_REVERTED, first).fetchone() is not None


def _object(data: Any) -> Json:
    value = orjson.loads(data)
    if not isinstance(value, dict):
        raise ValueError("what should be an object is none")
    return value
