"""Standing still: an operation on PostgreSQL that waits before one of its statements, while another comes past it."""

import threading
import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from contextlib import contextmanager
from typing import Any

import pytest
from sqlalchemy import URL, Connection, create_engine, text
from sqlalchemy.pool import NullPool

from clew.store.engine import pipeline as pipelines
from clew.store.engine import postgres as store
from clew.store.engine.database import Database
from clew.store.engine.postgres import PostgresDatabase
from clew.store.engine.statement import Call
from clew.store.schema.version import upgrade

Act = Callable[[Connection], Any]
Asks = Callable[[pipelines.Pipeline, Sequence[Call]], list[pipelines.Answer]]

_here = threading.local()


class Halt:
    """Where an operation stands still: before its statement of that number."""

    def __init__(self, at: int) -> None:
        self.at = at
        self.reached, self.may_go_on = threading.Event(), threading.Event()
        self._statements = 0

    def passes(self) -> None:
        self._statements += 1
        if self._statements == self.at:
            self.reached.set()
            assert self.may_go_on.wait(60)


def overtaken(servers: Sequence[Database], first: Act, second: Act, at: int) -> tuple["Future[Any]", ...]:
    """What both say; the second passes, as far as it gets, while the first stands still before that statement."""
    halt = Halt(at)
    answer = servers[0].write(_halting(first, halt))
    while not halt.reached.wait(0.001) and not answer.done():
        pass
    other = servers[1].write(second)
    _until_it_waits(servers[1], other)
    halt.may_go_on.set()
    return answer, other


def one_by_one(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Every statement goes by itself from now on. The answer fills with what the database had to end because two waited
    for one another: it is run again, but only after a second."""
    found: list[str] = []
    lost_race = store._lost_race  # noqa: SLF001 - what is run again is seen nowhere else

    def seen(fault: Exception) -> bool:
        if "deadlock detected" in str(fault):
            found.append(str(fault))
        return lost_race(fault)

    monkeypatch.setattr(store, "_lost_race", seen)
    monkeypatch.setattr(pipelines.Pipeline, "ask", _each(pipelines.Pipeline.ask))
    monkeypatch.setattr(pipelines.Pipeline, "defer", lambda pipeline, call: pipeline.ask([call]))
    return found


@contextmanager
def two_servers(postgres: URL) -> Iterator[list[PostgresDatabase]]:
    """On one database of their own."""
    name = f"clew_{uuid.uuid4().hex}"
    admin = create_engine(postgres, isolation_level="AUTOCOMMIT", poolclass=NullPool)
    with admin.connect() as connection:
        connection.exec_driver_sql(f"CREATE DATABASE {name}")
    opened = [PostgresDatabase(postgres.set(database=name)) for _ in range(2)]
    opened[0].write(upgrade).result(60)
    yield opened
    for database in opened:
        database.close()
    with admin.connect() as connection:
        connection.exec_driver_sql(f"DROP DATABASE {name} WITH (FORCE)")


def _each(ask: Asks) -> Asks:
    """What is sent together goes one after the other, with a halt before every statement of whoever has one."""

    def asks(pipeline: pipelines.Pipeline, calls: Sequence[Call]) -> list[pipelines.Answer]:
        answers: list[pipelines.Answer] = []
        for call in calls:
            halt = getattr(_here, "halt", None)
            if halt is not None:
                halt.passes()
            answers += ask(pipeline, [call])
        return answers

    return asks


def _halting(act: Act, halt: Halt) -> Act:
    def halts(connection: Connection) -> Any:
        _here.halt = halt
        try:
            return act(connection)
        finally:
            _here.halt = None

    return halts


def _until_it_waits(server: Database, other: "Future[Any]") -> None:
    waits = text(
        "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'"
    )
    deadline = time.monotonic() + 2.0
    while not other.done() and time.monotonic() < deadline:
        if server.read(lambda connection: connection.execute(waits).scalar_one()):
            return
