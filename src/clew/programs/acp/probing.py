"""Asking an agent for a session without prompting it."""

from clew.kernel import Cursor, Directory, Probe, ProbeKind
from clew.programs.acp.agent import AcpAgent
from clew.programs.acp.connection import Connection
from clew.programs.acp.listing import find
from clew.programs.rpc import CallRefused

NOT_LISTED = "not-listed"


def signals(agent: AcpAgent) -> frozenset[str]:
    """By which an agent says that it has no such session."""
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
    """Not on the list: it is missing if the agent says so, and never found because it opens something."""
    if connection.abilities.resume or connection.abilities.load:
        tried = await _tried(connection, agent, cursor, directory)
        if tried.kind is not ProbeKind.FOUND_HERE:
            return tried
    return Probe(ProbeKind.UNREACHABLE, detail="it is not on the agent's list, and whether that holds all is not known")


async def _tried(connection: Connection, agent: AcpAgent, cursor: Cursor, directory: Directory) -> Probe:
    """An agent that cannot list is asked to open it, in a process that goes at once."""
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
