"""The lineage of a thread: its sessions over time, and what was decided for the runs that used them."""

from collections.abc import Mapping
from dataclasses import dataclass

from clew.protocol.views import RunView, SessionView


@dataclass(frozen=True, slots=True)
class TurnDecision:
    """A decision in short. `session` is the session whose history it continues; None for one that begins anew."""

    run: str
    at: float
    outcome: str
    words: str
    session: str | None


@dataclass(frozen=True, slots=True)
class LineageView:
    sessions: tuple[SessionView, ...]
    runs: tuple[RunView, ...]
    """The newest first."""
    decisions: tuple[TurnDecision, ...]
    """Those of the runs that did not hold them, in the order of time."""
    machines: Mapping[str, str]
    """The names of machines, by runtime."""
    more: bool = False
    """Whether there were more runs or sessions before these."""
