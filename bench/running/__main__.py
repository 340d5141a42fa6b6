"""`python -m bench.running`: what a wake costs in a server as people start it, and what it costs while it waits."""

import argparse
import os
import statistics
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from bench.process import progress, run_benchmark
from bench.running import added
from bench.running.floor import floor
from bench.server import Server, server
from bench.store.databases import sqlite_store
from bench.store.long_history import Size, fill
from bench.table import Table, keep
from bench.timing import percentile, spread
from bench.wakes import Taken, add_true, at_once, one_by_one


@dataclass(frozen=True, slots=True)
class Amount:
    """`idle` is in seconds, and is waited twice: before and while a server that does nothing is measured."""

    wakes: int
    rounds: int
    many: int
    starts: int
    idle: float
    history: Size


FULL = Amount(200, 5, 3, 5, 10.0, Size(lanes=1000, runs=100_000, sessions=20_000, entries=1000))
SMALL = Amount(20, 2, 1, 2, 3.0, Size(lanes=50, runs=1_000, sessions=1_000, entries=20))


def main() -> int:
    asked = _asked()
    load = os.getloadavg()[0]
    with tempfile.TemporaryDirectory(prefix="clew-bench-") as directory:
        root = Path(directory).resolve()
        amount = SMALL if asked.small else FULL
        tables = [_waking(root, amount), _waiting(root, amount)]
    if asked.agents:
        tables.append(added.measure(asked.agents))
    about = f"{os.cpu_count()} cores; load average {load:.1f} before, {os.getloadavg()[0]:.1f} after."
    for table in tables:
        table.note = f"{table.note} {about}".strip()
        print(f"\n{table.text()}", flush=True)
    if asked.write:
        keep((table.part, table.text()) for table in tables)
    missed = [row for table in tables for row in table.missed]
    for row in missed:
        print(f"missed: {row}")
    return 1 if missed else 0


def _asked() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench.running", description="How fast what runs is.")
    parser.add_argument(
        "agents", nargs="*", metavar="AGENT", help="real agents to measure too: claude, codex, opencode"
    )
    parser.add_argument("--small", action="store_true", help="little of everything, for a quick look")
    parser.add_argument("--write", action="store_true", help="keep the tables in docs/performance.md")
    asked = parser.parse_args()
    if asked.small and asked.write:
        parser.error("--small measures too little to be kept: leave out --write")
    return asked


def _waking(root: Path, amount: Amount) -> Table:
    table = Table("running", ("what", "median", "p95", "to the floor", "wanted"))
    progress(f"inserting {amount.history.runs:,} runs ...")
    for name in ("young", "old"):
        (root / name).mkdir(mode=0o700)
    new, aged = sqlite_store(root / "young"), sqlite_store(root / "old")
    fill(aged, amount.history)
    progress("one wake after another, in a new and in an old server by turns ...")
    bare, taken, later = floor(amount.wakes), list[Taken](), list[Taken]()
    with new.server() as young:
        with aged.server() as old:
            agents = [(running, add_true(running, "true"), found) for running, found in ((young, taken), (old, later))]
            for running, agent, _ in agents:
                one_by_one(running, agent, 20)
            for _ in range(amount.rounds):
                for running, agent, found in agents:
                    found.extend(one_by_one(running, agent, amount.wakes // amount.rounds))
        progress("many at once ...")
        rate = _many(young, amount)
    whole, after = _whole(taken), _whole(later)
    middle, slow = statistics.median(whole), percentile(whole, 0.95)
    below = statistics.median(bare)
    met = table.judge("wake to finished", middle <= 20 and slow <= 40, "20 and 40 ms at most")
    table.add("wake to finished, /bin/true", _ms(middle), _ms(slow), f"{middle / below:.1f}", met)
    table.add("  until it was durable", *_cells([each.accepted for each in taken]), "", "")
    table.add("  until its run was claimed", *_cells([each.claimed for each in taken]), "", "")
    ratio = statistics.median(after) / middle
    met = table.judge(f"after {amount.history.runs:,} runs", ratio <= 1.2, f"1.2 of the above at most: {ratio:.2f}")
    table.add(f"the same after {amount.history.runs:,} runs", *_cells(after), "", met)
    table.add("the floor: four commits and a process", *_cells(bare), "1.0", "")
    name = f"{amount.wakes} wakes over 8 agents"
    met = table.judge(name, rate >= 100, "100 runs/s at least")
    table.add(name, f"{rate:.0f} runs/s", "", "", met)
    return table


def _many(running: Server, amount: Amount) -> float:
    agents = [add_true(running, f"true-{number}") for number in range(8)]
    return statistics.median(at_once(running, agents, amount.wakes) for _ in range(amount.many))


def _waiting(root: Path, amount: Amount) -> Table:
    table = Table("waiting", ("what", "median", "lowest to highest", "wanted"))
    progress("starts, and doing nothing ...")
    starts, memory, used = [], [], []
    for number in range(amount.starts):
        with server(root / f"idle-{number % 2}") as idle:
            starts.append(idle.ready_after)
            if number == 0:
                # What is looked for in the background is found by then.
                time.sleep(amount.idle)
                before = idle.seconds_used()
                time.sleep(amount.idle)
                used.append((idle.seconds_used() - before) / amount.idle * 100)
                memory.append(idle.megabytes())
    start = spread(starts)
    met = table.judge("start to ready", start.median <= 1.5, "1.5 s at most")
    table.add("start to ready", f"{start.median:.2f} s", f"{start.low:.2f} to {start.high:.2f} s", met)
    met = table.judge("memory", memory[0] <= 110, "110 MiB at most")
    table.add("memory while it waits", f"{memory[0]:.0f} MiB", "", met)
    met = table.judge("idle", used[0] < 1, "under 1 % of a core")
    table.add("processor while it waits", f"{used[0]:.2f} %", "", met)
    return table


def _whole(taken: Sequence[Taken]) -> list[float]:
    return [each.whole for each in taken]


def _cells(taken: Sequence[float]) -> tuple[str, str]:
    return _ms(statistics.median(taken)), _ms(percentile(taken, 0.95))


def _ms(value: float) -> str:
    return f"{value:.1f} ms"


if __name__ == "__main__":
    raise SystemExit(run_benchmark(main))
