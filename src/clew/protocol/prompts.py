"""What a session is told: made by the context, sent by the daemon, and known to both by this."""

from dataclasses import dataclass
from typing import Protocol

from clew.kernel import EntrySeq, Plan
from clew.protocol.orders import Order


@dataclass(frozen=True, slots=True)
class Prompt:
    """`told` is how far into the journal the text goes; `words` says what of it was shortened or left out."""

    text: str
    told: EntrySeq
    words: str = ""


class PromptMaker(Protocol):
    async def __call__(self, order: Order, plan: Plan) -> Prompt:
        """The prompt for that order as its plan has come to be. A fault says why there can be none."""
        ...
