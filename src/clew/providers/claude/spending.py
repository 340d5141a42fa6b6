"""What a turn used: Claude Code sums over its process, so what came before is taken off."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

from clew.ports.events import Used

_COUNTS = ("inputTokens", "outputTokens", "cacheReadInputTokens", "cacheCreationInputTokens", "costUSD")


@dataclass(frozen=True, slots=True)
class Spent:
    input: int = 0
    output: int = 0
    cached: int = 0
    cost: float = 0.0

    @classmethod
    def by(cls, models: Mapping[str, Mapping[str, Any]]) -> Self:
        """Over all models: side threads may have had another."""
        read, written, kept, made, cost = (sum(each.get(count) or 0 for each in models.values()) for count in _COUNTS)
        return cls(int(read + made), int(written), int(kept), float(cost))

    @classmethod
    def told(cls, result: Mapping[str, Any], before: "Spent") -> tuple[Used, Self]:
        """Of the turn that this result ends, and in all so far."""
        in_all = cls.by(result.get("modelUsage") or {})
        # Later versions sum over resumed processes too, and say beside it what is new.
        new = result.get("model_usage_since_last_result")
        return (cls.by(new).since(Spent()) if isinstance(new, dict) else in_all.since(before)), in_all

    def since(self, before: "Spent") -> Used:
        """A sum that shrank was begun anew."""
        if self.input < before.input or self.output < before.output:
            before = Spent()
        return Used(
            self.input - before.input,
            self.output - before.output,
            self.cached - before.cached,
            round(self.cost - before.cost, 9),
        )
