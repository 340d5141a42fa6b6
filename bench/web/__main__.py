"""`python -m bench.web`: what open pages cost, and how soon they have what is durable."""

import argparse
import os
import tempfile
from pathlib import Path

from bench.process import run_benchmark
from bench.table import keep
from bench.web import live


def main() -> int:
    asked = _asked()
    load = os.getloadavg()[0]
    with tempfile.TemporaryDirectory(prefix="clew-bench-") as directory:
        root = Path(directory).resolve()
        tables = [live.measure(root, live.SMALL if asked.small else live.FULL)]
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
    parser = argparse.ArgumentParser(prog="python -m bench.web", description="What open pages cost.")
    parser.add_argument("--small", action="store_true", help="few pages, for a quick look")
    parser.add_argument("--write", action="store_true", help="keep the tables in docs/performance.md")
    asked = parser.parse_args()
    if asked.small and asked.write:
        parser.error("--small measures too little to be kept: leave out --write")
    return asked


if __name__ == "__main__":
    raise SystemExit(run_benchmark(main))
