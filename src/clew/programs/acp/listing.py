"""The agent's own list of its sessions."""

import datetime
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from clew.kernel import Cursor, Directory, Instant, NativeId
from clew.ports.provider import FoundSession
from clew.programs.acp.connection import Connection
from clew.programs.faults import NotUnderstood

CURSOR_VERSION = 1
_PAGES = 1_000


@dataclass(frozen=True, slots=True)
class Listed:
    id: NativeId
    directory: Directory | None
    title: str
    updated_at: Instant | None
    turns: int | None

    @property
    def found(self) -> FoundSession:
        return FoundSession(Cursor(CURSOR_VERSION, self.id), self.directory, self.title, self.updated_at, self.turns)


async def listed(connection: Connection, directory: Directory | None = None) -> AsyncIterator[Listed]:
    """Every session, or those of a directory, page by page."""
    where = {} if directory is None else {"cwd": directory.real or directory.path}
    page: dict[str, str] = {}
    for _ in range(_PAGES):
        answer = await connection.must("session/list", {**where, **page})
        for entry in answer.get("sessions") or ():
            if isinstance(entry, Mapping) and isinstance(entry.get("sessionId"), str):
                yield _listed(entry)
        following = answer.get("nextCursor")
        if not isinstance(following, str) or not following:
            return
        if page == {"cursor": following}:
            break
        page = {"cursor": following}
    # Who took what was read for all would call the rest missing.
    raise NotUnderstood("The agent's list of sessions has no end.", "Update the agent.")


async def find(connection: Connection, id_: NativeId, directory: Directory) -> Listed | None:
    """Looked for in that directory first, where the list is short."""
    for where in (directory, None):
        async for each in listed(connection, where):
            if each.id == id_:
                return each
    return None


def on_disk(path: str) -> Directory | None:
    """A directory as an agent names it, with its links resolved."""
    return Directory(path, str(Path(path).resolve())) if path.startswith("/") else None


def _listed(entry: Mapping[str, Any]) -> Listed:
    meta = entry.get("_meta")
    turns = meta.get("turns") if isinstance(meta, Mapping) else None
    return Listed(
        NativeId(entry["sessionId"]),
        on_disk(str(entry.get("cwd") or "")),
        str(entry.get("title") or ""),
        _instant(entry.get("updatedAt")),
        turns if isinstance(turns, int) else None,
    )


def _instant(text: object) -> Instant | None:
    try:
        when = datetime.datetime.fromisoformat(str(text))
    except ValueError:
        return None
    return when.timestamp() if when.tzinfo is not None else when.replace(tzinfo=datetime.UTC).timestamp()
