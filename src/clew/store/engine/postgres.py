"""PostgreSQL: many servers on one database. A restart of it is waited out, a lost race is run again."""

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
"""How many operations of one server write at once, each on a connection that is kept for them."""

READERS = 8
"""How many read at once, beside them."""

PATIENCE = 30.0
"""How long an operation is run again while the database is away. Each is safe to repeat."""

# A race that was lost for a lock or a key: the same operation, run again, sees what the winner wrote.
# 55P03 (lock_not_available) comes from `wait_briefly` (statement.py).
_RACES = {"40001", "40P01", "23505", "55P03"}
_UNPREPARED = {"26000", "42P05"}
_TRIES = 50
# What somebody has set for the database otherwise is set back: a look again sees what came meanwhile, and every trip
# has a deadline of its own.
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
    # Statements are prepared by the pipeline.
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
        # What SQLAlchemy itself sends comes after what the pipeline was left with.
        listen(self._engine, "before_cursor_execute", lambda connection, *_: pipeline_of(connection).ask(()))
        for ends in ("commit", "rollback"):
            listen(self._engine, ends, _must_not_end_it)
        self._threads = ThreadPoolExecutor(WRITERS, thread_name_prefix="clew-postgres")
        self._closed = False
        # The one that was used last is the next: what the server keeps for it is warm. None is not connected yet.
        self._kept: LifoQueue[Connection | None] = LifoQueue()
        for _ in range(WRITERS):
            self._kept.put(None)
        self._board = Board()
        # A connection of its own: nobody is told late because others read.
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
        # Whoever still waits for one is told.
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
                        raise Busy(
                            f"{tries} others were faster each time: {_driver_fault(fault)}", "Try again."
                        ) from fault
                    time.sleep(random.uniform(0.0, 0.002 * tries))
                elif not _is_away(fault):
                    raise
                elif time.monotonic() >= deadline:
                    raise self._away(fault) from fault
                else:
                    # Once at least: it may have been this connection alone.
                    deadline = min(deadline, time.monotonic() + self._patience)
                    time.sleep(_PAUSE)

    def _on_kept(self, operation: Operation[Result], lost: bool) -> Result:
        """On a connection that is kept: one from the pool would be looked over before and after each time."""
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
            # The pipeline begins and ends the transaction; SQLAlchemy knows of one where an operation used it.
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
        """Readers here, of all but work, which was put up at once; then everybody else's."""
        if others := topics - work(topics):
            self._board.put(others)
        self._teller.tell(topics)

    def _away(self, fault: Exception) -> Unreachable:
        said = str(fault.orig if isinstance(fault, DBAPIError) else fault).strip().partition("\n")[0].rstrip(".")
        return Unreachable(f"{self._where} cannot be reached: {said}.", "Check the address and that it runs.")


def _must_not_end_it(connection: Connection) -> None:
    if not connection.invalidated and pipeline_of(connection).defers:
        raise InvalidRequestError("an operation is one transaction, and does not end it itself")


def _undo(connection: Connection, fault: BaseException) -> None:
    # SQLAlchemy may have found out itself that the server is gone, and let go of all that was kept with it.
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
    """What the pipeline began, whether SQLAlchemy knows of it or not."""
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
    """What was prepared on this connection does not fit any more, since the schema was changed by another server."""
    driver = fault.orig if isinstance(fault, DBAPIError) else fault
    state = getattr(driver, "sqlstate", None)
    return state in _UNPREPARED or (state == "0A000" and "cached plan" in str(driver))


def _is_away(fault: Exception) -> bool:
    """The server does not answer, or is on its way down or up; an error in a statement is neither."""
    driver = _driver_fault(fault)
    if not isinstance(driver, (psycopg.OperationalError, psycopg.InterfaceError)):
        return False
    state = getattr(driver, "sqlstate", None)
    return state is None or state.startswith(("57P", "08"))
