"""The writer of a SQLite file: one thread owns the only writing connection, and commits waiting operations together."""

import contextlib
import queue
import sqlite3
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection

from clew.store.engine.database import Operation, Result
from clew.store.engine.hints import Topics, pop_hints
from clew.store.faults import Closed

MOST_AT_ONCE = 128
"""How many operations may share one commit: enough to share the cost of fsync, few enough to answer soon."""

LINGER = 0.0003
"""Seconds to wait, before the commit, for callers that were just answered and are likely to submit again."""


@dataclass(frozen=True, slots=True)
class _Job:
    operation: Operation[Any]
    answer: Future[Any]


class Writer:
    """Callers submit operations and get their answers after the commit, never before.

    Concurrent callers share one transaction and so one fsync. Each operation runs in a savepoint of its own: one that
    fails is rolled back alone. `publish` gets the hints once they are durable.
    """

    def __init__(
        self, connection: Connection, publish: Callable[[Topics], None], explain: Callable[[Exception], Exception]
    ) -> None:
        """`explain` turns a driver's error into the fault that the caller gets."""
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
        """Finish what was submitted, then stop."""
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
        """The waiting jobs, up to MOST_AT_ONCE; none when it is time to stop."""
        first = self._waiting.get()
        if first is None:
            return []
        jobs = [first]
        # The callers are those who were answered last time and those who wait now. A single caller never waits.
        crowd = min(answered + 1 + self._waiting.qsize(), MOST_AT_ONCE) if self._waiting.qsize() else 1
        deadline = time.monotonic() + LINGER
        while len(jobs) < MOST_AT_ONCE:
            left = deadline - time.monotonic() if len(jobs) < crowd else 0.0
            try:
                job = self._waiting.get(timeout=left) if left > 0 else self._waiting.get_nowait()
            except queue.Empty:
                break
            if job is None:
                # Put back, so that the next call returns nothing.
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
        except BaseException as fault:  # noqa: BLE001 - whatever it is, the callers must get it
            with contextlib.suppress(sqlite3.Error):
                # A broken disk may refuse even the ROLLBACK; then the next BEGIN fails.
                if raw.in_transaction:
                    raw.execute("ROLLBACK")
            pop_hints(connection)
            # The whole transaction is lost, so every caller gets the fault.
            said = self._explain(fault) if isinstance(fault, Exception) else fault
            for job in wanted:
                job.answer.set_exception(said)
            return
        # Answers first: the callers wait for them; the hints are for others.
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
            # The disk is full or broken, and SQLite has rolled back the whole transaction: every operation failed.
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
