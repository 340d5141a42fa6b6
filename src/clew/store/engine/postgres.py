"""PostgreSQL: several servers on one database. Operations wait out its restart, and are run again after a lost race."""

import math
import random
import time
from collections.abc import Callable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from queue import LifoQueue
from typing import Any, TypeVar

import psycopg
from sqlalchemy import URL, Connection, create_engine
from sqlalchemy.event import listen
from sqlalchemy.exc import DBAPIError, InvalidRequestError, OperationalError
from sqlalchemy.exc import TimeoutError as NoneFree

from clew.store.engine.address import show_url
from clew.store.engine.database import LostRace, Operation
from clew.store.engine.hints import LINGER, Board, Pacer, Subscription, Topics, pop_hints, work
from clew.store.engine.notify import ALIVE, Listener, Teller
from clew.store.engine.statement import pipeline_of
from clew.store.faults import Busy, Closed, Unreachable

Result = TypeVar("Result")

WRITERS = 12
"""How many operations of one server write at once, each on one of as many connections that are kept open."""

READERS = 8
"""How many operations read at once, besides the writers."""

PATIENCE = 30.0
"""Seconds for which an operation is run again while the database cannot be reached. Each is safe to repeat."""

# Lost races: serialization_failure, deadlock_detected, unique_violation, lock_not_available (from `wait_briefly`). The
# operation, run again, sees what the winner committed.
_RACES = {"40001", "40P01", "23505", "55P03"}
# A prepared statement is missing, or its name is taken.
_UNPREPARED = {"26000", "42P05"}
_TRIES = 50
# Over whatever is set for the database or the role. READ COMMITTED: each statement sees what was committed before it,
# also after a wait for a lock. No statement_timeout: every trip has a deadline of its own.
_OPTIONS = " ".join(
    f"-c {name}"
    for name in (
        "default_transaction_isolation=read\\ committed",
        "statement_timeout=0",
        "lock_timeout=0",
    )
)
_CONNECT_ARGS: Mapping[str, Any] = {
    "options": _OPTIONS,
    "client_encoding": "utf8",
    # The pipeline prepares statements.
    "prepare_threshold": None,
    **ALIVE,
}
_PAUSE = 0.1


