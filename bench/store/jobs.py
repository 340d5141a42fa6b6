"""Jobs: `say` and `wake` through the API, beside Procrastinate and DBOS through the doors that their users use.

Everyone is asked for the same jobs, by turns, each time in new processes and on a new database of the same server.
"""

import json
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from bench.process import Failed, background, run, tail, wait_until
from bench.store.databases import Ground, Kind, Store
from bench.store.peers.packages import CannotInstall, interpreter
from bench.store.peers.workload import CALLERS, STAMPS, WORKERS, Result, WorkSettings
from bench.table import Table, ratio
from bench.timing import Spread, percentile, ratios, spread

PART, BESIDE = "jobs", "ratios"
_SECONDS = 600.0
_PEERS = "bench.store.peers"


@dataclass(frozen=True, slots=True)
class Amount:
    rounds: int
    warm_up: int
    jobs: int
    singles: int


FULL = Amount(rounds=5, warm_up=400, jobs=1600, singles=100)
SMALL = Amount(rounds=2, warm_up=50, jobs=200, singles=30)


@dataclass(frozen=True, slots=True)
class Contender:
    """Who does the jobs, and with which settings: `polling` and `pool` are their own defaults where they are None."""

    name: str
    how: str
    kind: Kind = Kind.POSTGRESQL
    door: str = ""
    polling: float | None = None
    pool: int | None = None

    def __str__(self) -> str:
        return f"{self.name} on {self.kind} ({self.how})"


SAY = Contender("Clew, say", "as it comes", door="say")
WAKE = Contender("Clew, wake", "as it comes", door="wake")
PROCRASTINATE = Contender("Procrastinate", "as it comes: notified, polls every 5 s")
DBOS = Contender("DBOS", "as it comes: polls every 1 s")
CONTENDERS = (
    SAY,
    PROCRASTINATE,
    DBOS,
    WAKE,
    replace(PROCRASTINATE, how="tuned: polls every 50 ms, pool of 20", polling=0.05, pool=20),
    replace(DBOS, how="tuned: polls every 10 ms, pool of 32", polling=0.01, pool=32),
    replace(SAY, kind=Kind.SQLITE),
    replace(WAKE, kind=Kind.SQLITE),
)


def measure(ground: Ground, amount: Amount, progress: Callable[[str], None]) -> Sequence[Table]:
    try:
        python = interpreter()
    except CannotInstall as fault:
        raise Failed(f"DBOS and Procrastinate could not be installed from {fault.lock.name}: {fault}") from fault
    results: dict[Contender, list[Result]] = {each: [] for each in CONTENDERS}
    for number in range(amount.rounds):
        for each, got in results.items():
            progress(f"round {number + 1} of {amount.rounds}: {each}")
            try:
                with ground.store(each.kind) as store:
                    got.append(_work(each, store, amount, python))
            except Failed as fault:
                raise Failed(f"{each}, round {number + 1}: {fault}") from fault
    return _speeds(results, amount), _beside(results)


# ---------------------------------------------------------------- one round


def _work(each: Contender, store: Store, amount: Amount, python: Path) -> Result:
    settings = WorkSettings(
        store.address, amount.warm_up, amount.jobs, amount.singles, each.polling, each.pool, door=each.door
    )
    workers = {"Procrastinate": _procrastinate, "DBOS": _dbos}.get(each.name, _clew)
    with workers(store, settings, python) as (callers, asked):
        environment = {STAMPS: str(store.stamps), **asked.to_environment()}
        try:
            printed = run(callers, store.directory / "callers.log", environment, _SECONDS)
        except Failed as fault:
            raise Failed(f"{fault}\nits worker said:\n{tail(store.directory / 'data.log')}") from fault
    return Result(**json.loads(printed.splitlines()[-1]))


Callers = tuple[list[str], WorkSettings]
"""The command that asks for the jobs, and its settings."""


