"""Times, medians and ratios. A shared machine changes its speed, so a ratio is of two times of the same round."""

import math
import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Spread:
    """The median of several rounds, and the lowest and the highest of them."""

    median: float
    low: float
    high: float


def spread(values: Sequence[float]) -> Spread:
    return Spread(statistics.median(values), min(values), max(values))


def ratios(ours: Sequence[float], beside: Sequence[float]) -> Spread:
    """Each round against the same round of the other."""
    return spread([one / other for one, other in zip(ours, beside, strict=True)])


def percentile(taken: Sequence[float], share: float) -> float:
    """The smallest value that is not exceeded by that share of them, 0 to 1."""
    ordered = sorted(taken)
    return ordered[max(0, math.ceil(len(ordered) * share) - 1)]


def milliseconds(work: Callable[[], object]) -> float:
    began = time.perf_counter_ns()
    work()
    return (time.perf_counter_ns() - began) / 1e6
