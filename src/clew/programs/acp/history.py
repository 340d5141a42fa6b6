"""The history that an agent plays back of a loaded session, and whether it holds a prompt.

The protocol marks no end of a turn in a history: an answer may be complete, or may precede a tool that was never
called. So a prompt with anything after it counts as cut off, never as finished.

Nor does the protocol say when an agent stores a prompt. Some ask their model first, and may be killed before they
write. So only for an agent that is known to write first (`keeps_first`) does a history without the prompt prove that
it was never taken.
"""

import asyncio
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from clew.kernel import Attestation, Cursor, Directory, Evidence, NativeId, Sent, digest_of
from clew.ports.provider import Deadlines
from clew.programs.acp.agent import AcpAgent
from clew.programs.acp.connection import Connection
from clew.programs.acp.events import text_of
from clew.programs.acp.lookup import find
from clew.programs.faults import TooSlow
from clew.programs.rpc import CallRefused, Message

_PROMPT = "user_message_chunk"
_KINDS = frozenset({_PROMPT, "agent_message_chunk", "agent_thought_chunk", "tool_call", "tool_call_update", "plan"})
_QUIET = 0.3
"""Seconds of silence after which the history is over. An agent plays it back without a pause."""
_NOTHING = 2.0
"""Seconds after which a session counts as empty if nothing was played back."""
GAP = "\n\n"
"""Separates instructions and prompt in one text, so that the prompt can be found again."""


@dataclass(slots=True)
class Played:
    """One prompt of the history. `id` is the agent's own, if it has one. `followed`: the agent acted on it."""

    id: object
    parts: list[str] = field(default_factory=list)
    followed: bool = False

    def is_of(self, digest: str) -> bool:
        """Whether it is the prompt of that digest, with or without instructions before it."""
        text = "".join(self.parts)
        return any(digest_of(each) == digest for each in (text, *self.parts, *_after_gaps(text)))


class History:
    """The history of one session. `late`: the agent may go on to play back after it has answered.

    An agent that gives its messages ids may split a prompt into chunks; otherwise each chunk counts as a prompt.
    """

    def __init__(self, session: NativeId, deadlines: Deadlines, late: bool) -> None:
        self.session = session
        self.prompts: list[Played] = []
        self._late, self._patience = late, deadlines.answer
        self._empty, self._within = True, False
        self._heard = time.monotonic()

    def record(self, said: Message) -> None:
        update = said.get("update")
        if said.get("sessionId") == self.session and isinstance(update, Mapping):
            self.add(update)

    def add(self, update: Mapping[str, Any]) -> None:
        kind = update.get("sessionUpdate")
        if kind not in _KINDS:
            return
        self._heard, self._empty = time.monotonic(), False
        if kind == _PROMPT:
            self._add_prompt(update)
        elif self.prompts:
            self.prompts[-1].followed = True
        self._within = kind == _PROMPT

    async def over(self) -> None:
        """Wait until it is complete. What is played back after the next prompt would be taken for the answer to it."""
        until = time.monotonic() + self._patience
        while self._late and (rest := self._heard + self._pause - time.monotonic()) > 0:
            if time.monotonic() > until:
                words = "The agent did not finish playing back the session."
                raise TooSlow(words, "Nothing was sent; try again.")
            await asyncio.sleep(rest)

    def answered(self) -> None:
        """The agent has answered that it has loaded the session. Silence counts from now on."""
        self._heard = time.monotonic()

    @property
    def _pause(self) -> float:
        return _NOTHING if self._empty else _QUIET

    def _add_prompt(self, update: Mapping[str, Any]) -> None:
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
    """Load the session in a process of its own, which gets no prompt and ends at once."""
    can, id_ = connection.abilities, cursor.native_id
    if not can.load:
        return _unable("The agent cannot play back a session.")
    if can.list and agent.list_is_whole and await find(connection, id_, directory) is None:
        return _not_held(agent, f"Session {id_} is not on the agent's list")
    history = History(id_, deadlines, agent.plays_late)
    connection.record(history)
    parameters = {"sessionId": id_, "cwd": directory.real or directory.path, "mcpServers": []}
    try:
        answer = await connection.call("session/load", parameters, deadlines.start)
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
    """By position and text. Without a position only the last prompt counts: an earlier one may have the same text."""
    if sent.turns is not None and len(prompts) < sent.turns:
        words = f"The session had {sent.turns} prompts before this one, but the agent plays back {len(prompts)}."
        return _unable(words)
    new = list(prompts[sent.turns :]) if sent.turns is not None else list(prompts[-1:])
    found = next((each for each in new if each.is_of(sent.digest)), None)
    if found is not None and found.followed:
        words = "The agent's history holds the prompt and work on it, but does not show whether the turn ended."
        return Attestation(Evidence.CUT_OFF, words)
    if found is not None:
        return Attestation(Evidence.TAKEN, "The agent's history holds the prompt, and nothing follows it.")
    if new and (sent.turns is not None or any(each.is_of(sent.digest) for each in prompts)):
        return _unable("The agent's history holds another prompt where this one would be.")
    return _not_held(agent, "The agent's history does not hold the prompt")


def _not_held(agent: AcpAgent, words: str) -> Attestation:
    if agent.keeps_first:
        return Attestation(Evidence.UNSENT, f"{words}.")
    return _unable(f"{words}, but {agent.name} is not known to store a prompt before it acts on it.")


def _unable(words: str) -> Attestation:
    return Attestation(Evidence.UNKNOWN, words, able=False)
