"""The views of `clew why`: decisions, the sessions and rules they considered, and the evidence of what came of them."""

from collections.abc import Mapping
from dataclasses import dataclass

from clew.protocol.views import RunView, WakeView


@dataclass(frozen=True, slots=True)
class StepView:
    subject: str
    rule: str
    outcome: str
    code: str
    words: str


@dataclass(frozen=True, slots=True)
class ConsideredView:
    """A session that was considered, with the rules for and against it."""

    session: str
    generation: int
    route: str
    words: str
    steps: tuple[StepView, ...]


@dataclass(frozen=True, slots=True)
class DecisionView:
    attempt: int
    step: int
    at: float
    outcome: str
    code: str
    words: str
    directory: str | None
    place_words: str
    mode: str | None
    mode_words: str
    catch_up: str
    notices: tuple[str, ...]
    considered: tuple[ConsideredView, ...]
    probes: tuple[StepView, ...]
    session: str | None = None
    """The session that it continues, or waits for."""


@dataclass(frozen=True, slots=True)
class EvidenceView:
    """Whether the agent took a run's prompt: unsent, taken, cut-off, finished or unknown, and how that is known."""

    state: str
    words: str
    at: float | None
    asked: int = 0
    """How often its store was asked without an answer."""


@dataclass(frozen=True, slots=True)
class SteerView:
    wakes: tuple[str, ...]
    text: str
    taken: bool
    at: float


@dataclass(frozen=True, slots=True)
class WhyView:
    """How a run was decided, or why a wake did not run. `headline` is the outcome in a sentence."""

    subject: str
    headline: str
    run: RunView | None
    wakes: tuple[WakeView, ...]
    decisions: tuple[DecisionView, ...]
    landing: Mapping[str, str]
    """What the agent said it opened, field by field."""
    refused: tuple[str, ...]
    """Where that differed from the plan, so that no prompt was sent."""
    steered: tuple[SteerView, ...] = ()
    """Messages sent during the turn, received or not."""
    evidence: EvidenceView | None = None
    """What the agent's own store says of the prompt; None if none was sent."""
    notices: tuple[str, ...] = ()
    """Where a message did something else than its sender was shown before it was sent."""
