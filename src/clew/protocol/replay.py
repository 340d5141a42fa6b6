"""The answer to a replay: the recorded decisions that another policy would change."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Changed:
    """A recorded decision that another policy would change. A run has one for each step of each attempt."""

    run: str
    ref: str
    """Its run's name for people: run-17."""
    thread: str
    at: float
    was: str
    now: str
    words: str
    attempt: int = 1
    step: int = 0


@dataclass(frozen=True, slots=True)
class ReplayView:
    looked_at: int
    unreadable: int
    changed: tuple[Changed, ...]
