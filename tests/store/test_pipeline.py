"""The pipeline to PostgreSQL: what is sent together, and what becomes of it when something fails on the way."""

import uuid
from collections.abc import Iterator

import psycopg
import pytest
from sqlalchemy import URL, Connection, Integer, bindparam, column, create_engine, func, select, table, text
from sqlalchemy.exc import InvalidRequestError

from clew.store.engine import pipeline as pipelines
from clew.store.engine.dialect import among
from clew.store.engine.postgres import PostgresDatabase
from clew.store.engine.statement import POSTGRESQL, Statement, in_one_trip, numbered, pipeline_of
from clew.store.faults import Unreachable

NOTES = table("notes", column("id"), column("body"))

add = Statement(lambda _: NOTES.insert().values(id=bindparam("id"), body=bindparam("body")))
read = Statement(lambda _: select(NOTES.c.body).where(NOTES.c.id == bindparam("id")))
change = Statement(lambda _: NOTES.update().where(NOTES.c.id == bindparam("id")).values(body=bindparam("body")))
listed = Statement(lambda dialect: select(NOTES.c.id).where(among(dialect, NOTES.c.id, "ids")).order_by(NOTES.c.id))
sleeps = Statement(lambda _: select(func.pg_sleep(text("30"))))


@pytest.fixture
def database(postgres: URL) -> Iterator[PostgresDatabase]:
    name = f"wire_{uuid.uuid4().hex[:12]}"
    admin = create_engine(postgres, isolation_level="AUTOCOMMIT")
    with admin.connect() as connection:
        connection.execute(text(f"CREATE DATABASE {name}"))
    opened = PostgresDatabase(postgres.set(database=name), patience=0.0)
    opened.write(
        lambda connection: connection.execute(text("CREATE TABLE notes (id text PRIMARY KEY, body text)"))
    ).result(30)
    try:
        yield opened
    finally:
        opened.close()
        with admin.connect() as connection:
            connection.execute(text(f"DROP DATABASE {name} WITH (FORCE)"))
        admin.dispose()


def body(database: PostgresDatabase, name: str) -> str | None:
    row = database.read(lambda connection: read.first(connection, id=name))
    return None if row is None else row["body"]


def test_names_become_numbers_and_a_doubled_sign_one() -> None:
    made = numbered("SELECT %(a)s, %(b)s, %(a)s, 7 %% 2")
    assert (made.sql, made.names) == (b"SELECT $1, $2, $1, 7 % 2", ("a", "b"))


def test_values_arrive_as_they_were(database: PostgresDatabase) -> None:
    odd = ["plain", "", "it's", 'a "quote"', "back\\slash", "{a,b}", "NULL", "ümlaut 🧵", "two\nlines", "x" * 3_000_000]
    for at, value in enumerate(odd):
        database.write(lambda connection, at=at, value=value: add.count(connection, id=f"n{at}", body=value)).result(30)  # type: ignore[misc]
    assert [body(database, f"n{at}") for at in range(len(odd))] == odd
    database.write(lambda connection: add.count(connection, id="none", body=None)).result(30)
    assert body(database, "none") is None


def test_a_list_arrives_as_it_was(database: PostgresDatabase) -> None:
    names = ['a "quote"', "back\\slash", "{a,b}", "NULL", "", "comma, comma"]
    database.write(lambda connection: add.many(connection, ({"id": name, "body": ""} for name in names))).result(30)
    found = database.read(lambda connection: listed.rows(connection, ids=[*names, "not there"]))
    assert {row["id"] for row in found} == set(names)


def test_text_with_a_nul_is_refused_and_nothing_is_sent(database: PostgresDatabase) -> None:
    def writes(connection: Connection) -> None:
        add.count(connection, id="cut\0short", body="")

    with pytest.raises(psycopg.DataError, match="NUL"):
        database.write(writes).result(30)
    assert body(database, "cut") is None


def test_one_that_fails_undoes_those_sent_with_it_and_the_connection_goes_on(database: PostgresDatabase) -> None:
    def both(connection: Connection, first: str, second: str | None) -> None:
        one, other = {"id": first, "body": "1"}, {"id": second, "body": "2"}
        in_one_trip(connection, (add, one), (change, {**one, "body": "changed"}), (add, other))

    with pytest.raises(psycopg.errors.NotNullViolation):
        database.write(lambda connection: both(connection, "a", None)).result(30)
    assert body(database, "a") is None
    # What was prepared on the way that failed is used again.
    for name in ("a", "b", "c"):
        database.write(lambda connection, name=name: both(connection, name, f"{name}2")).result(30)  # type: ignore[misc]
    assert (body(database, "c"), body(database, "c2")) == ("changed", "2")


def test_what_is_left_for_the_commit_is_done_before_whatever_is_asked_next(database: PostgresDatabase) -> None:
    def leaves(connection: Connection) -> tuple[list[str], str]:
        add.defer(connection, id="a", body="first")
        by_sqlalchemy = list(connection.execute(select(NOTES.c.body)).scalars())
        change.defer(connection, id="a", body="second")
        row = read.first(connection, id="a")
        assert row is not None
        change.defer(connection, id="a", body="third")
        return by_sqlalchemy, row["body"]

    assert database.write(leaves).result(30) == (["first"], "second")
    assert body(database, "a") == "third"


