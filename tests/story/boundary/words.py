"""Words that a person says, each with a token of its own by which it is found in what a model was handed."""

import random
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

TOKEN = re.compile(r"word-[0-9a-f]{10}")
SLOW = (0.0, 0.0, 0.15, 0.4)
"""Seconds that the model takes for its answer: at once, or so that there is a turn to be cut off within."""

# Longer than what a model quotes of a prompt in its answers, so that no answer holds a token.
_OPENING = "A person writes to you here, and this is what is wanted of you now: "


@dataclass(frozen=True, slots=True)
class Word:
    """`reply` is what the model answers in full. It does not hold the token."""

    token: str
    reply: str
    seconds: float = 0.0

    @property
    def text(self) -> str:
        slow = f"\nSLOW: {self.seconds:g}" if self.seconds else ""
        return f"{_OPENING}{self.token}\nSAY: {self.reply}{slow}"


@dataclass
class Words:
    """No two words of a run are alike; the same seed gives the same ones."""

    seed: str
    _drawn: random.Random = field(init=False)

    def __post_init__(self) -> None:
        self._drawn = random.Random(self.seed)

    def new(self, slow: Sequence[float] = (0.0,)) -> Word:
        names = f"{self._drawn.getrandbits(40):010x}", f"{self._drawn.getrandbits(40):010x}"
        return Word(f"word-{names[0]}", f"reply {names[1]} is all of it", self._drawn.choice(slow))


@dataclass
class Said:
    """A word as it was said in a thread: when, and what the server answered."""

    word: Word
    ref: str
    posted: float = 0.0
    """By the monotonic clock, when the server was asked."""
    posted_wall: float = 0.0
    out: float | None = None
    """When its prompt was let out for the first time; None where it was not, or nobody knows."""
    struck: float | None = None
    """When something was killed for it."""
    wake: dict[str, Any] | None = None
    """None where the answer was lost with the server."""
