"""PostgreSQL: many servers on one database. A restart of it is waited out, a lost race is run again."""

import random
import time
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

import psycopg
from sqlalchemy import URL, Connection, create_engine
from sqlalchemy.exc import DBAPIError, OperationalError

from clew.store.database import LostRace, Operation
from clew.store.faults import Busy, Closed, Unreachable
from clew.store.hints import Board, Pacer, Subscription, take_hints
from clew.store.listening import Listener, notify

Result = TypeVar("Result")

CONNECTIONS = 16
PATIENCE = 30.0
"""How long an operation is run again while the database is away. Each is safe to repeat."""

# A race that was lost for a lock or a key: the same operation, run again, sees what the winner wrote.
_RACES = {"40001", "40P01", "23505"}
_TRIES = 50
_CONNECT = 10
# A statement is planned once for each connection, because planning took longer than the work; and by its index even
# before the database has counted its rows.
_OPTIONS = "-c plan_cache_mode=force_generic_plan -c enable_bitmapscan=off -c enable_seqscan=off"
_PAUSE = 0.1


class PostgresDatabase:
    def __init__(self, url: URL, patience: float = PATIENCE) -> None:
        self._where = url.render_as_string(hide_password=True)
        self._patience = patience
        self._engine = create_engine(
            url, pool_size=CONNECTIONS, max_overflow=0, connect_args={"options": _OPTIONS, "connect_timeout": _CONNECT}
        )
        try:
            with self._engine.connect():
                pass
        except OperationalError as fault:
            self._engine.dispose()
            raise self._away(fault) from fault
        self._threads = ThreadPoolExecutor(CONNECTIONS, thread_name_prefix="clew-postgres")
        self._board = Board()
        self._listener = Listener(url, self._board.put)
        self._pacer = Pacer(lambda topics: notify(self._engine, topics))

    def write(self, operation: Operation[Result]) -> Future[Result]:
        try:
            return self._threads.submit(self._until_done, operation)
        except RuntimeError as fault:
            raise Closed("The database is closed.", "Open it again before writing.") from fault

    def read(self, operation: Operation[Result]) -> Result:
        return self._until_done(operation)

    def subscribe(self) -> Subscription:
        return self._board.subscribe()

    def unsubscribe(self, reader: Subscription) -> None:
        self._board.unsubscribe(reader)

    def close(self) -> None:
        self._threads.shutdown()
        self._pacer.close()
        self._listener.close()
        self._engine.dispose()

    def _until_done(self, operation: Operation[Result]) -> Result:
        deadline, tries = time.monotonic() + self._patience, 0
        while True:
            tries += 1
            try:
                return self._once(operation)
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
                    time.sleep(_PAUSE)

    def _once(self, operation: Operation[Result]) -> Result:
        with self._engine.connect() as connection:
            try:
                with connection.begin():
                    result = operation(connection)
            except BaseException as fault:
                take_hints(connection)
                if isinstance(fault, (DBAPIError, psycopg.Error)) and _is_away(fault):
                    # The server is gone, and this connection with it: nobody else shall be handed it.
                    connection.invalidate()
                raise
            self._publish(connection)
            return result

    def _publish(self, connection: Connection) -> None:
        self._pacer.put(take_hints(connection))

    def _away(self, fault: Exception) -> Unreachable:
        said = fault.orig if isinstance(fault, DBAPIError) else fault
        return Unreachable(f"{self._where} cannot be reached: {said}", "Check the address and that it runs.")


def _driver_fault(fault: Exception) -> BaseException | None:
    return fault.orig if isinstance(fault, DBAPIError) else fault


def _lost_race(fault: Exception) -> bool:
    return isinstance(fault, LostRace) or getattr(_driver_fault(fault), "sqlstate", None) in _RACES


def _is_away(fault: Exception) -> bool:
    """The server does not answer, or is on its way down or up; an error in a statement is neither."""
    driver = _driver_fault(fault)
    if not isinstance(driver, (psycopg.OperationalError, psycopg.InterfaceError)):
        return False
    state = getattr(driver, "sqlstate", None)
    return state is None or state.startswith(("57P", "08"))
