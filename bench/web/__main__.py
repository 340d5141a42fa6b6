"""`python -m bench.web`: measures the parts that are named, or all of them."""

import argparse
import os
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from bench.process import Failed, progress, run_benchmark
from bench.store.databases import ground
from bench.table import Table, keep
from bench.web import following, live, opening, search
from bench.web.browser import without_browser
from bench.web.long_thread import with_threads

Measure = Callable[[Path, argparse.Namespace], Sequence[Table]]

_BROWSER = "pages"
_LONG, _SHORT = 5_000, 50
_LESS = 500
"""Entries of the long thread where only a little is measured."""


def main() -> int:
    asked = _asked()
    tables: list[Table] = []
    missing = without_browser() if _BROWSER in asked.parts else ""
    for name in asked.parts:
        if missing and name == _BROWSER:
            continue
        progress(f"{name} ...")
        began, load = time.monotonic(), os.getloadavg()[0]
        with tempfile.TemporaryDirectory(prefix="clew-bench-") as directory:
            try:
                measured = _PARTS[name](Path(directory).resolve(), asked)
            except Failed as fault:
                raise Failed(f"{name}: {fault}") from fault
        progress(f"{name}: {time.monotonic() - began:.0f} s")
        about = f"{os.cpu_count()} cores; load average {load:.1f} before, {os.getloadavg()[0]:.1f} after."
        for table in measured:
            table.note = f"{table.note} {about}".strip()
            print(f"\n{table.part}\n\n{table.text()}", flush=True)
            tables.append(table)
    if asked.write:
        keep((table.part, table.text()) for table in tables)
    missed = [f"{table.part}: {row}" for table in tables for row in table.missed]
    for row in missed:
        print(f"missed: {row}")
    if missing:
        print(f"NOT MEASURED: everything that needs a browser ({_BROWSER}). {missing}")
        return 2
    return 1 if missed else 0


def _pages(root: Path, asked: argparse.Namespace) -> Sequence[Table]:
    small = asked.small
    with with_threads(root, (_SHORT, _LESS if small else _LONG)) as (running, threads):
        progress("  opening threads ...")
        opened = opening.measure(running, threads, 3 if small else 15)
        printed = opening.measure_output(running)
        progress("  following them ...")
        return opened, printed, *following.measure(running, threads, following.SMALL if small else following.FULL)


def _live(root: Path, asked: argparse.Namespace) -> Sequence[Table]:
    return [live.measure(root, live.SMALL if asked.small else live.FULL)]


def _search(_: Path, asked: argparse.Namespace) -> Sequence[Table]:
    with ground() as place:
        return [search.measure(place, asked.entries or (search.SMALL if asked.small else search.FULL))]


_PARTS: Mapping[str, Measure] = {_BROWSER: _pages, live.PART: _live, search.PART: _search}


def _asked() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench.web", description="How fast pages and the search are.")
    parser.add_argument("parts", nargs="*", metavar="PART", help=f"one or several of: {', '.join(_PARTS)}")
    parser.add_argument("--small", action="store_true", help="little of everything, for a quick look")
    parser.add_argument("--entries", type=int, help=f"of the search; default: {search.FULL:,}")
    parser.add_argument("--write", action="store_true", help="keep the tables in docs/performance.md")
    asked = parser.parse_args()
    if unknown := set(asked.parts) - set(_PARTS):
        parser.error(f"there is no part {', '.join(sorted(unknown))}; there are {', '.join(_PARTS)}")
    if asked.write and (asked.small or asked.entries):
        parser.error("--small and --entries measure too little to be kept: leave out --write")
    asked.parts = asked.parts or list(_PARTS)
    return asked


if __name__ == "__main__":
    raise SystemExit(run_benchmark(main))