@contextmanager
def _clew(store: Store, settings: WorkSettings, _: Path) -> Iterator[Callers]:
    with store.new_server() as server:
        asked = replace(settings, server=server.address, token=server.token)
        yield [sys.executable, "-m", f"{_PEERS}.clew_callers"], asked


@contextmanager
def _procrastinate(store: Store, settings: WorkSettings, python: Path) -> Iterator[Callers]:
    environment = {STAMPS: str(store.stamps), **settings.to_environment()}
    command = [str(python), "-m", "procrastinate", "--log-level", "error", "--app", f"{_PEERS}.procrastinate_app.app"]
    run([*command, "schema", "--apply"], store.directory / "schema.log", environment, _SECONDS)
    polling = () if settings.polling is None else ("--fetch-job-polling-interval", str(settings.polling))
    worker = [*command, "worker", "--concurrency", str(WORKERS), *polling]
    with background(worker, store.directory / "data.log", environment):
        yield [str(python), "-m", f"{_PEERS}.procrastinate_app"], settings


@contextmanager
def _dbos(store: Store, settings: WorkSettings, python: Path) -> Iterator[Callers]:
    environment = {STAMPS: str(store.stamps), **settings.to_environment()}
    command, ready, log = (
        [str(python), "-m", f"{_PEERS}.dbos_app"],
        store.directory / "ready",
        store.directory / "data.log",
    )
    with background([*command, "worker", str(ready)], log, environment) as worker:
        wait_until(ready.exists, worker, "DBOS", log)
        yield command, settings


# ---------------------------------------------------------------- the tables


def _speeds(results: dict[Contender, list[Result]], amount: Amount) -> Table:
    head = ("database", "who", "settings", "jobs /s", "asked p50 ms", "p95 ms", "started p50 ms", "p95 ms")
    table = Table(PART, head)
    for each, got in results.items():
        cells = [f"{spread([result.per_second for result in got]).median:,.0f}"]
        for waits in ([result.asked_ms for result in got], [result.started_ms for result in got]):
            cells += [f"{spread([percentile(one, share) for one in waits]).median:.1f}" for share in (0.5, 0.95)]
        table.add(each.kind, each.name, each.how, *cells)
    table.note = (
        f"{amount.jobs:,} jobs from {CALLERS} callers, at most {WORKERS} at once; then {amount.singles} jobs, one by"
        f" one, some twenty a second. The median of {amount.rounds} rounds, by turns."
    )
    return table


def _beside(results: dict[Contender, list[Result]]) -> Table:
    table = Table(BESIDE, ("what", "beside", "ratio", "lowest to highest", "wanted"))
    for ours in (SAY, WAKE):
        own = results[ours]
        for theirs, got in results.items():
            if theirs.door:
                continue
            speed = ratios([each.per_second for each in own], [each.per_second for each in got])
            start = ratios([_middle(each) for each in own], [_middle(each) for each in got])
            for what, value, limit in (("jobs /s", speed, _LEAST), ("started p50", start, _MOST)):
                name = f"{ours.name}: {what}"
                wanted = _judged(table, f"{name} beside {theirs}", value, limit, (ours, theirs))
                table.add(name, f"{theirs.name}, {theirs.how.partition(':')[0]}", *ratio(value), wanted)
    return table


_Limit = dict[tuple[Contender, Contender], float]
_LEAST: _Limit = {(SAY, PROCRASTINATE): 1.0, (SAY, DBOS): 2.0}
_MOST: _Limit = {(SAY, PROCRASTINATE): 1.3}


def _judged(table: Table, name: str, value: Spread, limit: _Limit, pair: tuple[Contender, Contender]) -> str:
    if pair not in limit:
        return ""
    if limit is _LEAST:
        return table.judge(name, value.median >= limit[pair], f"at least {limit[pair]}", f"{value.median:.2f}")
    return table.judge(name, value.median <= limit[pair], f"at most {limit[pair]}", f"{value.median:.2f}")


def _middle(result: Result) -> float:
    return percentile(result.started_ms, 0.5)
