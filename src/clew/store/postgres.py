"""PostgreSQL: many servers on one database. A restart of it is waited out, a lost race is run again."""

import time
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

from sqlalchemy import URL, create_engine
from sqlalchemy.exc import DBAPIError, OperationalError

from clew.store.database import Operation
from clew.store.faults import Unreachable

Result = TypeVar("Result")

CONNECTIONS = 16
PATIENCE = 30.0
"""How long an operation is run again while the database is away. Each is safe to repeat."""

# A race that was lost for a lock or a key: the same operation, run again, sees what the winner wrote.
_RACES = {"40001", "40P01", "23505"}
_TRIES = 10


class PostgresDatabase:
    def __init__(self, url: URL) -> None:
        self._url = url
        self._engine = create_engine(url, pool_size=CONNECTIONS, max_overflow=0, pool_pre_ping=True)
        self._threads = ThreadPoolExecutor(CONNECTIONS, thread_name_prefix="clew-postgres")
        try:
            with self._engine.connect():
                pass
        except OperationalError as fault:
            self.close()
            where = url.render_as_string(hide_password=True)
            raise Unreachable(
                f"{where} cannot be reached: {fault.orig}", "Check the address and that it runs."
            ) from fault

    def write(self, operation: Operation[Result]) -> Future[Result]:
        return self._threads.submit(self._until_done, operation)

    def read(self, operation: Operation[Result]) -> Result:
        return self._until_done(operation)

    def close(self) -> None:
        self._threads.shutdown()
        self._engine.dispose()

    def _until_done(self, operation: Operation[Result]) -> Result:
        deadline, tries = time.monotonic() + PATIENCE, 0
        while True:
            tries += 1
            try:
                with self._engine.begin() as connection:
                    return operation(connection)
            except DBAPIError as fault:
                lost_race = getattr(fault.orig, "sqlstate", None) in _RACES and tries < _TRIES
                is_away = _is_away(fault) and time.monotonic() < deadline
                if not (lost_race or is_away):
                    raise
                time.sleep(0.1 if is_away else 0.002 * tries)


def _is_away(fault: DBAPIError) -> bool:
    return fault.connection_invalidated or isinstance(fault, OperationalError)