class PostgresDatabase:
    def __init__(self, url: URL, patience: float = PATIENCE) -> None:
        self._where = show_url(url)
        self._patience = patience
        self._engine = create_engine(url, pool_size=WRITERS + READERS, max_overflow=0, connect_args=dict(_CONNECT_ARGS))
        try:
            with self._engine.connect():
                pass
        except OperationalError as fault:
            self._engine.dispose()
            raise self._away(fault) from fault
        # A statement that SQLAlchemy itself sends must come after the deferred ones.
        listen(self._engine, "before_cursor_execute", lambda connection, *_: pipeline_of(connection).ask(()))
        for ends in ("commit", "rollback"):
            listen(self._engine, ends, _must_not_end_it)
        self._threads = ThreadPoolExecutor(WRITERS, thread_name_prefix="clew-postgres")
        self._closed = False
        # Last in, first out: the connection used last has the warmest caches. None: not connected yet.
        self._kept: LifoQueue[Connection | None] = LifoQueue()
        for _ in range(WRITERS):
            self._kept.put(None)
        self._board = Board()
        # It has a connection of its own, so that a hint never waits for a free one.
        self._teller = Teller(url)
        self._listener = Listener(url, self._board.put, self._teller.is_own)
        self._pacer = Pacer(self._tell, linger=LINGER)

    def write(self, operation: Operation[Result]) -> Future[Result]:
        try:
            return self._threads.submit(self.do, operation)
        except RuntimeError as fault:
            raise _closed() from fault

    def do(self, operation: Operation[Result]) -> Result:
        return self._until_done(self._on_kept, operation)

    def read(self, operation: Operation[Result]) -> Result:
        return self._until_done(self._on_any, operation)

    def subscribe(self) -> Subscription:
        return self._board.subscribe()

    def unsubscribe(self, reader: Subscription) -> None:
        self._board.unsubscribe(reader)

    def close(self) -> None:
        if self._closed:
            return
        self._threads.shutdown()
        self._closed = True
        for _ in range(WRITERS):
            connection = self._kept.get()
            if connection is not None:
                connection.close()
        # A thread that still waits for a connection gets this one, and then Closed.
        self._kept.put(None)
        self._pacer.close()
        self._listener.close()
        self._teller.close()
        self._engine.dispose()

    def _until_done(self, once: Callable[[Operation[Result], bool], Result], operation: Operation[Result]) -> Result:
        deadline, tries = math.inf, 0
        while True:
            tries += 1
            try:
                return once(operation, deadline < math.inf)
            except (DBAPIError, psycopg.Error, LostRace) as fault:
                if _lost_race(fault):
                    if tries == _TRIES:
                        words = f"{tries} attempts in a row lost a race against other writers: {_driver_fault(fault)}"
                        raise Busy(words, "Try again.") from fault
                    time.sleep(random.uniform(0.0, 0.002 * tries))
                elif not _is_away(fault):
                    raise
                elif time.monotonic() >= deadline:
                    raise self._away(fault) from fault
                else:
                    # The time counts from the first failure: perhaps only this connection was lost.
                    deadline = min(deadline, time.monotonic() + self._patience)
                    time.sleep(_PAUSE)

    def _on_kept(self, operation: Operation[Result], lost: bool) -> Result:
        """On a connection that is kept open: the pool would check and reset its own before and after each use."""
        connection = self._kept.get()
        try:
            if self._closed:
                raise _closed()
            connection = connection or self._engine.connect()
            return self._once(connection, operation, lost)
        finally:
            self._kept.put(connection)

    def _on_any(self, operation: Operation[Result], lost: bool) -> Result:
        try:
            connection = self._engine.connect()
        except NoneFree as fault:
            raise Busy("Every connection for reading is in use.", "Try again.") from fault
        with connection:
            return self._once(connection, operation, lost)

    def _once(self, connection: Connection, operation: Operation[Result], lost: bool) -> Result:
        try:
            # The pipeline begins and commits the transaction. SQLAlchemy knows of one only if the operation used it.
            pipeline = pipeline_of(connection)
            pipeline.defers, pipeline.lost = True, lost
            result = operation(connection)
            pipeline.defers = False
            pipeline.commit()
            if connection.in_transaction():
                connection.commit()
        except BaseException as fault:
            _undo(connection, fault)
            raise
        self._publish(connection)
        return result

    def _publish(self, connection: Connection) -> None:
        topics = pop_hints(connection)
        if waits := work(topics):
            self._board.put(waits)
        self._pacer.put(topics)

    def _tell(self, topics: Topics) -> None:
        """Hints for this server's readers, except work, which they already have; then for other servers."""
        if others := topics - work(topics):
            self._board.put(others)
        self._teller.tell(topics)

    def _away(self, fault: Exception) -> Unreachable:
        said = str(fault.orig if isinstance(fault, DBAPIError) else fault).strip().partition("\n")[0].rstrip(".")
        return Unreachable(f"{self._where} cannot be reached: {said}.", "Check the address and that it runs.")


def _must_not_end_it(connection: Connection) -> None:
    if not connection.invalidated and pipeline_of(connection).defers:
        raise InvalidRequestError("an operation is one transaction and must not commit or roll back itself")


def _undo(connection: Connection, fault: BaseException) -> None:
    # If SQLAlchemy itself noticed that the server is gone, it has already discarded the driver's connection.
    if not connection.invalidated:
        pop_hints(connection)
        pipeline_of(connection).defers = False
        if pipeline_of(connection).fails() or _is_stale(fault):
            connection.invalidate()
        else:
            _roll_back(connection)
    if connection.in_transaction():
        connection.rollback()


def _roll_back(connection: Connection) -> None:
    """Roll back on the driver's connection: SQLAlchemy may not know of the transaction that the pipeline began."""
    try:
        connection.connection.rollback()
    except psycopg.Error:
        connection.invalidate()


def _closed() -> Closed:
    return Closed("The database is closed.", "Open it again before writing.")


def _driver_fault(fault: Exception) -> BaseException | None:
    return fault.orig if isinstance(fault, DBAPIError) else fault


def _lost_race(fault: Exception) -> bool:
    known = getattr(_driver_fault(fault), "sqlstate", None) in _RACES
    return known or isinstance(fault, LostRace) or _is_stale(fault)


def _is_stale(fault: BaseException) -> bool:
    """Whether a prepared statement of this connection no longer fits, because another server changed the schema."""
    driver = fault.orig if isinstance(fault, DBAPIError) else fault
    state = getattr(driver, "sqlstate", None)
    return state in _UNPREPARED or (state == "0A000" and "cached plan" in str(driver))


def _is_away(fault: Exception) -> bool:
    """Whether the server does not answer, or is shutting down or starting (57P.., 08..)."""
    driver = _driver_fault(fault)
    if not isinstance(driver, (psycopg.OperationalError, psycopg.InterfaceError)):
        return False
    state = getattr(driver, "sqlstate", None)
    return state is None or state.startswith(("57P", "08"))
