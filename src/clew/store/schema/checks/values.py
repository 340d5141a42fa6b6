"""Promises about stored values: JSON can be read, and a recorded decision replays to the same result."""

import json
from collections.abc import Iterator

from sqlalchemy import Column, ColumnElement, Connection, LargeBinary, cast, select

from clew.kernel import replay
from clew.store.schema.checks.promise import Promise
from clew.store.schema.tables import agents, decisions, lanes, programs, projects, runtimes, schedules, sessions, tokens

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
