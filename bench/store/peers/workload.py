"""The work that is asked of everyone: jobs that do nothing, from eight callers, then one now and then.

Every contender has two processes, as its users have: one in which the callers ask for jobs, and one that runs them.
Standard library only: it is imported beside packages that Clew does not have.
"""

import json
import os
import random
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path

CALLERS = WORKERS = 8
PATIENCE = 120.0
"""Seconds for all jobs of a batch to end."""

STAMPS, SETTINGS = "CLEW_BENCH_STAMPS", "CLEW_BENCH_SETTINGS"
"""Environment variables: the file of `Stamps`, and the `WorkSettings` as JSON."""

_LOOK = 0.005


@dataclass(frozen=True, slots=True)
class WorkSettings:
    """`database` is its address; `polling` and `pool` are the contender's own defaults where they are None.

    `server`, `token` and `door` are for Clew only: where its API is, and what is called there.
    """

    database: str
    warm_up: int
    jobs: int
    singles: int
    polling: float | None = None
    pool: int | None = None
    server: str = ""
    token: str = ""
    door: str = ""

    @property
    def total(self) -> int:
        return self.warm_up + self.jobs + self.singles

    def to_environment(self) -> dict[str, str]:
        return {SETTINGS: json.dumps(asdict(self))}


def work_settings() -> WorkSettings:
    return WorkSettings(**json.loads(os.environ[SETTINGS]))


@dataclass(frozen=True, slots=True)
class Result:
    """Jobs a second, from the first request to the last durable end. Of single jobs: milliseconds until the request
    returned, and from the request until the job's body ran."""

    per_second: float
    asked_ms: list[float]
    started_ms: list[float]


class Stamps:
    """When each job's body ran. One line is one write to a file that is only appended to, whichever process writes.

    The clock is the monotonic one, which all processes of a machine share.
    """

    def __init__(self, path: Path) -> None:
        self._file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)

    def add(self, job: int) -> None:
        os.write(self._file, b"%d %d\n" % (job, time.monotonic_ns()))


def read_stamps(path: Path) -> dict[int, int]:
    """By job; of a job that ran twice, the first."""
    stamps: dict[int, int] = {}
    for line in path.read_text(encoding="utf-8").splitlines():
        job, at = map(int, line.split())
        stamps.setdefault(job, at)
    return stamps


def drive(ask: Callable[[int], object], done: Callable[[], int]) -> Result:
    """Warm up, then many at once, then one now and then. `done` counts the jobs whose end is durable."""
    settings = work_settings()
    many = range(settings.warm_up, settings.warm_up + settings.jobs)
    with ThreadPoolExecutor(CALLERS) as callers:
        _batch(callers, ask, done, range(settings.warm_up))
        per_second = _batch(callers, ask, done, many)
    asked, returned = _singles(ask, range(many.stop, settings.total))
    _wait(done, settings.total)
    stamps = read_stamps(Path(os.environ[STAMPS]))
    return Result(
        per_second,
        [(returned[job] - at) / 1e6 for job, at in asked.items()],
        [(stamps[job] - at) / 1e6 for job, at in asked.items()],
    )


def _batch(
    callers: ThreadPoolExecutor, ask: Callable[[int], object], done: Callable[[], int], jobs: Sequence[int]
) -> float:
    began = time.monotonic()
    list(callers.map(ask, jobs))
    _wait(done, jobs[-1] + 1)
    return len(jobs) / (time.monotonic() - began)


def _singles(ask: Callable[[int], object], jobs: range) -> tuple[dict[int, int], dict[int, int]]:
    """Some twenty a second, with the same irregular pauses for everyone."""
    chance = random.Random(7)
    asked, returned = {}, {}
    for job in jobs:
        time.sleep(chance.uniform(0.01, 0.09))
        asked[job] = time.monotonic_ns()
        ask(job)
        returned[job] = time.monotonic_ns()
    return asked, returned


def _wait(done: Callable[[], int], wanted: int) -> None:
    until = time.monotonic() + PATIENCE
    while (ended := done()) < wanted:
        if time.monotonic() > until:
            raise SystemExit(f"Only {ended} of {wanted} jobs had ended after {PATIENCE:.0f} s.")
        time.sleep(_LOOK)


def answer(result: Result) -> None:
    print(json.dumps(asdict(result)))
