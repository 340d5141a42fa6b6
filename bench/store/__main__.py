"""`python -m bench.store`: measures the parts that are named, or all but the others' (`--peers` adds them)."""

import argparse
import os
import platform
import sys
import time
from collections.abc import Callable, Mapping

from bench.store import cycles, events, history, statements
from bench.store.databases import Ground, ground
from bench.store.peers import side_by_side
from bench.table import Table, keep

Measure = Callable[[Ground], Table]


def main() -> int:
    asked = _asked()
    tables: list[tuple[Table, str]] = []
    with ground() as place:
        for name, measure in _parts(asked).items():
            _say(f"{name} ...")
            began, load = time.monotonic(), os.getloadavg()[0]
            table = measure(place)
            about = _about(place, load)
            _say(f"{name}: {time.monotonic() - began:.0f} s")
            print(f"\n{name}\n\n{table.text()}\n\n{about}\n", flush=True)
            tables.append((table, about))
    if asked.write:
        keep((table.part, f"{table.text()}\n\n{about}") for table, about in tables)
    missed = [f"{table.part}: {row}" for table, _ in tables for row in table.missed]
    for row in missed:
        print(f"missed: {row}")
    return 1 if missed else 0


def _asked() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench.store", description="How fast the store is.")
    named = [cycles.PART, statements.PART, history.PART, events.PART, side_by_side.PART]
    parser.add_argument("parts", nargs="*", metavar="PART", help=f"one or several of: {', '.join(named)}")
    parser.add_argument("--peers", action="store_true", help="also DBOS and Procrastinate, which are installed for it")
    parser.add_argument("--small", action="store_true", help="a history a tenth as long, for a quick look")
    parser.add_argument("--write", action="store_true", help="keep the tables in docs/performance.md")
    asked = parser.parse_args()
    unknown = set(asked.parts) - set(named)
    if unknown:
        parser.error(f"there is no part {', '.join(sorted(unknown))}; there are {', '.join(named)}")
    return asked


def _parts(asked: argparse.Namespace) -> Mapping[str, Measure]:
    size = history.QUICK if asked.small else history.LARGE
    every: dict[str, Measure] = {
        statements.PART: statements.measure,
        cycles.PART: cycles.measure,
        history.PART: lambda place: history.measure(place, size),
        events.PART: events.measure,
        side_by_side.PART: lambda place: side_by_side.measure(place, _say),
    }
    chosen = asked.parts or [name for name in every if name != side_by_side.PART]
    return {name: each for name, each in every.items() if name in chosen or (name == side_by_side.PART and asked.peers)}


def _about(place: Ground, load: float) -> str:
    """What kind of machine it was, and how busy."""
    return (
        f"{os.cpu_count()} cores, Python {platform.python_version()}, {place.versions()};"
        f" load average {load:.1f} before, {os.getloadavg()[0]:.1f} after."
    )


def _say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
