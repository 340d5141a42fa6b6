"""Usage: Codex tells sums over the whole thread; what one turn used is the difference."""

from collections.abc import Mapping
from typing import Any, NamedTuple

from clew.ports.events import Used


class _Sum(NamedTuple):
    input: int
    output: int
    cached: int


class Meter:
    """One for each session; its turns come one after the other."""

    def __init__(self) -> None:
        self._total: _Sum | None = None
        self._before: _Sum | None = None

    def next_turn(self) -> None:
        self._before = self._total

    def used(self, usage: Mapping[str, Any], raw: Mapping[str, Any]) -> Used:
        total, last = _sum(usage.get("total")), _sum(usage.get("last"))
        if self._before is None:
            # The first word of an opened thread: what came before it is all but the last request.
            self._before = _less(total, last)
        self._total = total
        turn = _less(total, self._before)
        return Used(turn.input, turn.output, turn.cached, raw=raw)


def _less(total: _Sum, part: _Sum) -> _Sum:
    return _Sum(*(max(0, whole - taken) for whole, taken in zip(total, part, strict=True)))


def _sum(told: Any) -> _Sum:
    counts = told if isinstance(told, Mapping) else {}
    return _Sum(*(int(counts.get(name) or 0) for name in ("inputTokens", "outputTokens", "cachedInputTokens")))
