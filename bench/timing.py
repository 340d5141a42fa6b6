"""Taking times. Machines are shared and change their speed, so everything is a ratio of the same round."""

import math
import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

Work = Callable[[], object]


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
    """The smallest that so large a share of them do not exceed."""
    ordered = sorted(taken)
    return ordered[max(0, math.ceil(len(ordered) * share) - 1)]


def milliseconds(work: Work) -> float:
    began = time.perf_counter_ns()
    work()
    return (time.perf_counter_ns() - began) / 1e6
