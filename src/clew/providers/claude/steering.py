"""Words within a turn of Claude Code: it puts them into the turn after the next tool, and says so by telling them back.

Words that no tool comes after it would make a turn of its own of, once this one is over. It asks at the gate before it
does, and is told no there, which leaves no trace of them: the turn's end is told only then.
"""

import asyncio
from dataclasses import dataclass


@dataclass
class Steered:
    """`id` is what it tells them back by. `taken` is known once they are part of the turn, or never will be."""

    text: str
    id: str
    taken: "asyncio.Future[bool]"

    def settle(self, taken: bool) -> None:
        if not self.taken.done():
            self.taken.set_result(taken)


def steered(text: str, id_: str) -> Steered:
    return Steered(text, id_, asyncio.get_running_loop().create_future())
