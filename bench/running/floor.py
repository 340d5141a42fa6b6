"""The floor: what no wake can do without. Four commits reach the disk, and a program is run."""

import sqlite3
import subprocess
import tempfile
import time
from pathlib import Path

COMMITS = 4
"""The wake, its claim, that the prompt goes out, and its end."""


def floor(times: int) -> list[float]:
    """Milliseconds of each round."""
    taken = []
    with tempfile.TemporaryDirectory(prefix="clew-bench-") as directory:
        connection = sqlite3.connect(Path(directory) / "floor.db", isolation_level=None)
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = FULL")
        connection.execute("CREATE TABLE floor (at REAL)")
        for _ in range(times):
            began = time.perf_counter_ns()
            for _ in range(COMMITS):
                connection.execute("INSERT INTO floor VALUES (1.0)")
            subprocess.run(["/bin/true"], check=True, stdin=subprocess.DEVNULL, start_new_session=True)
            taken.append((time.perf_counter_ns() - began) / 1e6)
        connection.close()
    return taken
