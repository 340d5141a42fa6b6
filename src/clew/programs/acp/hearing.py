"""Whether a session took a prompt, by the history that the agent plays back of it.

The protocol marks no end of a turn in a history: an answer may be the whole of it, or what came before a tool that was
never called. So a prompt that anything follows was cut off, for all that can be told, and never finished.

Nor does the protocol say when an agent writes a prompt down. Some ask their model first, and are killed before they
write: only of an agent that is known to write first (`keeps_first`) does a history without the prompt say that it was
never taken.
"""

from collections.abc import Sequence

from clew.kernel import Attestation, Cursor, Directory, Evidence, Sent
from clew.ports.provider import Deadlines
from clew.programs.acp.agent import AcpAgent
from clew.programs.acp.connection import Connection
from clew.programs.acp.history import History, Played
from clew.programs.acp.listing import find
from clew.programs.rpc import CallRefused


async def heard(
    connection: Connection, agent: AcpAgent, cursor: Cursor, directory: Directory, sent: Sent, deadlines: Deadlines
) -> Attestation:
    """The session is loaded in a process that goes at once, and told nothing."""
    can, id_ = connection.abilities, cursor.native_id
    if not can.load:
        return _unable("The agent cannot play back what a session holds.")
    if can.list and agent.list_is_whole and await find(connection, id_, directory) is None:
        return _not_held(agent, f"Session {id_} is not on the agent's list")
    history = History(id_, deadlines, agent.plays_late)
    connection.overhear(history)
    told = {"sessionId": id_, "cwd": directory.real or directory.path, "mcpServers": []}
    try:
        answer = await connection.call("session/load", told, deadlines.start)
    except CallRefused as refusal:
        words = connection.redactor.text(f"{refusal.words} [{refusal.code}]")
        if refusal.code in agent.missing:
            return _not_held(agent, f"The agent has no session {id_} ({words})")
        return Attestation(Evidence.UNKNOWN, f"The agent did not load session {id_}: {words}")
    if answer.get("sessionId", id_) != id_:
        return _unable(f"Session {id_} was asked for, and the agent opened {answer['sessionId']}.")
    history.answered()
    await history.over()
    return told_by(history.prompts, agent, sent)


def told_by(prompts: Sequence[Played], agent: AcpAgent, sent: Sent) -> Attestation:
    """By position and text. Without a position only the last prompt can be the one: the same words may have been said
    before."""
    if sent.turns is not None and len(prompts) < sent.turns:
        words = f"The session had {sent.turns} prompts before this one, and the agent plays back {len(prompts)}."
        return _unable(words)
    new = list(prompts[sent.turns :]) if sent.turns is not None else list(prompts[-1:])
    found = next((each for each in new if each.is_of(sent.digest)), None)
    if found is not None and found.followed:
        words = "The agent's history holds the prompt and what it did about it; whether it came to an end is not told."
        return Attestation(Evidence.CUT_OFF, words)
    if found is not None:
        return Attestation(Evidence.TAKEN, "The agent's history holds the prompt, and nothing follows it.")
    if new and (sent.turns is not None or any(each.is_of(sent.digest) for each in prompts)):
        return _unable("The agent's history holds another prompt where this one would be.")
    return _not_held(agent, "The agent's history does not hold the prompt")


def _not_held(agent: AcpAgent, words: str) -> Attestation:
    if agent.keeps_first:
        return Attestation(Evidence.UNSENT, f"{words}.")
    return _unable(f"{words}, but it is not known that {agent.name} writes a prompt down before it acts on it.")


def _unable(words: str) -> Attestation:
    return Attestation(Evidence.UNKNOWN, words, able=False)
