"""Taking times. Machines are shared and change their speed, so everything is a ratio of the same round."""

import math
import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from threading import Barrier

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


def rate(callers: int, times: int, prepare: Callable[[int], Work]) -> float:
    """How often a second the work is done by so many callers at once, each doing it so many times.

    What a caller prepares, a connection for instance, is not counted.
    """
    start, clock = Barrier(callers + 1), time.perf_counter_ns

    def calls(caller: int) -> int:
        work = prepare(caller)
        start.wait()
        for _ in range(times):
            work()
        return clock()

    with ThreadPoolExecutor(callers, thread_name_prefix="caller") as pool:
        going = [pool.submit(calls, caller) for caller in range(callers)]
        start.wait()
        began = clock()
        ended = max(each.result() for each in going)
    return callers * times / ((ended - began) / 1e9)


def rounds(seconds: float, least: int = 5, most: int = 15) -> Iterator[int]:
    """Numbers of rounds, the first to warm up: so many as fit into the time, within bounds."""
    until = time.monotonic() + seconds
    for number in range(most + 1):
        if number > least and time.monotonic() > until:
            return
        yield number
