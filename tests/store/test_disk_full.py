"""A full disk: what was confirmed is written, a caller that was not is told, and work continues afterwards."""

import sqlite3
import time
from collections.abc import Iterator
from concurrent.futures import Future, wait
from pathlib import Path

import pytest
from sqlalchemy import Connection

from clew.protocol.wakes import Accepted, Said
from clew.store.engine.sqlite import SqliteDatabase
from clew.store.faults import DiskFull
from clew.store.operations.wakes import accept_wake
from clew.store.schema.check import check
from clew.store.schema.version import upgrade
from tests.store.kit import PERSON, Daemon, furnish, request, said_in

LARGE = "x" * 20_000


@pytest.fixture
def full(tmp_path: Path) -> Iterator[Daemon]:
    """A daemon on a database that can grow by a few pages and no more."""
    database = SqliteDatabase(tmp_path / "clew.db")
    try:
        database.write(upgrade).result(30)
        database.write(furnish).result(30)
        daemon = Daemon(database)
        daemon.say("before")
        daemon.write(lambda connection: limit(connection, 10))
        yield daemon
        assert database.read(check) == ()
    finally:
        database.close()


def limit(connection: Connection, more: int) -> None:
    """The file may grow by that many pages; SQLite then says what it says of a full disk."""
    raw = connection.connection.driver_connection
    assert isinstance(raw, sqlite3.Connection)
    (pages,) = raw.execute("PRAGMA page_count").fetchone()
    raw.execute(f"PRAGMA max_page_count = {pages + more}")


def fill(daemon: Daemon) -> int:
    """Write until there is no room; how many were answered."""
    for answered in range(100):
        try:
            daemon.say(LARGE)
        except DiskFull:
            return answered
    raise AssertionError("the disk never got full")


def test_a_full_disk_is_named_and_what_was_answered_is_there(full: Daemon) -> None:
    answered = fill(full)
    with pytest.raises(DiskFull, match=r"(?i)full") as refused:
        full.say(LARGE)
    assert refused.value.code == "store:disk-full"
    assert refused.value.remedy == "Free some space; nothing that was confirmed is lost."
    assert len(full.database.read(said_in)) == 1 + answered


def test_writing_goes_on_when_there_is_room_again(full: Daemon) -> None:
    answered = fill(full)
    full.write(lambda connection: limit(connection, 10_000))
    full.say(LARGE)
    assert len(full.database.read(said_in)) == 2 + answered
    order = full.claim_one()
    assert len(order.wakes) == 2 + answered
    assert full.prompt(order, "n-1").may_prompt
    assert full.finish(order).taken


def test_whoever_shares_a_commit_with_a_full_disk_is_never_told_of_a_success_that_was_none(full: Daemon) -> None:
    def slow(connection: Connection) -> None:
        # Holds the others up, so that those after it share one commit.
        connection.exec_driver_sql("SELECT 1")
        time.sleep(0.1)

    first = full.database.write(slow)

    def say(text: str) -> Future[Accepted]:
        asked = request(said=Said(PERSON, text))
        return full.database.write(lambda connection: accept_wake(connection, asked))

    texts = [f"{number}" if number % 3 else f"{number}{LARGE}" for number in range(30)]
    told = [(text, say(text)) for text in texts]
    wait([first], timeout=60)
    wait([answer for _, answer in told], timeout=60)
    kept = {body for _, body in full.database.read(said_in)}
    assert {text for text, answer in told if answer.exception() is None} == kept - {"before"}
    faults = [answer.exception() for _, answer in told if answer.exception() is not None]
    assert faults
    assert {type(fault) for fault in faults} == {DiskFull}
