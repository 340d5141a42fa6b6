"""`python -m bench.store`: measures the parts that are named, or all of them."""

import argparse
import os
import platform
import sys
import time
from collections.abc import Callable, Mapping, Sequence

from bench.process import Failed, progress, run_benchmark
from bench.store import history, jobs, statements, trip
from bench.store.databases import Ground, ground
from bench.table import Table, keep

Measure = Callable[[Ground], Sequence[Table]]


def main() -> int:
    asked = _asked()
    tables: list[tuple[Table, str]] = []
    with ground() as place:
        for name, measure in _parts(asked).items():
            progress(f"{name} ...")
            began, load = time.monotonic(), os.getloadavg()[0]
            try:
                measured = measure(place)
            except Failed as fault:
                raise Failed(f"{name}: {fault}") from fault
            progress(f"{name}: {time.monotonic() - began:.0f} s")
            for table in measured:
                about = _about(place, load)
                print(f"\n{table.part}\n\n{table.text()}\n\n{about}\n", flush=True)
                tables.append((table, about))
    if asked.write:
        keep((table.part, f"{table.text()}\n\n{about}") for table, about in tables)
    missed = [f"{table.part}: {row}" for table, _ in tables for row in table.missed]
    for row in missed:
        print(f"missed: {row}")
    return 1 if missed else 0


def _asked() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench.store", description="How fast `say` and `wake` are.")
    named = list(_parts(argparse.Namespace(parts=(), small=False)))
    parser.add_argument("parts", nargs="*", metavar="PART", help=f"one or several of: {', '.join(named)}")
    parser.add_argument("--small", action="store_true", help="little of everything, for a quick look")
    parser.add_argument("--write", action="store_true", help="keep the tables in docs/performance.md")
    asked = parser.parse_args()
    unknown = set(asked.parts) - set(named)
    if unknown:
        parser.error(f"there is no part {', '.join(sorted(unknown))}; there are {', '.join(named)}")
    if asked.small and asked.write:
        parser.error("--small measures too little to be kept: leave out --write")
    return asked


def _parts(asked: argparse.Namespace) -> Mapping[str, Measure]:
    small: bool = asked.small
    every: dict[str, Measure] = {
        statements.PART: statements.measure,
        trip.PART: lambda place: trip.measure(place, trip.SMALL if small else trip.FULL),
        history.PART: lambda place: history.measure(place, history.SMALL if small else history.FULL),
        jobs.PART: lambda place: jobs.measure(place, jobs.SMALL if small else jobs.FULL, progress),
    }
    return {name: each for name, each in every.items() if not asked.parts or name in asked.parts}


def _about(place: Ground, load: float) -> str:
    """What kind of machine it was, and how busy."""
    return (
        f"{os.cpu_count()} cores, Python {platform.python_version()}, {place.versions()};"
        f" load average {load:.1f} before, {os.getloadavg()[0]:.1f} after."
    )


if __name__ == "__main__":
    sys.exit(run_benchmark(main))
