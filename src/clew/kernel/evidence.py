"""Evidence: what an agent's own store says of a prompt that was to go out. Read from the agent, never concluded."""

import hashlib
from dataclasses import dataclass
from enum import StrEnum
from typing import NewType

PromptId = NewType("PromptId", str)
"""Chosen by Clew for every prompt before it goes out: a UUID of version 7, so that later ones sort behind."""


class Evidence(StrEnum):
    """How far a prompt came. `unsent`, `unknown` and the three others are answers of the agent's store, not of ours."""

    UNSENT = "unsent"
    """The store is there, whole, and does not hold the prompt."""
    TAKEN = "taken"
    """The store holds it, and nothing follows it."""
    CUT_OFF = "cut-off"
    """The store holds it and part of a turn."""
    FINISHED = "finished"
    """The store holds it and a finished reply."""
    UNKNOWN = "unknown"
    """The store could not be read, was being written, or this provider is declared unable to tell."""


HELD_BY_AGENT = frozenset({Evidence.TAKEN, Evidence.CUT_OFF, Evidence.FINISHED})
"""The session has the prompt: it has seen what the prompt told."""


@dataclass(frozen=True, slots=True)
class Sent:
    """A prompt as it is recognised in an agent's store: by its id; where a program keeps none, by position and text.

    `turns` is how many turns the session had had before it, as the agent counts them; None where it does not say.
    `digest` is `digest_of` the text.
    """

    id: PromptId
    digest: str
    turns: int | None = None


@dataclass(frozen=True, slots=True)
class Testimony:
    """What a store said of one prompt. `reply` is the finished reply. `able` is false where asking again is in vain,
    because the provider cannot tell at all."""

    evidence: Evidence
    detail: str = ""
    reply: str = ""
    able: bool = True


def digest_of(text: str) -> str:
    """Surrogates that no file can hold are replaced first, as every provider does before it sends."""
    return hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()
