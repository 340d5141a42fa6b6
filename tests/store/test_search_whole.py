"""The search index as a whole: it agrees with the texts, comes with an upgrade and a restore, and has its plans."""

import json
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Connection, insert, select

from clew.store.backup.backup import backup
from clew.store.backup.restore import restore
from clew.store.engine.database import Database
from clew.store.engine.open import open_database
from clew.store.engine.statement import POSTGRESQL, numbered
from clew.store.queries import search as queries
from clew.store.schema.check import check
from clew.store.schema.tables import journal, threads
from clew.store.schema.version import PROGRAM, upgrade
from clew.store.search.query import read_query
from clew.store.search.words import words_of
from tests.store.kit import furnish
from tests.store.search_kit import found, index, page
from tests.store.test_backup import filled, opened, source, target
from tests.store.test_upgrade import load

__all__ = ["source", "target"]

pytestmark = pytest.mark.case("U08")

_WORDS = (
    "ant",
    "bee",
    "antler",
    "Café",
    "cafe",
    "src/app.py",
    "app",
    "你好",
    "好",
    "issue-12",
    "12",
    "-",
    "(bee)",
    "'ant'",
)


def _fill(database: Database, bodies: list[str]) -> None:
    def fill(connection: Connection) -> None:
        furnish(connection)
        said = {"author_kind": "human", "author_name": "a person"}
        rows = [
            {"thread_id": "issue-7", "seq": seq, "body": body, "at": float(seq), **said}
            for seq, body in enumerate(bodies, 1)
        ]
        connection.execute(insert(journal), rows)

    database.write(fill).result(30)
    index(database)


def test_what_is_found_is_what_matches(database: Database) -> None:
    """Any query finds just the texts that match it when they are read one by one, on both databases."""
    chance = random.Random(8)
    bodies = [" ".join(chance.choices(_WORDS, k=chance.randint(1, 7))) for _ in range(300)]
    _fill(database, bodies)
    texts = [words_of(body) for body in bodies]
    asked = 0
    for _ in range(300):
        typed = " ".join(_term(chance) for _ in range(chance.randint(1, 3)))
        query = read_query(typed)
        if query.wanted:
            expected = [seq for seq in range(len(bodies), 0, -1) if query.spans(texts[seq - 1]) is not None]
            got = [each.seq for each in page(database, typed, most=500).found]
            assert got == expected, typed
            asked += bool(expected)
    assert asked > 100


def _term(chance: random.Random) -> str:
    words = " ".join(chance.choices(_WORDS, k=chance.randint(1, 2)))
    return chance.choice(("{}", "{}", "-{}", '"{}"', '-"{}"', "{}*", '"{}')).format(words)


# ---------------------------------------------------------------- upgrade, backup, restore


def test_an_upgraded_database_is_indexed_with_all_its_rows(address: str) -> None:
    with opened(address) as database:
        database.write(lambda connection: load(connection, PROGRAM)).result(30)
        database.write(upgrade).result(30)
        rows = database.read(lambda it: it.execute(select(journal.c.thread_id, journal.c.seq, journal.c.body)).all())
        titles = database.read(lambda it: it.execute(select(threads.c.id, threads.c.title)).all())
        assert rows
        assert any(title for _, title in titles)
        assert queries_due(database) >= len(rows) + len(titles)
        index(database)
        assert queries_due(database) == 0
        for row in rows:
            if words := words_of(row.body).texts:
                assert row.seq in [each.seq for each in page(database, f'"{" ".join(words)}"', most=500).found]
        for _, title in titles:
            assert not title or "title" in [each.kind for each in page(database, title).found]
        assert database.read(check) == ()


def queries_due(database: Database) -> int:
    return database.read(lambda connection: queries.count_due(connection, 1_000))


@pytest.mark.parametrize("indexed", [True, False])
def test_a_restored_database_finds_what_the_first_one_found(
    source: str, target: str, tmp_path: Path, indexed: bool
) -> None:
    with opened(source) as database:
        if indexed:
            index(database)
    backup(source, tmp_path / "kept.db")
    restore(target, tmp_path / "kept.db")
    with opened(source) as first, opened(target) as second:
        index(first)
        index(second)
        for query in ("entry", "ünïcode 2", "entry -1"):
            # Entries of one moment are in the order in which they were indexed.
            assert sorted(found(second, query)) == sorted(found(first, query))
            assert found(first, query)
        assert second.read(check) == ()


