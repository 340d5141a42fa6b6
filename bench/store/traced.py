"""`clew up` that writes every statement SQLite runs for it to a file, one line each: `python -m bench.store.traced`."""

import os
import sqlite3
from itertools import count
from typing import Any

STATEMENTS = "CLEW_BENCH_STATEMENTS"
"""The environment variable that names the file."""


def main() -> None:
    file = os.open(os.environ[STATEMENTS], os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    connect, numbers = sqlite3.dbapi2.connect, count(1)

    def traced(*args: Any, **options: Any) -> sqlite3.Connection:
        connection: sqlite3.Connection = connect(*args, **options)
        number = next(numbers)
        connection.set_trace_callback(lambda sql: _write(file, number, sql))
        return connection

    sqlite3.dbapi2.connect = sqlite3.connect = traced  # type: ignore[assignment]
    from clew.cli import main as clew  # noqa: PLC0415 - it connects from here on

    clew()


def _write(file: int, connection: int, sql: str) -> None:
    os.write(file, f"{connection} {' '.join(sql.split())}\n".encode())


if __name__ == "__main__":
    main()
