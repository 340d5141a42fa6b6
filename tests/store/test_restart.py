"""PostgreSQL restarts: servers wait for it, continue without help, and lose nothing."""

import itertools
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from sqlalchemy import URL, Connection

from clew.store.engine.postgres import PostgresDatabase
from clew.store.faults import Unreachable
from clew.store.operations.wakes import accept_wake
from clew.store.schema.version import upgrade
from tests.store.kit import THREAD, furnish, queued, request, said_in, states
from tests.store.soak.killer import Killed
from tests.store.soak.notes import read_notes
from tests.store.soak.postgres import OwnPostgres, own_postgres
from tests.store.soak.scene import prepare
from tests.store.soak.verdict import judge
from tests.store.soak.workers import Server, start

_named = itertools.count()


@pytest.fixture(scope="module")
def server() -> Iterator[OwnPostgres]:
    """A server that nobody else uses."""
    with own_postgres() as started:
        yield started


@pytest.fixture
def url(server: OwnPostgres) -> URL:
    return server.make(f"restart_{next(_named)}")


@pytest.fixture
def database(url: URL) -> Iterator[PostgresDatabase]:
    """One that gives up after a second."""
    opened = PostgresDatabase(url, patience=1.0)
    opened.write(upgrade).result(30)
    opened.write(furnish).result(30)
    yield opened
    opened.close()


@pytest.mark.case("L01", "W07")
@pytest.mark.parametrize("mode", ["fast", "immediate"])
def test_two_servers_go_on_by_themselves_after_a_restart(
    server: OwnPostgres, url: URL, tmp_path: Path, mode: str
) -> None:
    databases = [PostgresDatabase(url) for _ in range(2)]
    closing = threading.Event()
    try:
        databases[0].write(prepare).result(60)
        workers = [
            worker
            for number, each in enumerate(databases)
            for worker in start(Server(each, tmp_path, f"s{number}", f"place-{number}", 3, closing))
        ]
        for _ in range(2):
            _work_goes_on(tmp_path)
            server.restart(mode)
        _work_goes_on(tmp_path)
        closing.set()
        for worker in workers:
            worker.join(60)
        assert not any(worker.is_alive() for worker in workers)
        address = url.render_as_string(hide_password=False)
        verdict = judge(databases[0], address, tmp_path, f"PostgreSQL, restarted ({mode})", Killed())
    finally:
        closing.set()
        for each in databases:
            each.close()
    assert verdict.holds, verdict.table()


def _work_goes_on(noted: Path) -> None:
    """Both servers accept and serve more than they have so far."""
    before, deadline = _done(noted), time.monotonic() + 30
    while any(now <= then for now, then in zip(_done(noted), before, strict=True)):
        assert time.monotonic() < deadline, f"nothing happens any more: {_done(noted)}"
        time.sleep(0.05)


def _done(noted: Path) -> list[int]:
    return [len(read_notes(noted, f"{kind}-{name}")) for kind in ("answered", "served") for name in ("s0", "s1")]


def test_hints_arrive_again_after_a_restart(server: OwnPostgres, url: URL, database: PostgresDatabase) -> None:
    other = PostgresDatabase(url)
    try:
        hints = other.subscribe()
        assert _hinted(database, hints.wait), "hints did not even arrive before"
        server.restart("fast")
        # What was missed meanwhile counts as anything; hints from before may still come first.
        assert any("*" in hints.wait(20) for _ in range(3))
        assert _hinted(database, hints.wait)
    finally:
        other.close()


def _hinted(database: PostgresDatabase, wait: object) -> bool:
    """Whether a wake that one server accepts is hinted at to another, sooner or later."""
    for _ in range(20):
        database.write(lambda connection: accept_wake(connection, request())).result(30)
        if f"thread:{THREAD}" in wait(1.0):  # type: ignore[operator]
            return True
    return False


def test_an_outage_that_is_too_long_is_told_with_what_to_do(server: OwnPostgres, database: PostgresDatabase) -> None:
    asked = request()
    server.stop("fast")
    try:
        began = time.monotonic()
        with pytest.raises(Unreachable) as told:
            database.write(lambda connection: accept_wake(connection, asked)).result(30)
        assert time.monotonic() - began >= 1.0
        with pytest.raises(Unreachable):
            database.read(states)
    finally:
        server.start()
    assert told.value.code == "store:unreachable"
    assert "cannot be reached" in told.value.words
    assert told.value.remedy == "Check the address and that it runs."
    assert database.read(states) == []
    # The same object works again, and the same request is one wake.
    for _ in range(2):
        assert database.write(lambda connection: accept_wake(connection, asked)).result(30).wake == asked.id
    assert len(database.read(states)) == 1


@pytest.mark.parametrize("mode", ["fast", "immediate"])
def test_what_an_outage_cuts_short_is_not_there_at_all(
    server: OwnPostgres, database: PostgresDatabase, mode: str
) -> None:
    asked = request()
    tried: list[float] = []

    def cut_short(connection: Connection) -> None:
        accept_wake(connection, asked)
        if not tried:
            server.stop(mode)
        tried.append(time.monotonic())

    try:
        with pytest.raises(Unreachable):
            database.write(cut_short).result(60)
    finally:
        server.start()
    assert len(tried) == 1
    assert (database.read(states), database.read(said_in), database.read(queued)) == ([], [], [])
    database.write(lambda connection: accept_wake(connection, asked)).result(30)
    assert (len(database.read(states)), len(database.read(said_in)), len(database.read(queued))) == (1, 1, 1)


def test_a_short_outage_is_waited_out_by_whoever_asks_meanwhile(server: OwnPostgres, url: URL) -> None:
    database = PostgresDatabase(url)
    try:
        database.write(upgrade).result(30)
        database.write(furnish).result(30)
        server.stop("immediate")
        asked = [request() for _ in range(20)]
        answers = [database.write(lambda connection, each=each: accept_wake(connection, each)) for each in asked]  # type: ignore[misc]
        time.sleep(0.5)
        server.start()
        assert [answer.result(60).wake for answer in answers] == [each.id for each in asked]
        assert sorted(answer.result(0).entry or 0 for answer in answers) == list(range(1, 21))
    finally:
        if not server.running:
            server.start()
        database.close()
