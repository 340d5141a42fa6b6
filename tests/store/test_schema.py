"""The schema: its steps build exactly the tables, and a database says which programs may use it."""

import ast
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any

import pytest
from sqlalchemy import Connection, MetaData, inspect, select, text, update

from clew.store.engine.database import Database
from clew.store.engine.open import open_database
from clew.store.faults import NewerThanProgram, OlderThanProgram
from clew.store.schema.tables import meta, metadata
from clew.store.schema.version import PROGRAM, STEPS, SchemaVersion, migrate, read_version, require, upgrade


def reflected(connection: Connection) -> dict[str, Any]:
    """Everything the database reports about each table, in a fixed order."""
    found = inspect(connection)
    return {
        name: {
            "columns": [{**column, "type": repr(column["type"])} for column in found.get_columns(name)],
            "primary key": found.get_pk_constraint(name),
            "foreign keys": by_name(found.get_foreign_keys(name)),
            "unique": by_name(found.get_unique_constraints(name)),
            "checks": by_name(found.get_check_constraints(name)),
            "indexes": [{**index, "dialect_options": str_values(index)} for index in by_name(found.get_indexes(name))],
        }
        for name in found.get_table_names()
        if name != "alembic_version" and not name.startswith("search_")
    }


def str_values(index: dict[str, Any]) -> dict[str, str]:
    """As text: the condition of an index is an object that equals only itself."""
    return {key: str(value) for key, value in index.get("dialect_options", {}).items()}


def by_name(listed: Any) -> list[dict[str, Any]]:
    return sorted(map(dict, listed), key=lambda each: str(each["name"]))


def rows(connection: Connection) -> dict[str, list[dict[str, Any]]]:
    """Every row of every table, alembic_version included; not the search index, which is made from them."""
    found = MetaData()
    found.reflect(connection, only=_is_no_index)
    return {
        table.name: sorted((dict(row) for row in connection.execute(select(table)).mappings()), key=str)
        for table in found.sorted_tables
    }


def _is_no_index(name: str, _: object) -> bool:
    return not name.startswith("search_")


def made_by(connection: Connection, make: Callable[[Connection], object]) -> tuple[dict[str, Any], dict[str, Any]]:
    """The same database, emptied and created by `make`."""
    old = MetaData()
    old.reflect(connection, only=_is_no_index)
    old.drop_all(connection)
    for table in ("search_documents", "search_due", "search_logs"):
        connection.exec_driver_sql(f"DROP TABLE {table}")
    if connection.dialect.name == "sqlite":
        connection.exec_driver_sql("DROP TABLE search_words")
    else:
        connection.exec_driver_sql("DROP FUNCTION search_entry_due, search_row_due")
        connection.exec_driver_sql("DROP FUNCTION unarchive_by_entry, unarchive_by_run, unarchive_by_wake")
        connection.exec_driver_sql("DROP FUNCTION unarchive_by_approval")
    make(connection)
    return reflected(connection), rows(connection)


def test_the_steps_build_exactly_the_tables_and_so_does_what_a_new_database_is_made_from(database: Database) -> None:
    at_once = database.read(lambda connection: (reflected(connection), rows(connection)))
    by_steps = database.write(lambda connection: made_by(connection, lambda it: migrate(it, "head"))).result(30)
    tables, _ = database.write(lambda connection: made_by(connection, metadata.create_all)).result(30)
    assert by_steps[0].keys() == at_once[0].keys() == tables.keys() == metadata.tables.keys()
    for table, said in tables.items():
        assert by_steps[0][table] == said, table
        assert at_once[0][table] == said, table
    assert at_once[1] == by_steps[1]
    assert at_once[1]["alembic_version"], "the comparison covers the Alembic revision"
    assert "superseded" in str(tables["sessions"]["indexes"]), "and the conditions of indexes"


def test_an_upgrade_can_be_repeated(database: Database) -> None:
    assert database.write(upgrade).result(30) == SchemaVersion(PROGRAM, PROGRAM)
    assert database.write(lambda connection: upgrade(connection, only_pre=True)).result(30).oldest_program == PROGRAM
    database.read(require)


def test_servers_that_start_together_may_all_upgrade(address: str) -> None:
    database = open_database(address)
    answers: list[Future[SchemaVersion]] = [database.write(upgrade) for _ in range(4)]
    assert [answer.result(60) for answer in answers] == [SchemaVersion(PROGRAM, PROGRAM)] * 4
    database.close()


def test_an_empty_database_must_be_upgraded_first(address: str) -> None:
    database = open_database(address)
    assert database.read(read_version) == SchemaVersion(0, 0)
    with pytest.raises(OlderThanProgram, match=f"has schema 0; this program needs schema {PROGRAM}"):
        database.read(require)
    database.close()


def set_meta(database: Database, number: int, *keys: str) -> None:
    later = update(meta).where(meta.c.key.in_(keys)).values(value=str(number))
    database.write(lambda connection: connection.execute(later).rowcount).result(30)


def test_a_database_that_is_closed_to_this_program_is_refused(database: Database) -> None:
    set_meta(database, PROGRAM + 1, "schema", "oldest-program")
    with pytest.raises(NewerThanProgram, match=f"this program is for schema {PROGRAM}"):
        database.read(require)
    with pytest.raises(NewerThanProgram):
        database.write(upgrade).result(30)


def test_a_database_that_only_has_more_is_shared_with_this_program(database: Database) -> None:
    set_meta(database, PROGRAM + 1, "schema")
    ahead = text(f"UPDATE alembic_version SET version_num = '{PROGRAM + 1:04d}_pre'")
    database.write(lambda connection: connection.execute(ahead).rowcount).result(30)
    database.read(require)
    assert database.write(upgrade).result(30) == SchemaVersion(PROGRAM + 1, PROGRAM)


def test_steps_import_nothing_that_may_change() -> None:
    imported = {
        node.module
        for file in STEPS.rglob("*.py")
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8")))
        if isinstance(node, ast.ImportFrom) and node.module is not None
    }
    own = {module for module in imported if module.startswith("clew")}
    assert own == {"clew.store.schema.migrations"}
