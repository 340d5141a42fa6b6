"""Promises about how rows are stored: the file is intact, constraints hold, and stored values can be read."""

import json
from collections.abc import Iterable, Iterator
from functools import cache
from typing import Any

from sqlalchemy import (
    CheckConstraint,
    Column,
    ColumnElement,
    Connection,
    CursorResult,
    Float,
    Integer,
    LargeBinary,
    Select,
    Table,
    UniqueConstraint,
    cast,
    func,
    or_,
    select,
    text,
)
from sqlalchemy.exc import DatabaseError

from clew.kernel import replay
from clew.store.engine.statement import dialect_called
from clew.store.schema.promises import Promise
from clew.store.schema.tables import (
    agents,
    decisions,
    lanes,
    metadata,
    programs,
    projects,
    push_subscriptions,
    runtimes,
    schedules,
    sessions,
    tokens,
    workspaces,
)


def _damage(connection: Connection) -> Iterator[str]:
    if connection.dialect.name != "sqlite":
        return
    # Rows that break a CHECK constraint have promises of their own; this one is about the file only.
    before = connection.exec_driver_sql("PRAGMA ignore_check_constraints").scalar_one()
    connection.exec_driver_sql("PRAGMA ignore_check_constraints = 1")
    try:
        said = connection.exec_driver_sql("PRAGMA integrity_check").scalars().all()
        yield from (line for line in said if line != "ok")
    except DatabaseError as fault:
        yield str(fault.orig)
    finally:
        connection.exec_driver_sql(f"PRAGMA ignore_check_constraints = {before}")


FILE = Promise("file-whole", "The file is whole: every page, every index.", _damage)


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


Query = tuple[Table, str, Select[Any]]
"""A query for the keys of a table's rows that break something, and a note for their names."""


@cache
def _sql(found: Select[Any], dialect: str) -> str:
    """The text of a query. SQLAlchemy's own cache lasts as long as its engine, and most checks have a new one."""
    return str(found.compile(dialect=dialect_called(dialect), compile_kwargs={"literal_binds": True}))


def _rows(connection: Connection, found: Select[Any]) -> CursorResult[Any]:
    return connection.exec_driver_sql(_sql(found, connection.dialect.name))


def _found(connection: Connection, queries: Iterable[Query]) -> Iterator[str]:
    for table, note, found in queries:
        for row in _rows(connection, found):
            yield f"{_named(table, row)} ({note})" if note else _named(table, row)


# The queries are cached: building them takes longer than running them.
@cache
def _duplicate_keys() -> list[Query]:
    asked: list[Query] = []
    for table in metadata.sorted_tables:
        uniques = [each for each in table.constraints if isinstance(each, UniqueConstraint)]
        keys = [tuple(table.primary_key.columns), *(tuple(each.columns) for each in uniques)]
        for key in sorted(keys, key=lambda columns: [column.name for column in columns]):
            there = [column.is_not(None) for column in key]
            found = select(*key).where(*there).group_by(*key).having(func.count() > 1).order_by(*key)
            asked.append((table, "", found))
    return asked


@cache
def _dangling_references() -> list[Query]:
    asked: list[Query] = []
    for table in metadata.sorted_tables:
        for column in table.columns:
            for pointer in column.foreign_keys:
                target = pointer.column.table.alias("target")
                there = select(target).where(target.c[pointer.column.name] == column).exists()
                found = select(*table.primary_key.columns).where(column.is_not(None), ~there)
                asked.append((table, column.name, found))
    return asked


@cache
def _unmet_conditions() -> list[Query]:
    asked: list[Query] = []
    for table in metadata.sorted_tables:
        checks = [each for each in table.constraints if isinstance(each, CheckConstraint)]
        for check in sorted(checks, key=lambda each: str(each.name)):
            if check.name not in CHECKED_ELSEWHERE:
                found = select(*table.primary_key.columns).where(text(f"NOT ({check.sqltext})"))
                asked.append((table, str(check.name), found))
    return asked


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
        for row in _rows(connection, found):
            odd = zip(table.columns, row[keys:], strict=True)
            yield f"{_named(table, row[:keys])} ({', '.join(column.name for column, is_odd in odd if is_odd)})"


def _types_of(column: Column[object] | ColumnElement[object]) -> tuple[str, ...]:
    match column.type:
        case Float():
            return "null", "real", "integer"
        case Integer():
            return "null", "integer"
        case LargeBinary():
            return "null", "blob"
        case _:
            return "null", "text"


STRUCTURE = (
    Promise("value-type", "A value has the type of its column.", _wrong_types),
    Promise("row-bounds", "Every row meets the conditions of its table.", lambda it: _found(it, _unmet_conditions())),
    Promise("row-once", "No two rows have the same key.", lambda it: _found(it, _duplicate_keys())),
    Promise("row-pointer", "Every row that a row refers to exists.", lambda it: _found(it, _dangling_references())),
)


REPLAYED = 200
"""How many of the newest decisions are replayed."""

_JSON: tuple[tuple[Column[str], type], ...] = (
    (agents.c.policy, dict),
    (agents.c.settings, dict),
    (runtimes.c.capabilities, dict),
    (programs.c.capabilities, dict),
    (lanes.c.floor_kept, list),
    (sessions.c.also, list),
    (sessions.c.cursor, dict),
    (projects.c.settings, dict),
    (schedules.c.settings, dict),
    (tokens.c.may, dict),
    (workspaces.c.work, dict),
    (push_subscriptions.c.told, list),
)
"""Columns that hold JSON, and the type of the outermost value."""


def _stored(connection: Connection, column: Column[str]) -> ColumnElement[str] | ColumnElement[bytes]:
    # As bytes: SQLite's driver raises on invalid UTF-8, before the row could be named.
    return cast(column, LargeBinary) if connection.dialect.name == "sqlite" else column


def _unreadable(connection: Connection) -> Iterator[str]:
    for column, kind in _JSON:
        key = tuple(column.table.primary_key.columns)
        for *row, value in connection.execute(select(*key, _stored(connection, column))):
            if not isinstance(_read(value), kind):
                yield f"{column.table.name} {'/'.join(map(str, row))} ({column.name})"


def _read(value: str | bytes) -> object:
    try:
        return json.loads(value)
    except (ValueError, RecursionError):
        return None


def _changed_decisions(connection: Connection) -> Iterator[str]:
    newest = (
        select(decisions.c.run_id, decisions.c.attempt, decisions.c.step, _stored(connection, decisions.c.record))
        .order_by(decisions.c.at.desc(), decisions.c.run_id, decisions.c.attempt, decisions.c.step)
        .limit(REPLAYED)
    )
    for run, attempt, step, record in connection.execute(newest):
        if not _replays(record):
            yield f"{run}/{attempt}/{step}"


def _replays(record: str | bytes) -> bool:
    try:
        return replay(json.loads(record)).same
    except Exception:  # noqa: BLE001 - whatever it raises, this decision cannot be replayed
        return False


STORED_VALUES = (
    Promise("value-json", "Stored settings, capabilities and cursors can be read.", _unreadable),
    Promise(
        "decision-replay", "The newest decisions replay from their records to the same result.", _changed_decisions
    ),
)
