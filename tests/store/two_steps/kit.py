"""The old database, its upgrade, and what the tests read from it, in plain SQL: today's tables have other columns."""

from pathlib import Path
from typing import Any

from sqlalchemy import Connection, RowMapping, text

from clew.store.schema.migrations import run_script
from clew.store.schema.version import SchemaVersion, migrate, upgrade

STEPS = Path(__file__).parent
UNKNOWN = "unknown"


def load_old(connection: Connection) -> None:
    """A database as a program of schema 1 left it."""
    migrate(connection, "0001_pre", STEPS)
    run_script(connection, STEPS / "old_database.sql")


def pre(connection: Connection) -> SchemaVersion:
    """The step after which programs 1 and 2 can both use the database."""
    return upgrade(connection, only_pre=True, program=2, steps=STEPS)


def upgrade_to_2(connection: Connection) -> SchemaVersion:
    return upgrade(connection, program=2, steps=STEPS)


def sessions(connection: Connection, lane: str) -> list[RowMapping]:
    """The sessions of the lane's own scope, oldest first."""
    asked = text("SELECT * FROM sessions WHERE lane_id = :lane AND scope_run = '' ORDER BY generation")
    return list(connection.execute(asked, {"lane": lane}).mappings())


def taken_over(connection: Connection) -> dict[str, RowMapping]:
    """The newest session of each lane."""
    listed = connection.execute(text("SELECT * FROM sessions ORDER BY generation")).mappings()
    return {row["lane_id"]: row for row in listed}


def history(connection: Connection, lane: str) -> list[tuple[int, str, str]]:
    return [(row["generation"], row["native_id"], row["runtime_id"]) for row in sessions(connection, lane)]


def runs_in(connection: Connection, lane: str, native_id: str, runtime: str, at: float) -> None:
    """A program of schema 1 records a run that succeeded in this session."""
    connection.execute(
        text(
            "INSERT INTO runs (id, lane_id, agent_id, runtime_id, state, rank, queued_at, started_at, ended_at,"
            " session_native_id) VALUES (:id, :lane, 'ada', :runtime, 'succeeded', 0, :at, :at, :at, :native_id)"
        ),
        {"id": f"{lane}-{at:.0f}", "lane": lane, "runtime": runtime, "at": at, "native_id": native_id},
    )


def points_at(connection: Connection, lane: str, native_id: str | None) -> None:
    """A program of schema 1 records which session the lane continues in."""
    connection.execute(
        text("UPDATE lanes SET session_native_id = :native_id, session_directory = '/srv/maze' WHERE id = :lane"),
        {"native_id": native_id, "lane": lane},
    )


def adds_session(connection: Connection, lane: str, **changes: Any) -> None:
    """A program of schema 2 records a session: the lane's first one with these changes."""
    values = dict(sessions(connection, lane)[0]) | changes
    names = list(values)
    connection.execute(
        text(f"INSERT INTO sessions ({', '.join(names)}) VALUES ({', '.join(f':{name}' for name in names)})"), values
    )
