"""The moments at which something is killed: before, at and after what happens to a prompt on its way."""

from dataclasses import dataclass
from enum import StrEnum


class Anchor(StrEnum):
    OUT = "out"
    """The server has said that the prompt may go out, and it does."""
    PIPE = "pipe"
    """The prompt is on its way and has not arrived; it never will. Only where a tap stands in between."""
    ASKED = "asked"
    """The model was asked."""
    ANSWERED = "answered"
    """The model has said the last of its answer."""


@dataclass(frozen=True, slots=True)
class Moment:
    anchor: Anchor
    ms: float

    def __str__(self) -> str:
        return f"{self.anchor} {self.ms:+g} ms"


def _at(anchor: Anchor, *ms: float) -> tuple[Moment, ...]:
    return tuple(Moment(anchor, each) for each in ms)


# Around the prompt's way out, where it is in no store yet, in the agent's, or in both.
_DENSE = (
    *_at(Anchor.OUT, -10, -5, 0, 2, 4, 6, 8, 10, 12, 15, 18, 21, 25, 30, 40, 60),
    *_at(Anchor.ASKED, 0, 2, 5, 10, 20),
    *_at(Anchor.ANSWERED, 0, 2, 5, 10, 20),
)
_REST = (
    *_at(Anchor.OUT, -100, -75, -50, -35, -20, 80, 120, 300, 700, 1000),
    *_at(Anchor.ASKED, 40, 80),
    *_at(Anchor.ANSWERED, 40, 80),
)
MOMENTS = (*_DENSE, *_REST)
DENSE = _DENSE
"""Where it matters most: what a short run takes its moments from."""
PIPE = Moment(Anchor.PIPE, 0)
