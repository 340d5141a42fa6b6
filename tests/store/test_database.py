"""Databases: writes are durable when answered, share their commit, and undo alone."""

import subprocess
import sys
import threading
import time
from concurrent.futures import Future, wait
from pathlib import Path

import pytest
from sqlalchemy import Connection, insert, select, text

from clew.store.engine.database import Database, Operation
from clew.store.engine.dialect import read_clock
from clew.store.engine.open import open_database
from clew.store.engine.sqlite import SqliteDatabase
from clew.store.engine.statement import POSTGRESQL
from clew.store.faults import BadAddress, Closed, HeldByAnother, NotADatabase, Unreachable
from clew.store.schema.tables import machines


def add(name: str) -> Operation[str]:
    def operation(connection: Connection) -> str:
        connection.execute(insert(machines).values(id=name, name=name))
        return name

    return operation


def names(connection: Connection) -> set[str]:
    return set(connection.execute(select(machines.c.id)).scalars()) - {"unknown"}


def test_an_answered_write_is_seen_by_every_reader(database: Database) -> None:
    assert database.write(add("laptop")).result(30) == "laptop"
    assert database.read(names) == {"laptop"}


def test_a_write_that_fails_is_undone_alone(database: Database) -> None:
    def fails(connection: Connection) -> None:
        connection.execute(insert(machines).values(id="half", name="half"))
        raise ValueError("no")

    def slow(connection: Connection) -> None:
        connection.execute(insert(machines).values(id="first", name="first"))
        time.sleep(0.1)

    # The first holds the others up, so that those after it share one commit.
    answers: list[Future[object]] = [database.write(slow), database.write(add("a")), database.write(fails)]
    answers.append(database.write(add("b")))
    wait(answers, timeout=30)
    assert isinstance(answers[2].exception(), ValueError)
    assert [each.exception() for each in answers if each is not answers[2]] == [None, None, None]
    assert database.read(names) == {"first", "a", "b"}


def test_many_callers_at_once_are_all_served(database: Database) -> None:
    def call(number: int) -> None:
        for each in range(20):
            database.write(add(f"{number}-{each}")).result(30)

    callers = [threading.Thread(target=call, args=(number,)) for number in range(8)]
    for caller in callers:
        caller.start()
    for caller in callers:
        caller.join(60)
    assert len(database.read(names)) == 160


def test_reads_do_not_wait_for_writes(database: Database) -> None:
    going, may_end = threading.Event(), threading.Event()

    def holds(connection: Connection) -> None:
        connection.execute(insert(machines).values(id="held", name="held"))
        going.set()
        may_end.wait(30)

    answer = database.write(holds)
    assert going.wait(30)
    assert database.read(names) == set()
    may_end.set()
    answer.result(30)
    assert database.read(names) == {"held"}


def test_what_was_handed_in_is_finished_before_a_database_closes(address: str, database: Database) -> None:
    answers = [database.write(add(str(number))) for number in range(50)]
    database.close()
    assert [answer.result(0) for answer in answers] == [str(number) for number in range(50)]
    again = open_database(address)
    assert len(again.read(names)) == 50
    again.close()


def test_the_clock_is_the_databases_own(database: Database) -> None:
    first = database.read(read_clock)
    assert abs(first - time.time()) < 60
    assert database.read(read_clock) >= first


def test_a_closed_database_says_so(database: Database) -> None:
    database.close()
    database.close()
    with pytest.raises(Closed, match="is closed"):
        database.write(read_clock)
    with pytest.raises(Closed, match="is closed"):
        database.do(read_clock)


def test_a_program_ends_that_does_not_close_its_database(address: str) -> None:
    reads = "import sys; from clew.store.engine.dialect import read_clock\n"
    reads += "from clew.store.engine.open import open_database; open_database(sys.argv[1]).write(read_clock).result(30)"
    assert subprocess.run([sys.executable, "-c", reads, address], timeout=60, check=False).returncode == 0


def test_a_second_server_is_refused_and_told_who_holds_the_file(tmp_path: Path) -> None:
    path = tmp_path / "clew.db"
    holds = "import sys, time; from pathlib import Path; from clew.store.engine.sqlite import SqliteDatabase\n"
    holds += "held = SqliteDatabase(Path(sys.argv[1])); print('held', flush=True); time.sleep(60)"
    with subprocess.Popen([sys.executable, "-c", holds, str(path)], stdout=subprocess.PIPE, text=True) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "held\n"
        with pytest.raises(HeldByAnother) as refused:
            SqliteDatabase(path)
        holder.kill()
    assert refused.value.words.startswith(f"{path} is held by process {holder.pid} on ")
    assert refused.value.code == "store:held-by-another"
    # Killed, it holds nothing any more.
    SqliteDatabase(path).close()


def test_a_file_that_is_no_database_is_refused_and_left_as_it_is(tmp_path: Path) -> None:
    path = tmp_path / "clew.db"
    path.write_bytes(b"this is no database, whatever its name says" * 100)
    before = path.read_bytes()
    with pytest.raises(NotADatabase, match="not a database"):
        SqliteDatabase(path)
    assert path.read_bytes() == before


@pytest.mark.parametrize("address", ["mysql://host/name", "sqlite://", "nonsense://"])
def test_an_address_that_means_nothing_is_refused(address: str) -> None:
    with pytest.raises(BadAddress, match="address"):
        open_database(address)


def test_a_server_that_is_not_there_is_named_without_its_password() -> None:
    with pytest.raises(Unreachable) as refused:
        open_database("postgresql://clew:secret@127.0.0.1:1/clew")
    assert "secret" not in str(refused.value)
    assert "127.0.0.1" in refused.value.words


def test_a_directory_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way", encoding="utf-8")
    with pytest.raises(Unreachable, match="cannot be opened"):
        SqliteDatabase(tmp_path / "file" / "clew.db")


@pytest.mark.parametrize("address", [POSTGRESQL], indirect=True)
def test_what_is_set_for_a_database_otherwise_is_set_back(address: str) -> None:
    otherwise = {"default_transaction_isolation": "repeatable read", "statement_timeout": "1s", "lock_timeout": "1s"}
    name = address.rpartition("/")[2].partition("?")[0]
    database = open_database(address)
    try:
        for setting, value in otherwise.items():
            change = text(f"ALTER DATABASE \"{name}\" SET {setting} = '{value}'")
            database.write(lambda connection: connection.execute(change).rowcount).result(30)  # noqa: B023 - awaited
    finally:
        database.close()
    database = open_database(address)
    try:
        for reads in (database.read, database.do):
            assert reads(_settings) == ("read committed", "0", "0")
    finally:
        database.close()


def _settings(connection: Connection) -> tuple[str, ...]:
    settings = ("transaction_isolation", "statement_timeout", "lock_timeout")
    return tuple(connection.execute(text(f"SHOW {name}")).scalar_one() for name in settings)
