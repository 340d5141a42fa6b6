"""Hints: sent soon, at a limited rate, to every server, and never of what did not happen."""

import json
import time
from collections.abc import Iterator
from concurrent.futures import Future

import pytest
from sqlalchemy import Connection, text

from clew.kernel import ThreadId
from clew.store.engine.database import Database
from clew.store.engine.hints import PACE, Board, Pacer, Subscription, Topics, hint_thread
from clew.store.engine.open import open_database
from clew.store.engine.statement import POSTGRESQL
from clew.store.operations.wakes import accept_wake
from tests.store.kit import OTHER_THREAD, RUNTIME, THREAD, Daemon, request

PROBE = ThreadId("probe")
NOTIFY = text("SELECT pg_notify('clew_hints', :payload)")
SOON = 10.0
A_WHILE = 0.3


def heard(reader: Subscription, topic: str) -> bool:
    """Whether that is hinted at in time; everything else is passed over."""
    until = time.monotonic() + SOON
    while time.monotonic() < until:
        if topic in reader.wait(0.2):
            return True
    return False


def quiet(reader: Subscription) -> Topics:
    """What comes within a while, all together."""
    topics: Topics = frozenset()
    until = time.monotonic() + A_WHILE
    while (left := until - time.monotonic()) > 0:
        topics |= reader.wait(left)
    return topics - {"*"}


def listening(database: Database) -> Database:
    """Once it hears what somebody else tells, it hears everybody."""
    reader = database.subscribe()
    for _ in range(100):
        database.write(_told_by_another).result(30)
        if f"thread:{PROBE}" in reader.wait(0.1):
            quiet(reader)
            database.unsubscribe(reader)
            return database
    raise AssertionError("it does not listen")


def _told_by_another(connection: Connection) -> None:
    if connection.dialect.name == POSTGRESQL:
        connection.execute(NOTIFY, {"payload": json.dumps([f"thread:{PROBE}"])})
    else:
        hint_thread(connection, PROBE)


@pytest.fixture
def here(daemon: Daemon) -> Database:
    return listening(daemon.database)


@pytest.fixture
def other(address: str, here: Database) -> Iterator[Database]:
    """A second server on the same database; on SQLite there is only the one."""
    if not address.startswith("postgresql"):
        yield here
        return
    opened = open_database(address)
    try:
        yield listening(opened)
    finally:
        opened.close()


def test_every_reader_of_every_server_is_told_what_changed(daemon: Daemon, here: Database, other: Database) -> None:
    readers = [here.subscribe(), other.subscribe(), other.subscribe()]
    daemon.accept()
    for reader in readers:
        assert heard(reader, f"thread:{THREAD}")
    daemon.accept(thread=OTHER_THREAD)
    for reader in readers:
        assert heard(reader, f"queue:{RUNTIME}")


@pytest.mark.parametrize("topic", [f"queue:{RUNTIME}", f"thread:{THREAD}"])
def test_a_wake_that_is_asked_for_again_while_it_waits_is_hinted_at_again(
    daemon: Daemon, other: Database, topic: str
) -> None:
    """The first hints may have been lost together with the first answer."""
    asked = request()
    daemon.write(lambda connection: accept_wake(connection, asked))
    reader = other.subscribe()
    quiet(reader)
    assert daemon.write(lambda connection: accept_wake(connection, asked)).repeated
    assert heard(reader, topic)


def test_a_wake_that_is_asked_for_again_after_its_end_is_not_hinted_at(daemon: Daemon, other: Database) -> None:
    asked = request()
    daemon.write(lambda connection: accept_wake(connection, asked))
    daemon.serve()
    reader = other.subscribe()
    quiet(reader)
    assert daemon.write(lambda connection: accept_wake(connection, asked)).repeated
    assert quiet(reader) == frozenset()


def test_what_a_run_does_is_hinted_at(daemon: Daemon, other: Database) -> None:
    daemon.accept()
    reader = other.subscribe()
    order = daemon.claim_one()
    assert heard(reader, f"run:{order.run}")
    daemon.report(order, opens=True)
    assert heard(reader, f"run:{order.run}")