def test_what_was_there_before_a_restore_is_not_found(target: str, tmp_path: Path) -> None:
    backup(filled(str(tmp_path / "origin" / "clew.db")), tmp_path / "kept.db")
    with opened(target) as database:
        database.write(upgrade).result(30)
        _fill(database, ["an old needle"])
    restore(target, tmp_path / "kept.db", force=True)
    with opened(target) as database:
        assert found(database, "needle") == []
        index(database)
        assert found(database, "needle") == []
        assert found(database, "entry")


# ---------------------------------------------------------------- plans


@pytest.fixture
def many(address: str) -> Iterator[Database]:
    database = open_database(address)
    try:
        database.write(upgrade).result(30)
        _fill(database, [f"hay {seq} {'needle' if seq % 500 == 0 else ''}" for seq in range(1, 3_001)])
        yield database
    finally:
        database.close()


def plan_of(connection: Connection, statement: Any, **values: Any) -> str:
    raw: Any = connection.connection.driver_connection
    sql = statement.sql(connection.dialect.name)
    if connection.dialect.name != POSTGRESQL:
        return str(raw.execute(f"EXPLAIN QUERY PLAN {sql}", values).fetchall())
    connection.exec_driver_sql("ANALYZE search_documents")
    raw.execute(queries.only_by_index.sql(POSTGRESQL))
    assert numbered(sql).names
    return json.dumps(raw.execute(f"EXPLAIN (FORMAT JSON) {sql}", values).fetchall())


def test_the_index_of_the_words_answers(many: Database) -> None:
    def read(connection: Connection) -> list[str]:
        if connection.dialect.name != POSTGRESQL:
            return [plan_of(connection, queries.on_sqlite, query='"hay"', before=2**62, most=20)]
        asked = {"query": "'hay' <-> '7'", "loose": "'hay' & '7'", "before": 2**62, "most": 20}
        return [
            plan_of(connection, queries.by_index, **asked),
            plan_of(connection, queries.by_index_then_exactly, **asked),
        ]

    for plan in many.write(read).result(30):
        if "Node Type" in plan:
            assert "ix_search_documents_words" in plan
            assert '"Seq Scan"' not in plan
        else:
            assert "SCAN search_words VIRTUAL TABLE INDEX" in plan
            assert "SEARCH d USING INTEGER PRIMARY KEY" in plan
            assert "TEMP B-TREE" not in plan, "the newest come first by themselves"


@pytest.mark.parametrize("address", ["postgresql"], indirect=True)
def test_the_newest_are_read_along_their_ids(many: Database) -> None:
    def read(connection: Connection) -> str:
        raw: Any = connection.connection.driver_connection
        connection.exec_driver_sql("ANALYZE search_documents")
        sql = f"EXPLAIN (FORMAT JSON) {queries.among_recent.sql(POSTGRESQL)}"
        return json.dumps(raw.execute(sql, {"query": "'hay'", "before": 2**62, "most": 20}).fetchall())

    plan = many.write(read).result(30)
    assert "pk_search_documents" in plan
    assert "Backward" in plan


def test_without_the_index_of_the_words_it_would_be_another_plan(many: Database) -> None:
    """Or the test above could not fail."""

    def read(connection: Connection) -> str:
        if connection.dialect.name != POSTGRESQL:
            sql = queries.on_sqlite.sql(connection.dialect.name).replace("search_words MATCH :query AND ", "")
            raw: Any = connection.connection.driver_connection
            return str(raw.execute(f"EXPLAIN QUERY PLAN {sql}", {"before": 1, "most": 1}).fetchall())
        connection.exec_driver_sql("DROP INDEX ix_search_documents_words")
        return plan_of(connection, queries.by_index, query="'hay'", before=2**62, most=20)

    plan = many.write(read).result(30)
    assert "ix_search_documents_words" not in plan
    assert ":M" not in plan
