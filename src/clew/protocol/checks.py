"""Views of an agent's login, of a first prompt that was tried, and of sessions that were let go."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class LoginView:
    """`used` is what its program asks its model with: the name of a variable or the place of a login, never a value.
    `words` say it, or how the agent gets a login; empty for a program of which Clew knows no login."""

    agent: str
    used: str
    words: str


@dataclass(frozen=True, slots=True)
class ReleasedView:
    """Sessions of a thread that were kept open between turns and are free now, by the agents' own ids. `busy` are the
    runs that work in the thread: their sessions are not let go."""

    thread: str
    released: tuple[str, ...]
    busy: tuple[str, ...]


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
