"""A preview: what a message sent now would do, as a view, and as the token by which its sender passes it on."""

import re
from dataclasses import dataclass
from typing import Literal

PreviewOutcome = Literal[
    "resume", "fork", "transfer", "reseed", "blank", "hold", "queued", "steered", "interrupts", "refused", "nobody"
]

NOTE = "A preview of things as they are now. The record of the run says what was done: `clew why`."


@dataclass(frozen=True, slots=True)
class PreviewView:
    """What a message sent now would do. Nothing is written, and until an agent has the message it may change."""

    thread: str
    agent: str | None
    """Who would be woken; null for nobody."""
    outcome: PreviewOutcome
    """How the conversation would be continued; or that the message would wait behind a run (queued), be told within a
    turn (steered), interrupt one, be refused, or wake nobody."""
    code: str
    words: str
    """All of it in a sentence."""
    entry: int
    """The number that the message would get in the journal."""
    at: float
    token: str
    """Send it with the message, as `preview`: if it comes out differently, the record says so."""
    session: str | None = None
    """The session that would be continued."""
    generation: int | None = None
    """Its number in the conversation: session 3."""
    machine: str | None = None
    directory: str | None = None
    branch: str | None = None
    mode: str | None = None
    first: int | None = None
    """With `last`, the earlier entries that the agent would be told."""
    last: int | None = None
    run: str | None = None
    """The live run that it meets: run-17."""
    until: float | None = None
    """When its wait would end by itself, where that is known."""
    note: str = NOTE


@dataclass(frozen=True, slots=True)
class Foretold:
    """What the sender of a message was told that it would do."""

    outcome: str
    session: str | None = None
    code: str = ""


_SHAPE = re.compile(r"(?P<outcome>[a-z]{1,20})/(?P<session>[\w-]{0,60})/(?P<code>[\w:-]{0,60})", re.ASCII)


def write_foretold(told: Foretold) -> str:
    return f"{told.outcome}/{told.session or ''}/{told.code}"


def read_foretold(token: str) -> Foretold | None:
    """None if the text is not a token of a preview."""
    found = _SHAPE.fullmatch(token)
    return None if found is None else Foretold(found["outcome"], found["session"] or None, found["code"])
