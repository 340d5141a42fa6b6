"""What is promised of stored values: they can be read, and a kept decision is made again the same way."""

import json
from collections.abc import Iterator

from sqlalchemy import Column, ColumnElement, Connection, LargeBinary, cast, select

from clew.kernel import replay
from clew.store.schema.checks.promise import Promise
from clew.store.schema.tables import agents, decisions, lanes, programs, projects, runtimes, schedules, sessions, tokens

REPLAYED = 200
"""How many of the newest decisions are made again."""

VALUES: tuple[tuple[Column[str], type], ...] = (
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
"""Columns that hold JSON, and what it is at its top."""


def _stored(connection: Connection, column: Column[str]) -> ColumnElement[str] | ColumnElement[bytes]:
    # As bytes, because text that is no text makes SQLite's driver fail before anybody could name its row.
    return cast(column, LargeBinary) if connection.dialect.name == "sqlite" else column


def _unreadable(connection: Connection) -> Iterator[str]:
    for column, kind in VALUES:
        key = tuple(column.table.primary_key.columns)
        for *row, value in connection.execute(select(*key, _stored(connection, column))):
            if not isinstance(_read(value), kind):
                yield f"{column.table.name} {'/'.join(map(str, row))} ({column.name})"


def _read(value: str | bytes) -> object:
    try:
        return json.loads(value)
    except (ValueError, RecursionError):
        return None


def _decided_otherwise(connection: Connection) -> Iterator[str]:
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
    except Exception:  # noqa: BLE001 - whatever stops it, this decision cannot be made again
        return False


WRITTEN = (
    Promise("value-json", "Stored settings, capabilities and cursors can be read.", _unreadable),
    Promise(
        "decision-replay", "The newest decisions are made again the same way from their records.", _decided_otherwise
    ),
)