def test_nothing_is_told_of_what_was_undone(daemon: Daemon, other: Database) -> None:
    reader = other.subscribe()
    quiet(reader)

    def fails(connection: Connection) -> None:
        hint_thread(connection, THREAD)
        accept_wake(connection, request())
        raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        daemon.write(fails)
    assert quiet(reader) == frozenset()
    # And the next transaction does not carry it along.
    daemon.accept(thread=OTHER_THREAD)
    assert heard(reader, f"thread:{OTHER_THREAD}")
    assert f"thread:{THREAD}" not in quiet(reader)


def test_a_reader_that_left_is_told_nothing(daemon: Daemon, here: Database) -> None:
    stays, leaves = here.subscribe(), here.subscribe()
    here.unsubscribe(leaves)
    daemon.accept()
    assert heard(stays, f"thread:{THREAD}")
    assert leaves.wait(0) == frozenset()


def test_what_comes_quickly_is_told_together(daemon: Daemon, other: Database) -> None:
    reader = other.subscribe()
    began, told, deliveries = time.monotonic(), set[str](), 0

    def hint(number: int) -> Future[None]:
        return daemon.database.write(lambda connection: hint_thread(connection, ThreadId(f"t-{number}")))

    answers = [hint(number) for number in range(200)]
    while len(told) < 200 and time.monotonic() < began + SOON:
        topics = reader.wait(0.2)
        deliveries += bool(topics)
        told |= topics
    assert told == {f"thread:t-{number}" for number in range(200)}
    assert all(answer.done() for answer in answers)
    assert deliveries <= (time.monotonic() - began) / PACE + 2


def test_a_daemon_of_this_server_hears_of_work_without_the_pacer(
    daemon: Daemon, here: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    reader = here.subscribe()
    monkeypatch.setattr(here, "_pacer", Pacer(lambda _: None))
    daemon.accept()
    assert heard(reader, f"queue:{RUNTIME}")
    assert f"thread:{THREAD}" not in quiet(reader)


def test_a_pacer_sends_the_first_at_once_and_what_follows_together_after_its_pace() -> None:
    sent: list[tuple[float, Topics]] = []
    pacer = Pacer(lambda topics: sent.append((time.monotonic(), topics)), pace=1.0)
    began = time.monotonic()
    pacer.put(frozenset({"first"}))
    while not sent and time.monotonic() < began + SOON:
        time.sleep(0.001)
    for number in range(50):
        pacer.put(frozenset({str(number)}))
    pacer.close()
    (first, one), (second, rest) = sent
    assert one == {"first"}
    assert rest == {str(number) for number in range(50)}
    assert first - began < 0.9
    assert second - first >= 0.9


def test_a_hint_is_there_for_whoever_looks_later() -> None:
    board = Board()
    reader = board.subscribe()
    board.put(frozenset({"a"}))
    board.put(frozenset({"b"}))
    assert reader.wait(0) == {"a", "b"}
    assert reader.wait(0) == frozenset()


def test_the_end_of_a_run_is_hinted_at_by_its_thread(daemon: Daemon, other: Database) -> None:
    daemon.accept()
    order = daemon.claim_one()
    daemon.prompt(order, "n-1")
    reader = other.subscribe()
    quiet(reader)
    daemon.finish(order)
    assert heard(reader, f"thread:{THREAD}")


@pytest.mark.parametrize("address", ["postgresql"], indirect=True)
def test_a_word_that_nobody_understands_is_a_hint_at_anything(here: Database) -> None:
    reader = here.subscribe()
    for payload in ("", "{", "7"):
        here.write(lambda connection, payload=payload: connection.execute(NOTIFY, {"payload": payload})).result(30)  # type: ignore[misc]
        assert heard(reader, "*")


@pytest.mark.parametrize("address", [POSTGRESQL], indirect=True)
def test_a_hint_is_told_also_when_the_connection_for_it_is_gone(here: Database, other: Database) -> None:
    reader = other.subscribe()
    here.write(lambda connection: hint_thread(connection, THREAD)).result(30)
    assert heard(reader, f"thread:{THREAD}")
    # The connections of this database that tell, of both servers.
    ends = text("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE query LIKE 'SELECT pg_notify%'")
    assert here.read(lambda connection: len(connection.execute(ends).all()))
    here.write(lambda connection: hint_thread(connection, OTHER_THREAD)).result(30)
    assert heard(reader, f"thread:{OTHER_THREAD}")
