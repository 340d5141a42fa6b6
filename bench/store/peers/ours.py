"""Clew itself, as a daemon uses it: it claims as many runs as it has workers to spare, and stands by where there are
none, until one is handed to it or hinted at.

A worker says that the prompt goes out, and finishes; there is no agent in between, as the others' jobs do nothing.
"""

import threading
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

from bench.store.databases import opened
from bench.store.peers.workload import ARRIVALS, JOBS, WARM_UP, WORKERS, Marks, answer, drive, settings
from bench.store.scene import ASKS, RUNTIME, accept_one, complete, furnish, new_threads, tell
from clew.daemon.limits import Limits
from clew.kernel import ThreadId
from clew.protocol.orders import Order
from clew.store.engine.database import Database
from clew.store.engine.hints import Subscription
from clew.store.operations.claim import claim
from clew.store.schema.version import upgrade

LOOK_UP = 1.0
"""Seconds after which the daemon looks by itself: a hint may be lost."""

MINE = frozenset({f"queue:{RUNTIME}", "*"})


def main() -> None:
    with opened(settings()["address"]) as database:
        database.do(upgrade)
        furnish(database)
        threads = new_threads(database, WARM_UP + JOBS + ARRIVALS)
        daemon = Daemon(database, {thread: job for job, thread in enumerate(threads)})
        try:
            answer(drive(lambda job: accept_one(database, threads[job]), daemon.marks, daemon.done))
        finally:
            daemon.close()


class Daemon:
    """One thread that claims, and workers that serve."""

    def __init__(self, database: Database, jobs: dict[ThreadId, int]) -> None:
        self.marks = Marks()
        self._database = database
        self._jobs = jobs
        self._ended = 0
        self._free = WORKERS
        self._room = threading.Condition()
        self._closing = False
        self._workers = ThreadPoolExecutor(WORKERS)
        self._thread = threading.Thread(target=self._serve)
        self._thread.start()

    def done(self) -> int:
        """Every end is answered after its commit, so what is counted here is durable."""
        return self._ended

    def close(self) -> None:
        with self._room:
            self._closing = True
            self._room.notify()
        self._thread.join()
        self._workers.shutdown()

    def _serve(self) -> None:
        hints = self._database.subscribe()
        orders: Sequence[Order] = ()
        while not self._closing:
            with self._room:
                self._room.wait_for(lambda: self._free or self._closing)
                if orders:
                    # As a daemon does while work waits.
                    self._room.wait_for(lambda: self._free == WORKERS or self._closing, Limits().gather)
                asks = replace(ASKS, most=self._free)
            orders = self._database.do(lambda connection: claim(connection, asks))  # noqa: B023 - awaited
            self._start(orders)
            if len(orders) < asks.most:
                self._wait(hints)
        self._database.unsubscribe(hints)

    def _start(self, orders: Sequence[Order]) -> None:
        for order in orders:
            self.marks.start(self._jobs[order.thread.id])
            with self._room:
                self._free -= 1
            self._workers.submit(self._work, order)

    def _wait(self, hints: Subscription) -> None:
        until = time.monotonic() + LOOK_UP
        while not self._closing and (left := until - time.monotonic()) > 0:
            if hints.wait(left) & MINE:
                break

    def _work(self, order: Order) -> None:
        tell(self._database, order)
        complete(self._database, order)
        with self._room:
            self._ended += 1
            self._free += 1
            self._room.notify()


if __name__ == "__main__":
    main()
