"""Procrastinate: `task.defer` from the callers, and its own worker (`procrastinate worker`), which is notified of jobs.

`python -m bench.store.peers.procrastinate_app` is the callers' process; the worker imports `app` from here.
"""

import os
from pathlib import Path
from typing import Any

import psycopg
from procrastinate import App, PsycopgConnector  # type: ignore[import-not-found,unused-ignore]

from bench.store.peers.workload import STAMPS, Stamps, answer, drive, work_settings

_DONE = "SELECT count(*) FROM procrastinate_jobs WHERE status = 'succeeded'"

_settings = work_settings()
_stamps = Stamps(Path(os.environ[STAMPS]))
_pool: dict[str, Any] = {} if _settings.pool is None else {"min_size": _settings.pool, "max_size": _settings.pool}
app = App(connector=PsycopgConnector(conninfo=_settings.database, **_pool))


@app.task(name="job")  # type: ignore[untyped-decorator,unused-ignore]
async def job(number: int) -> None:
    _stamps.add(number)


def main() -> None:
    connection = psycopg.connect(_settings.database, autocommit=True)
    with app.open():
        answer(
            drive(
                lambda number: job.defer(number=number),
                lambda: int((connection.execute(_DONE).fetchone() or (0,))[0]),
            )
        )


if __name__ == "__main__":
    main()
