"""The writer: one thread owns the only writing connection of a SQLite file, and commits what waits together."""

import queue
import threading
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Any, TypeVar

from sqlalchemy import Connection, Engine

from clew.store.faults import Closed

Result = TypeVar("Result")
Operation = Callable[[Connection], Result]

MOST_AT_ONCE = 128
"""How many operations share one commit: enough to share the cost of the disk, few enough to answer soon."""


@dataclass(frozen=True, slots=True)
class _Job:
    operation: Operation[Any]
    answer: Future[Any]


class Writer:
    """Callers hand in operations and wait for their answers; an answer is given after the commit, never before.

    Concurrent callers share one transaction and so one wait for the disk. Each operation stands in a savepoint
    of its own: one that fails is undone alone.
    """

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
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
        with self._engine.connect() as connection:
            while jobs := self._take():
                _commit(connection, jobs)

    def _take(self) -> list[_Job]:
        """All that waits, up to the most at once; nothing when it is time to stop."""
        first = self._waiting.get()
        if first is None:
            return []
        jobs = [first]
        while len(jobs) < MOST_AT_ONCE:
            try:
                job = self._waiting.get_nowait()
            except queue.Empty:
                break
            if job is None:
                # Put back, so that the next call stops.
                self._waiting.put(None)
                break
            jobs.append(job)
        return jobs


def _commit(connection: Connection, jobs: list[_Job]) -> None:
    wanted = [job for job in jobs if job.answer.set_running_or_notify_cancel()]
    try:
        connection.exec_driver_sql("BEGIN IMMEDIATE")
        answers = [(job, *_in_savepoint(connection, job.operation)) for job in wanted]
        connection.exec_driver_sql("COMMIT")
    except BaseException as fault:  # noqa: BLE001 - whatever it is, the callers must hear of it
        _roll_back(connection)
        # Nothing of this transaction was kept, so nobody may be told otherwise.
        for job in wanted:
            job.answer.set_exception(fault)
        return
    for job, result, failed in answers:
        if failed is None:
            job.answer.set_result(result)
        else:
            job.answer.set_exception(failed)


def _in_savepoint(connection: Connection, operation: Operation[Any]) -> tuple[Any, BaseException | None]:
    connection.exec_driver_sql("SAVEPOINT operation")
    try:
        result = operation(connection)
    except Exception as fault:  # noqa: BLE001 - handed to the caller of this operation
        connection.exec_driver_sql("ROLLBACK TO operation")
        connection.exec_driver_sql("RELEASE operation")
        return None, fault
    connection.exec_driver_sql("RELEASE operation")
    return result, None


def _roll_back(connection: Connection) -> None:
    raw = connection.connection.driver_connection
    if raw is not None and raw.in_transaction:
        connection.exec_driver_sql("ROLLBACK")
