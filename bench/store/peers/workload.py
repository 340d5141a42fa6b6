"""The work that is asked of everybody: jobs that do nothing, so that only their keeping is measured.

Standard library alone: it is run beside packages that Clew does not know.
"""

import json
import random
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from typing import Any

CALLERS = WORKERS = 8
JOBS = 1600
WARM_UP = 400
ARRIVALS = 100
PATIENCE = 120.0


@dataclass(frozen=True, slots=True)
class Result:
    """Jobs a second from being asked for to being done durably, and from being asked for to being started."""

    per_second: float
    started_ms: list[float]


def pauses() -> Iterator[float]:
    """The seconds between arrivals: the same for everybody, about twenty a second, at no fixed beat."""
    chance = random.Random(7)
    return (chance.uniform(0.01, 0.09) for _ in range(ARRIVALS))


class Marks:
    """When each job was asked for and when it was started, by one clock."""

    def __init__(self) -> None:
        self._asked: dict[int, int] = {}
        self._started: dict[int, int] = {}
        self._bell = threading.Condition()

    def ask(self, job: int) -> None:
        self._asked[job] = time.perf_counter_ns()

    def start(self, job: int) -> None:
        at = time.perf_counter_ns()
        with self._bell:
            self._started.setdefault(job, at)
            self._bell.notify_all()

    def wait_for(self, jobs: range) -> None:
        with self._bell:
            arrived = self._bell.wait_for(lambda: len(self._started) >= jobs.stop, PATIENCE)
        if not arrived:
            raise SystemExit(f"{jobs.stop - len(self._started)} jobs were never started.")

    def started(self) -> int:
        return len(self._started)

    def waited_ms(self, jobs: range) -> list[float]:
        return [(self._started[job] - self._asked[job]) / 1e6 for job in jobs]


def drive(enqueue: Callable[[int], object], marks: Marks, done: Callable[[], int]) -> Result:
    """Warm up, then many at once, then one now and then. `done` counts the jobs whose end is durable."""
    _many(enqueue, marks, done, range(WARM_UP))
    many = range(WARM_UP, WARM_UP + JOBS)
    per_second = _many(enqueue, marks, done, many)
    single = range(many.stop, many.stop + ARRIVALS)
    for job, pause in zip(single, pauses(), strict=True):
        time.sleep(pause)
        marks.ask(job)
        enqueue(job)
    marks.wait_for(single)
    return Result(per_second, marks.waited_ms(single))


def _many(enqueue: Callable[[int], object], marks: Marks, done: Callable[[], int], jobs: range) -> float:
    def ask(job: int) -> None:
        marks.ask(job)
        enqueue(job)

    began = time.perf_counter_ns()
    with ThreadPoolExecutor(CALLERS) as pool:
        list(pool.map(ask, jobs))
        marks.wait_for(jobs)
        while done() < jobs.stop:
            time.sleep(0.002)
    return len(jobs) / ((time.perf_counter_ns() - began) / 1e9)


def settings() -> Any:
    return json.loads(sys.argv[1])


def answer(result: Result) -> None:
    print(json.dumps(asdict(result)))
