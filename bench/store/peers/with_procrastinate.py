"""Procrastinate: a queue in PostgreSQL whose worker is told of new jobs, all in one event loop."""

import asyncio
import time

from procrastinate import App, PsycopgConnector  # type: ignore[import-not-found,unused-ignore]

from bench.store.peers.workload import (
    ARRIVALS,
    CALLERS,
    JOBS,
    PATIENCE,
    WARM_UP,
    WORKERS,
    Marks,
    Result,
    answer,
    pauses,
    settings,
)

_COUNT = "SELECT count(*) AS done FROM procrastinate_jobs WHERE status = 'succeeded'"


class Bench:
    def __init__(self, address: str, pool: int | None) -> None:
        sizes = {} if pool is None else {"min_size": pool, "max_size": pool}
        self.app = App(connector=PsycopgConnector(conninfo=address, **sizes))
        self.marks = Marks()

        async def start(number: int) -> None:
            self.marks.start(number)

        self._job = self.app.task(name="job")(start)

    async def ask(self, number: int) -> None:
        self.marks.ask(number)
        await self._job.defer_async(number=number)

    async def many(self, jobs: range) -> float:
        began = time.perf_counter_ns()
        left = iter(jobs)

        async def caller() -> None:
            for number in left:
                await self.ask(number)

        await asyncio.gather(*(caller() for _ in range(CALLERS)))
        await self._all_done(jobs.stop)
        return len(jobs) / ((time.perf_counter_ns() - began) / 1e9)

    async def now_and_then(self, jobs: range) -> list[float]:
        for number, pause in zip(jobs, pauses(), strict=True):
            await asyncio.sleep(pause)
            await self.ask(number)
        await self._all_done(jobs.stop)
        return self.marks.waited_ms(jobs)

    async def _all_done(self, wanted: int) -> None:
        until = time.monotonic() + PATIENCE
        while self.marks.started() < wanted or await self._done() < wanted:
            if time.monotonic() > until:
                raise SystemExit(f"{wanted - self.marks.started()} jobs were never started.")
            await asyncio.sleep(0.002)

    async def _done(self) -> int:
        row = await self.app.connector.execute_query_one_async(_COUNT)
        return int(row["done"])


async def main() -> None:
    asked = settings()
    bench = Bench(asked["address"], asked["pool"])
    polling = {} if asked["polling"] is None else {"fetch_job_polling_interval": asked["polling"]}
    async with bench.app.open_async():
        await bench.app.schema_manager.apply_schema_async()
        worker = asyncio.create_task(
            bench.app.run_worker_async(concurrency=WORKERS, install_signal_handlers=False, **polling)
        )
        await bench.many(range(WARM_UP))
        per_second = await bench.many(range(WARM_UP, WARM_UP + JOBS))
        waited = await bench.now_and_then(range(WARM_UP + JOBS, WARM_UP + JOBS + ARRIVALS))
        answer(Result(per_second, waited))
        worker.cancel()
        await asyncio.gather(worker, return_exceptions=True)


if __name__ == "__main__":
    asyncio.run(main())
