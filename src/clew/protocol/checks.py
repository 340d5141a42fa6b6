"""Views of an agent's login, and of a first prompt that was tried."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class LoginView:
    """`used` is what its program asks its model with: the name of a variable or the place of a login, never a value.
    `words` say it, or how the agent gets a login; empty for a program of which Clew knows no login."""

    agent: str
    used: str
    words: str


@dataclass(frozen=True, slots=True)
class TrialView:
    """What came of one prompt in a session and a directory of its own."""

    agent: str
    ok: bool
    words: str
    """The reply, or why there is none and what to do."""
    seconds: float
    mode: str
    """The mode it was asked in: read where its program has it."""
