"""What runs have used, as their agents report it."""

from dataclasses import dataclass
from typing import Literal

By = Literal["agent", "project", "day"]


@dataclass(frozen=True, slots=True)
class UsedView:
    """Tokens and cost (in USD). `cost` is None where no agent named one."""

    input: int
    output: int
    cached: int
    """How many of `input` were read from the model's cache, where the agent says so."""
    cost: float | None

    def __add__(self, other: "UsedView") -> "UsedView":
        costs = [each for each in (self.cost, other.cost) if each is not None]
        return UsedView(
            self.input + other.input,
            self.output + other.output,
            self.cached + other.cached,
            sum(costs) if costs else None,
        )


@dataclass(frozen=True, slots=True)
class UsageRow:
    """One agent, project or day. `runs` have started; `reported` of them said what they used."""

    name: str
    runs: int
    reported: int
    used: UsedView | None


@dataclass(frozen=True, slots=True)
class UsageView:
    by: By
    since: float
    rows: tuple[UsageRow, ...]
    total: UsageRow
