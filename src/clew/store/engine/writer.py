"""The writer: one thread owns the only writing connection of a SQLite file, and commits what waits together."""

import contextlib
import queue
import sqlite3
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Any, TypeVar

from sqlalchemy import Connection

from clew.store.engine.hints import Topics, pop_hints
from clew.store.faults import Closed

Result = TypeVar("Result")
Operation = Callable[[Connection], Result]

MOST_AT_ONCE = 128
"""How many operations share one commit: enough to share the cost of the disk, few enough to answer soon."""

LINGER = 0.0003
"""Seconds to wait for callers that were just answered and are likely to come again, before the disk is waited for."""


@dataclass(frozen=True, slots=True)
class _Job:
    operation: Operation[Any]
    answer: Future[Any]


class Writer:
    """Callers hand in operations and wait for their answers; an answer is given after the commit, never before.

    Concurrent callers share one transaction and so one wait for the disk. Each operation stands in a savepoint
    of its own: one that fails is undone alone. `publish` is told what was touched, once it is durable.
    """

    def __init__(
        self, connection: Connection, publish: Callable[[Topics], None], explain: Callable[[Exception], Exception]
    ) -> None:
        self._connection = connection
        self._publish = publish
        self._explain = explain
        self._waiting: queue.SimpleQueue[_Job | None] = queue.SimpleQueue()
        self._open = True
        self._gate = threading.Lock()
        self._thread = threading.Thread(target=self._serve, name="clew-writer", daemon=True)
        self._thread.start()

    def submit(self, operation: Operation[Result]) -> Future[Result]:
        answer: Future[Result] = Future()
        with self._gate:
            if not self._open:
                raise Closed("The database is closed.", "Open it again before writing.")
            self._waiting.put(_Job(operation, answer))
        return answer

    def close(self) -> None:
        """Finish what was handed in, then stop."""
        with self._gate:
            if not self._open:
                return
            self._open = False
            self._waiting.put(None)
        self._thread.join()

    def _serve(self) -> None:
        with self._connection as connection:
            answered = 0
            while jobs := self._take(answered):
                self._commit(connection, jobs)
                answered = len(jobs)

    def _take(self, answered: int) -> list[_Job]:
        """All that waits, up to the most at once; nothing when it is time to stop."""
        first = self._waiting.get()
        if first is None:
            return []
        jobs = [first]
        # Who was answered last time and who waits now are all there are; alone, nobody waits for anybody.
        crowd = min(answered + 1 + self._waiting.qsize(), MOST_AT_ONCE) if self._waiting.qsize() else 1
        deadline = time.monotonic() + LINGER
        while len(jobs) < MOST_AT_ONCE:
            left = deadline - time.monotonic() if len(jobs) < crowd else 0.0
            try:
                job = self._waiting.get(timeout=left) if left > 0 else self._waiting.get_nowait()
            except queue.Empty:
                break
            if job is None:
                # Put back, so that the next call stops.
                self._waiting.put(None)
                break
            jobs.append(job)
        return jobs

    def _commit(self, connection: Connection, jobs: list[_Job]) -> None:
        wanted = [job for job in jobs if job.answer.set_running_or_notify_cancel()]
        raw = _driver(connection)
        topics: set[str] = set()
        try:
            raw.execute("BEGIN IMMEDIATE")
            answers = [(job, *_in_savepoint(connection, raw, job.operation, topics)) for job in wanted]
            raw.execute("COMMIT")
        except BaseException as fault:  # noqa: BLE001 - whatever it is, the callers must hear of it
            with contextlib.suppress(sqlite3.Error):
                # A broken disk may refuse even this; the next BEGIN says so then.
                if raw.in_transaction:
                    raw.execute("ROLLBACK")
            pop_hints(connection)
            # Nothing of this transaction was kept, so nobody may be told otherwise.
            said = self._explain(fault) if isinstance(fault, Exception) else fault
            for job in wanted:
                job.answer.set_exception(said)
            return
        # A caller goes on as soon as its answer is there; the hints are for others.
        for job, result, failed in answers:
            if failed is None:
                job.answer.set_result(result)
            else:
                job.answer.set_exception(self._explain(failed))
        self._publish(frozenset(topics))


def _in_savepoint(
    connection: Connection, raw: sqlite3.Connection, operation: Operation[Any], topics: set[str]
) -> tuple[Any, Exception | None]:
    raw.execute("SAVEPOINT operation")
    try:
        result = operation(connection)
    except Exception as fault:
        pop_hints(connection)
        if not raw.in_transaction:
            # The disk is full or broken, and SQLite has undone the whole transaction: all of it has failed.
            raise
        raw.execute("ROLLBACK TO operation")
        raw.execute("RELEASE operation")
        return None, fault
    raw.execute("RELEASE operation")
    topics |= pop_hints(connection)
    return result, None


def _driver(connection: Connection) -> sqlite3.Connection:
    raw = connection.connection.driver_connection
    assert isinstance(raw, sqlite3.Connection)
    return raw