def test_what_is_left_for_a_commit_that_does_not_come_is_not_done_by_the_next(database: PostgresDatabase) -> None:
    def fails(connection: Connection) -> None:
        add.defer(connection, id="a", body="1")
        raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        database.write(fails).result(30)
    for name in ("b", "c"):
        database.write(lambda connection, name=name: add.defer(connection, id=name, body="")).result(30)  # type: ignore[misc]
    assert body(database, "a") is None
    assert body(database, "c") == ""


def test_what_is_left_and_fails_fails_the_operation(database: PostgresDatabase) -> None:
    ended: list[str] = []

    def twice(connection: Connection) -> None:
        add.count(connection, id="a", body="1")
        add.defer(connection, id=None, body="2")
        ended.append("it did not wait for what it left")

    with pytest.raises(psycopg.errors.NotNullViolation):
        database.write(twice).result(30)
    assert body(database, "a") is None
    assert ended


def test_a_server_that_does_not_answer_counts_as_gone(
    database: PostgresDatabase, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pipelines, "ANSWER", 0.2)
    with pytest.raises(Unreachable, match="no answer within"):
        database.write(sleeps.rows).result(30)
    monkeypatch.undo()
    database.write(lambda connection: add.count(connection, id="a", body="")).result(30)
    assert body(database, "a") == ""


def test_a_connection_that_is_ended_in_the_middle_is_not_used_again(database: PostgresDatabase) -> None:
    ended: list[int] = []

    def ends_itself(connection: Connection) -> None:
        add.count(connection, id="a", body="")
        if not ended:
            ended.append(pipeline_of(connection)._libpq.backend_pid)  # noqa: SLF001 - whom to end
            database.read(lambda other: other.execute(text(f"SELECT pg_terminate_backend({ended[0]})")))
        add.count(connection, id="b", body="")

    database.write(ends_itself).result(30)
    assert (body(database, "a"), body(database, "b")) == ("", "")
    assert database.write(lambda connection: pipeline_of(connection)._libpq.backend_pid).result(30) != ended[0]  # noqa: SLF001


def test_the_statement_is_the_same_in_both_forms() -> None:
    assert "%(id)s" in read.sql(POSTGRESQL)
    assert b"$1" in read.call({"id": "a"})[0].sql


def test_a_value_that_cannot_be_written_does_not_take_along_what_was_left(database: PostgresDatabase) -> None:
    def leaves(connection: Connection) -> None:
        add.defer(connection, id="left", body="")
        with pytest.raises(TypeError, match="cannot take a value of type"):
            add.count(connection, id="bad", body=object())
        with pytest.raises(TypeError, match="cannot take a value of type"):
            add.defer(connection, id="bad", body=object())

    database.write(leaves).result(30)
    assert body(database, "left") == ""


def test_a_transaction_that_failed_is_not_told_as_done(database: PostgresDatabase) -> None:
    def hides_it(connection: Connection) -> None:
        add.count(connection, id="a", body="")
        with pytest.raises(psycopg.errors.NotNullViolation):
            add.count(connection, id=None, body="")

    with pytest.raises(psycopg.errors.InFailedSqlTransaction):
        database.write(hides_it).result(30)
    assert body(database, "a") is None


@pytest.mark.parametrize("ends", ["commit", "rollback"])
def test_an_operation_that_ends_its_transaction_itself_fails_alone(database: PostgresDatabase, ends: str) -> None:
    def ends_early(connection: Connection) -> None:
        add.count(connection, id="early", body="")
        connection.execute(text("SELECT 1"))
        getattr(connection, ends)()

    for _ in range(20):
        with pytest.raises(InvalidRequestError):
            database.write(ends_early).result(30)
    for at in range(20):
        database.write(lambda connection, at=at: add.count(connection, id=f"n{at}", body="")).result(30)  # type: ignore[misc]
    assert body(database, "n19") == ""
    assert body(database, "early") is None


def test_numbers_and_truths_fit_where_a_number_is_wanted(database: PostgresDatabase) -> None:
    counts = Statement(lambda _: select(bindparam("of", type_=Integer)))
    rows = [database.read(lambda c, of=of: counts.rows(c, of=of)) for of in (12.0, True, 7, -1)]  # type: ignore[misc]
    assert [next(iter(row.values())) for (row,) in rows] == [12, 1, 7, -1]


def test_a_column_that_another_server_changed_is_asked_for_anew(database: PostgresDatabase) -> None:
    database.write(lambda connection: add.count(connection, id="a", body="b")).result(30)
    assert body(database, "a") == "b"
    changes = text("ALTER TABLE notes ALTER COLUMN body TYPE varchar(50)")
    database.write(lambda connection: connection.execute(changes)).result(30)
    assert body(database, "a") == "b"
