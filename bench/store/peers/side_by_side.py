"""Side by side: the same jobs through Clew, DBOS and Procrastinate, in turns, on the same databases."""

import json
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from bench.store.databases import Ground, Kind
from bench.store.peers.installing import NotInstalled, interpreter
from bench.store.peers.workload import ARRIVALS, CALLERS, JOBS, WORKERS, Result
from bench.table import Table
from bench.timing import percentile, ratios, spread

PART = "peers"
ROUNDS = 7
ROOT = Path(__file__).resolve().parents[3]
OURS = "Clew"


@dataclass(frozen=True, slots=True)
class Contender:
    """Somebody with settings of theirs; `polling` and `pool` are their own defaults where they are None."""

    name: str
    kind: Kind
    how: str
    module: str
    polling: float | None = None
    pool: int | None = None
    wal: bool = False

    def serve(self, ground: Ground, python: Path) -> Result:
        """In a process of its own, as everybody."""
        with ground.empty(self.kind) as address:
            where = f"sqlite:///{address}" if self.kind is Kind.SQLITE else address
            asked = {"address": where, "polling": self.polling, "pool": self.pool, "wal": self.wal}
            done = subprocess.run(
                [
                    sys.executable if self.name == OURS else python,
                    "-m",
                    f"bench.store.peers.{self.module}",
                    json.dumps(asked),
                ],
                cwd=ROOT,
                capture_output=True,
                text=True,
                check=False,
            )
        if done.returncode:
            raise SystemExit(f"{self.name} ended with {done.returncode}:\n{done.stderr[-2000:]}")
        return Result(**json.loads(done.stdout.splitlines()[-1]))

    def _python(self, others: Path) -> Path:
        return Path(sys.executable) if self.name == OURS else others


CONTENDERS = (
    Contender(OURS, Kind.POSTGRESQL, "handed over, or hints", "ours"),
    Contender("DBOS", Kind.POSTGRESQL, "default: polls every 1 s", "with_dbos"),
    Contender("DBOS", Kind.POSTGRESQL, "tuned: polls every 10 ms, pool of 32", "with_dbos", 0.01, 32),
    Contender("Procrastinate", Kind.POSTGRESQL, "default: notified, polls every 5 s", "with_procrastinate"),
    Contender(
        "Procrastinate",
        Kind.POSTGRESQL,
        "tuned: notified, polls every 50 ms, pool of 20",
        "with_procrastinate",
        0.05,
        20,
    ),
    Contender(OURS, Kind.SQLITE, "hints", "ours"),
    Contender("DBOS", Kind.SQLITE, "default: polls every 1 s, rollback journal", "with_dbos"),
    Contender("DBOS", Kind.SQLITE, "tuned: polls every 10 ms, WAL", "with_dbos", 0.01, 32, wal=True),
)


def measure(ground: Ground, say: Callable[[str], None]) -> Table:
    table = Table(
        PART,
        ("database", "who", "settings", "jobs /s", "ours to theirs", "started p50 ms", "p99 ms", "ours is ahead"),
    )
    try:
        python = interpreter()
    except NotInstalled as fault:
        table.note = f"DBOS and Procrastinate could not be installed: {fault}"
        table.missed.append(table.note)
        return table
    got: dict[Contender, list[Result]] = {each: [] for each in CONTENDERS}
    for number in range(ROUNDS):
        for each, results in got.items():
            say(f"round {number + 1} of {ROUNDS}: {each.name}, {each.kind}, {each.how}")
            results.append(each.serve(ground, python))
    for each, results in got.items():
        own = got[next(one for one in CONTENDERS if one.name == OURS and one.kind is each.kind)]
        _show(table, each, results, own)
    table.note = (
        f"{JOBS} jobs from {CALLERS} callers to {WORKERS} workers, the median of {ROUNDS} rounds; then {ARRIVALS} jobs"
        " that come one by one, some twenty a second. DBOS takes all that waits whenever it polls."
    )
    return table


def _show(table: Table, each: Contender, results: list[Result], own: list[Result]) -> None:
    speed = spread([result.per_second for result in results]).median
    middle, slow = _waited(results)
    beside, ahead = "", ""
    if own is not results:
        faster = ratios([result.per_second for result in own], [result.per_second for result in results])
        beside = f"{faster.median:.2f} ({faster.low:.2f} to {faster.high:.2f})"
        own_middle, own_slow = _waited(own)
        held = {"jobs /s": faster.median > 1, "p50": own_middle < middle, "p99": own_slow < slow}
        behind = [what for what, is_ahead in held.items() if not is_ahead]
        name = f"{each.kind}, beside {each.name} ({each.how})"
        ahead = table.miss(name, "ours is ahead", f"not in {', '.join(behind)}") if behind else "yes"
    table.add(each.kind, each.name, each.how, f"{speed:,.0f}", beside, f"{middle:.1f}", f"{slow:.1f}", ahead)


def _waited(results: list[Result]) -> tuple[float, float]:
    """The median of the rounds: a disk that stands still for a second would else be all there is to see."""
    middle, slow = (spread([percentile(each.started_ms, at) for each in results]).median for at in (0.5, 0.99))
    return middle, slow
