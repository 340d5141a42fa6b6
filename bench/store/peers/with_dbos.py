"""DBOS: durable workflows, started from a queue that is polled."""

import sqlite3
from collections.abc import Callable
from typing import Any

import psycopg
from dbos import DBOS, DBOSConfig  # type: ignore[import-not-found,unused-ignore]

from bench.store.peers.workload import WORKERS, Marks, answer, drive, settings

QUEUE = "bench"


def main() -> None:
    asked = settings()
    marks = Marks()
    if asked["wal"]:
        # It stays with the file.
        sqlite3.connect(asked["address"].removeprefix("sqlite:///")).execute("PRAGMA journal_mode = WAL")
    config: DBOSConfig = {
        "name": "bench",
        "system_database_url": asked["address"],
        "log_level": "ERROR",
        "max_executor_threads": WORKERS,
        **({} if asked["pool"] is None else {"sys_db_pool_size": asked["pool"]}),
    }
    DBOS(config=config)

    def start(number: int) -> None:
        marks.start(number)

    job = DBOS.workflow()(start)
    DBOS.launch()
    polling = {} if asked["polling"] is None else {"polling_interval_sec": asked["polling"]}
    DBOS.register_queue(QUEUE, **polling)
    answer(drive(lambda number: DBOS.enqueue_workflow(QUEUE, job, number), marks, counting(asked["address"])))
    DBOS.destroy()


def counting(address: str) -> Callable[[], int]:
    """How many workflows have ended, read beside it."""
    connection: Any
    if address.startswith("sqlite"):
        connection, table = sqlite3.connect(address.removeprefix("sqlite:///"), timeout=30), "workflow_status"
    else:
        connection, table = psycopg.connect(address, autocommit=True), "dbos.workflow_status"
    query = f"SELECT count(*) FROM {table} WHERE status = 'SUCCESS'"
    return lambda: int(connection.execute(query).fetchone()[0])


if __name__ == "__main__":
    main()
