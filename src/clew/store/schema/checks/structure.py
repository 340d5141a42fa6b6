"""The promises that the schema's constraints enforce. These queries find rows that got in while they were off."""

from collections.abc import Iterable, Iterator
from functools import cache
from typing import Any

from sqlalchemy import (
    CheckConstraint,
    Column,
    Connection,
    Float,
    Integer,
    Select,
    Table,
    UniqueConstraint,
    func,
    or_,
    select,
    text,
)
from sqlalchemy.sql.elements import ColumnElement

from clew.store.schema.checks.promise import Promise
from clew.store.schema.tables import metadata

CHECKED_ELSEWHERE = frozenset(
    {
        "ck_runs_ended_has_end",
        "ck_runs_live_has_lease",
        "ck_runs_live_has_places",
        "ck_sessions_comes_from_somewhere",
        "ck_wakes_carried_by_a_run",
        "ck_wakes_ends_once",
        "ck_wakes_has_a_reason",
        "ck_wakes_state",
    }
)
"""CHECK constraints that a promise of another module covers, with a better sentence."""


def _named(table: Table, key: Iterable[object]) -> str:
    return f"{table.name} {'/'.join(map(str, key))}"


@cache
def _keys() -> list[tuple[Table, Select[Any]]]:
    """A query for the duplicates of each key. These queries are cached: building them takes longer than running."""
    asked: list[tuple[Table, Select[Any]]] = []
    for table in metadata.sorted_tables:
        uniques = [each for each in table.constraints if isinstance(each, UniqueConstraint)]
        keys = [tuple(table.primary_key.columns), *(tuple(each.columns) for each in uniques)]
        for key in sorted(keys, key=lambda columns: [column.name for column in columns]):
            there = [column.is_not(None) for column in key]
            asked.append((table, select(*key).where(*there).group_by(*key).having(func.count() > 1).order_by(*key)))
    return asked


def _duplicates(connection: Connection) -> Iterator[str]:
    for table, found in _keys():
        yield from (_named(table, row) for row in connection.execute(found))


@cache
def _references() -> list[tuple[Table, str, Select[Any]]]:
    asked: list[tuple[Table, str, Select[Any]]] = []
    for table in metadata.sorted_tables:
        for column in table.columns:
            for pointer in column.foreign_keys:
                target = pointer.column.table.alias("target")
                there = select(target).where(target.c[pointer.column.name] == column).exists()
                found = select(*table.primary_key.columns).where(column.is_not(None), ~there)
                asked.append((table, column.name, found))
    return asked


def _dangling_references(connection: Connection) -> Iterator[str]:
    for table, column, found in _references():
        yield from (f"{_named(table, row)} ({column})" for row in connection.execute(found))


@cache
def _conditions() -> list[tuple[Table, str, Select[Any]]]:
    asked: list[tuple[Table, str, Select[Any]]] = []
    for table in metadata.sorted_tables:
        checks = [each for each in table.constraints if isinstance(each, CheckConstraint)]
        for check in sorted(checks, key=lambda each: str(each.name)):
            if check.name not in CHECKED_ELSEWHERE:
                found = select(*table.primary_key.columns).where(text(f"NOT ({check.sqltext})"))
                asked.append((table, str(check.name), found))
    return asked


def _unmet_conditions(connection: Connection) -> Iterator[str]:
    for table, name, found in _conditions():
        yield from (f"{_named(table, row)} ({name})" for row in connection.execute(found))


@cache
def _types() -> list[tuple[Table, Select[Any]]]:
    asked: list[tuple[Table, Select[Any]]] = []
    for table in metadata.sorted_tables:
        odd = [func.typeof(column).not_in(_types_of(column)) for column in table.columns]
        asked.append((table, select(*table.primary_key.columns, *odd).where(or_(*odd))))
    return asked


def _wrong_types(connection: Connection) -> Iterator[str]:
    # PostgreSQL rejects such a value; SQLite stores any type in any column.
    if connection.dialect.name != "sqlite":
        return
    for table, found in _types():
        keys = len(table.primary_key.columns)
        for row in connection.execute(found):
            odd = zip(table.columns, row[keys:], strict=True)
            yield f"{_named(table, row[:keys])} ({', '.join(column.name for column, is_odd in odd if is_odd)})"


def _types_of(column: Column[object] | ColumnElement[object]) -> tuple[str, ...]:
    match column.type:
        case Float():
            return "null", "real", "integer"
        case Integer():
            return "null", "integer"
        case _:
            return "null", "text"


STRUCTURE = (
    Promise("value-type", "A value has the type of its column.", _wrong_types),
    Promise("row-bounds", "Every row meets the conditions of its table.", _unmet_conditions),
    Promise("row-once", "No two rows have the same key.", _duplicates),
    Promise("row-pointer", "Every row that a row refers to exists.", _dangling_references),
)
