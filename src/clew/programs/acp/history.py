"""What an agent plays back of a session that it has loaded: the prompts it holds, and whether anything follows them."""

import asyncio
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from clew.kernel import Attestation, Cursor, Directory, Evidence, NativeId, Sent, digest_of
from clew.ports.provider import Deadlines
from clew.programs.acp.agent import AcpAgent
from clew.programs.acp.connection import Connection
from clew.programs.acp.lookup import find
from clew.programs.acp.tool_call import text_of
from clew.programs.faults import TooSlow
from clew.programs.rpc import CallRefused, Message

_PROMPT = "user_message_chunk"
_KINDS = frozenset({_PROMPT, "agent_message_chunk", "agent_thought_chunk", "tool_call", "tool_call_update", "plan"})
_QUIET = 0.3
"""Seconds without any of it, after which it is over. An agent plays back without a pause."""
_NOTHING = 2.0
"""Seconds after which a session of which nothing was played back is empty."""
GAP = "\n\n"
"""Stands between the instructions and the prompt, so that the prompt is found again where both became one text."""


@dataclass(slots=True)
class Played:
    """One prompt of the history. `id` is what the agent calls it, where it says so; `followed` tells that it was acted
    on."""

    id: object
    parts: list[str] = field(default_factory=list)
    followed: bool = False

    def is_of(self, digest: str) -> bool:
        """Whether it is the prompt of that digest, with or without instructions before it."""
        text = "".join(self.parts)
        return any(digest_of(each) == digest for each in (text, *self.parts, *_after_gaps(text)))


class History:
    """Of one session. Agents that number their messages may split a prompt into chunks; of the others, each chunk
    counts as a prompt of its own. `late` is whether the agent may go on playing back after it has answered."""

    def __init__(self, session: NativeId, deadlines: Deadlines, late: bool) -> None:
        self.session = session
        self.prompts: list[Played] = []
        self._late, self._patience = late, deadlines.answer
        self._empty, self._within = True, False
        self._heard = time.monotonic()

    def overhear(self, said: Message) -> None:
        """Before anybody listens to the session itself."""
        update = said.get("update")
        if said.get("sessionId") == self.session and isinstance(update, Mapping):
            self.hear(update)

    def hear(self, update: Mapping[str, Any]) -> None:
        kind = update.get("sessionUpdate")
        if kind not in _KINDS:
            return
        self._heard, self._empty = time.monotonic(), False
        if kind == _PROMPT:
            self._take(update)
        elif self.prompts:
            self.prompts[-1].followed = True
        self._within = kind == _PROMPT

    async def over(self) -> None:
        """Wait for its end, after the agent has answered: what came after a prompt would be taken for the answer."""
        until = time.monotonic() + self._patience
        while self._late and (rest := self._heard + self._pause - time.monotonic()) > 0:
            if time.monotonic() > until:
                words = "The agent does not come to an end of playing back the session."
                raise TooSlow(words, "Nothing was sent; try again.")
            await asyncio.sleep(rest)

    def answered(self) -> None:
        """The agent says that it has loaded the session; from now on it is waited for."""
        self._heard = time.monotonic()

    @property
    def _pause(self) -> float:
        return _NOTHING if self._empty else _QUIET

    def _take(self, update: Mapping[str, Any]) -> None:
        id_ = update.get("messageId")
        if not (self._within and id_ is not None and self.prompts[-1].id == id_):
            self.prompts.append(Played(id_))
        self.prompts[-1].parts.append(text_of(update.get("content")))


def _after_gaps(text: str) -> Iterator[str]:
    at = text.find(GAP)
    while at >= 0:
        yield text[at + len(GAP) :]
        at = text.find(GAP, at + 1)


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
