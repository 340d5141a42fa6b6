"""Views of messages that wait: the queue of a thread, and what may still be done with each."""

from dataclasses import dataclass
from typing import Literal

from clew.protocol.files import SentFile

Change = Literal["edit", "move", "steer", "take back"]


@dataclass(frozen=True, slots=True)
class WaitingView:
    """A wake that no run has taken yet, with its message. In a queue they are in the order in which the agent would be
    told, agent by agent."""

    wake: str
    agent: str
    text: str
    """Empty for a wake without a message, such as a heartbeat."""
    author: str
    entry: int | None
    """Its entry in the journal. An edit or a move gives it another one."""
    reason: str
    code: str
    words: str
    """Why it waits, in a sentence."""
    accepted_at: float
    run: str | None = None
    """The run that it waits behind, or that will take it: run-17."""
    until: float | None = None
    """When its wait ends by itself, where that is known."""
    can: tuple[Change, ...] = ()
    """What may be done with it now. An agent may take it at any moment; a change that comes too late is answered so."""
    files: tuple[SentFile, ...] = ()
    """The files that were sent with it."""
