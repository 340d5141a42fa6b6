"""The floor: as little as a queue can do that marks a job as taken and as done.

Two bare updates of one row by its key, each a transaction of its own. It decides nothing, keeps no reason and checks no
promise. It has the driver and the durability of the store, and as many callers, each with a connection of its own.
"""

from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from typing import Any

import psycopg

from bench.store.databases import Kind, driver_address, sqlite_connection
from bench.timing import Work

_ROWS = 512
_TAKE = "UPDATE jobs SET state = 'taken', tries = tries + 1 WHERE id = {}"
_END = "UPDATE jobs SET state = 'done' WHERE id = {}"
_MAKE = "CREATE TABLE jobs (id integer PRIMARY KEY, state text NOT NULL, tries integer NOT NULL)"
_FILL = "INSERT INTO jobs VALUES ({}, 'new', 0)"


@contextmanager
def floor(kind: Kind, address: str, callers: int) -> Iterator[Callable[[int], Work]]:
    """What each caller does again and again, in an empty database at that address."""
    mark = "?" if kind is Kind.SQLITE else "%s"
    with ExitStack() as open_until_the_end:
        owned = [open_until_the_end.enter_context(closing(_connect(kind, address))) for _ in range(callers)]
        owned[0].execute(_MAKE)
        owned[0].execute("BEGIN")
        cursor = owned[0].cursor()
        cursor.executemany(_FILL.format(mark), [(row,) for row in range(callers * _ROWS)])
        owned[0].execute("COMMIT")
        take, end = _TAKE.format(mark), _END.format(mark)
        yield lambda caller: _marking(owned[caller].execute, take, end, caller * _ROWS)


def _connect(kind: Kind, address: str) -> Any:
    if kind is Kind.SQLITE:
        return sqlite_connection(Path(address))
    return psycopg.connect(driver_address(address), autocommit=True)


def _marking(execute: Callable[[str, tuple[int]], object], take: str, end: str, first: int) -> Work:
    """One row after the other, of the caller's own: none waits for another's lock on a row."""
    at = 0

    def work() -> None:
        nonlocal at
        at = (at + 1) % _ROWS
        execute(take, (first + at,))
        execute(end, (first + at,))

    return work
