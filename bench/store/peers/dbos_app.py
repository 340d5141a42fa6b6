"""DBOS: `DBOSClient.enqueue` from the callers, and an application that runs the workflows of a queue, which it polls.

`python -m bench.store.peers.dbos_app worker FILE` is the application, which makes that file once it is ready; without
arguments it is the callers' process.
"""

import os
import signal
import sys
from pathlib import Path

import psycopg
from dbos import DBOS, DBOSClient, DBOSConfig  # type: ignore[import-not-found,unused-ignore]

from bench.store.peers.workload import STAMPS, WORKERS, Stamps, answer, drive, work_settings

_QUEUE, _JOB = "bench", "job"
_DONE = "SELECT count(*) FROM dbos.workflow_status WHERE status = 'SUCCESS'"


def work(ready: Path) -> None:
    settings, stamps = work_settings(), Stamps(Path(os.environ[STAMPS]))
    config: DBOSConfig = {
        "name": "bench",
        "system_database_url": settings.database,
        "log_level": "ERROR",
        "max_executor_threads": WORKERS,
        **({} if settings.pool is None else {"sys_db_pool_size": settings.pool}),
    }
    DBOS(config=config)

    def start(number: int) -> None:
        stamps.add(number)

    DBOS.workflow(name=_JOB)(start)
    DBOS.launch()
    DBOS.register_queue(_QUEUE, **({} if settings.polling is None else {"polling_interval_sec": settings.polling}))
    ready.touch()
    signal.sigwait({signal.SIGTERM})
    DBOS.destroy()


def call() -> None:
    settings = work_settings()
    client = DBOSClient(system_database_url=settings.database, system_database_pool_size=settings.pool)
    connection = psycopg.connect(settings.database, autocommit=True)
    answer(
        drive(
            lambda number: client.enqueue({"queue_name": _QUEUE, "workflow_name": _JOB}, number),
            lambda: int((connection.execute(_DONE).fetchone() or (0,))[0]),
        )
    )
    client.destroy()


if __name__ == "__main__":
    if sys.argv[1:]:
        # Before any thread is started, so that all of them block it and `sigwait` gets it.
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})
        work(Path(sys.argv[2]))
    else:
        call()
