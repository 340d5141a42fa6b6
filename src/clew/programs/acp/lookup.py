"""Finding a session at the agent: by its own list, or by opening it without a prompt."""

import datetime
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from typing import Any

from clew.kernel import Cursor, Directory, Instant, NativeId, Probe, ProbeKind
from clew.ports.provider import FoundSession
from clew.programs.acp.agent import AcpAgent
from clew.programs.acp.connection import Connection
from clew.programs.checks import directory_at
from clew.programs.cursor import VERSION
from clew.programs.faults import NotUnderstood
from clew.programs.rpc import CallRefused

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
        return FoundSession(Cursor(VERSION, self.id), self.directory, self.title, self.updated_at, self.turns)


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
    # Raised rather than cut: sessions on later pages would count as missing.
    raise NotUnderstood("The agent's list of sessions has no end.", "Update the agent.")


async def find(connection: Connection, id_: NativeId, directory: Directory) -> Listed | None:
    """In that directory first, where the list is short."""
    for where in (directory, None):
        async for each in listed(connection, where):
            if each.id == id_:
                return each
    return None


def _listed(entry: Mapping[str, Any]) -> Listed:
    meta = entry.get("_meta")
    turns = meta.get("turns") if isinstance(meta, Mapping) else None
    place = str(entry.get("cwd") or "")
    return Listed(
        NativeId(entry["sessionId"]),
        directory_at(place) if place.startswith("/") else None,
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


NOT_LISTED = "not-listed"


def signals(agent: AcpAgent) -> frozenset[str]:
    """By which the agent says that it has no such session."""
    codes = frozenset(str(code) for code in agent.missing)
    return codes | {NOT_LISTED} if agent.list_is_whole else codes


async def probe(connection: Connection, agent: AcpAgent, cursor: Cursor, directory: Directory) -> Probe:
    can = connection.abilities
    if can.list:
        known = await find(connection, cursor.native_id, directory)
        if known is not None:
            if known.directory is not None and known.directory != directory:
                return Probe(ProbeKind.FOUND_ELSEWHERE, known.directory, detail=f"it is in {known.directory}")
            return Probe(ProbeKind.FOUND_HERE, directory, detail="it is on the agent's list")
        if agent.list_is_whole:
            return Probe(ProbeKind.MISSING, signal=NOT_LISTED, detail="it is not on the agent's list")
        if not agent.list_is_short:
            return await _doubted(connection, agent, cursor, directory)
    if not (can.resume or can.load):
        return Probe(ProbeKind.UNREACHABLE, detail="the agent can neither list nor resume sessions")
    return await _tried(connection, agent, cursor, directory)


async def _doubted(connection: Connection, agent: AcpAgent, cursor: Cursor, directory: Directory) -> Probe:
    """It is not on the list. It is missing if the agent says so, but not found because the agent opens something."""
    if connection.abilities.resume or connection.abilities.load:
        tried = await _tried(connection, agent, cursor, directory)
        if tried.kind is not ProbeKind.FOUND_HERE:
            return tried
    return Probe(ProbeKind.UNREACHABLE, detail="it is not on the agent's list, which may not be complete")


async def _tried(connection: Connection, agent: AcpAgent, cursor: Cursor, directory: Directory) -> Probe:
    """Ask the agent to open it, in a process that ends at once."""
    method = "session/resume" if connection.abilities.resume else "session/load"
    cwd = directory.real or directory.path
    try:
        answer = await connection.call(method, {"sessionId": cursor.native_id, "cwd": cwd, "mcpServers": []})
    except CallRefused as refusal:
        words = connection.redactor.text(f"{refusal.words} [{refusal.code}]")
        if refusal.code in agent.missing:
            return Probe(ProbeKind.MISSING, signal=str(refusal.code), detail=words)
        return Probe(ProbeKind.UNREACHABLE, detail=words)
    if answer.get("sessionId", cursor.native_id) != cursor.native_id:
        return Probe(ProbeKind.UNREACHABLE, detail=f"the agent opened {answer['sessionId']} instead")
    return Probe(ProbeKind.FOUND_HERE, directory, detail="the agent opened it")
