"""What runs have used: the last report of each attempt, because a report counts from the start of its turn."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from sqlalchemy import ColumnElement, Connection, Select, bindparam, func, literal_column, select, text
from sqlalchemy.sql import ClauseElement

from clew.kernel import Instant
from clew.protocol.usage import UsedView
from clew.store.engine.dialect import among
from clew.store.engine.statement import Row, Statement
from clew.store.operations.ids import first_id
from clew.store.operations.rows import read_object
from clew.store.schema.tables import agents, events, lanes, projects, runs, threads


@dataclass(frozen=True, slots=True)
class StartedRun:
    id: str
    agent: str
    project: str | None
    at: Instant


def _last_reports(*which: ColumnElement[bool]) -> Select[tuple[str, str]]:
    """ix_events_used has these rows alone, in this order."""
    last = (
        select(events.c.run_id, func.max(events.c.seq).label("seq"))
        .where(events.c.kind == literal_column("'used'"), *which)
        .group_by(events.c.run_id, events.c.attempt)
        .subquery("last")
    )
    said = events.alias("said")
    return select(said.c.run_id, said.c.body).join(last, (said.c.run_id == last.c.run_id) & (said.c.seq == last.c.seq))


def _of_thread(_: str) -> ClauseElement:
    in_thread = (
        select(runs.c.id).join(lanes, lanes.c.id == runs.c.lane_id).where(lanes.c.thread_id == bindparam("thread"))
    )
    return _last_reports(events.c.run_id.in_(in_thread))


used_by_runs = Statement(lambda dialect: _last_reports(among(dialect, events.c.run_id, "runs")))
used_in_thread = Statement(_of_thread)
_used_since = Statement(lambda _: _last_reports(events.c.run_id >= bindparam("first")))
_started_since = Statement(
    lambda _: (
        select(runs.c.id, runs.c.started_at, agents.c.name.label("agent"), projects.c.name.label("project"))
        .select_from(
            runs.join(agents, agents.c.id == runs.c.agent_id)
            .join(lanes, lanes.c.id == runs.c.lane_id)
            .join(threads, threads.c.id == lanes.c.thread_id)
            .outerjoin(projects, projects.c.id == threads.c.project_id)
        )
        .where(runs.c.id >= bindparam("first"), text("runs.started_at IS NOT NULL"))
        .order_by(runs.c.id)
    )
)


def used_of(connection: Connection, wanted: Sequence[str]) -> dict[str, UsedView]:
    """By run. A run whose agent reported nothing is not in it."""
    return _by_run(used_by_runs.rows(connection, runs=list(wanted))) if wanted else {}


def used_of_thread(connection: Connection, thread: str) -> UsedView | None:
    return total_of(_by_run(used_in_thread.rows(connection, thread=thread)).values())


def started_since(connection: Connection, since: Instant) -> tuple[list[StartedRun], dict[str, UsedView]]:
    """The runs that were queued since then and have started, oldest first, and what each has used."""
    first = first_id("rn", since)
    found = _started_since.rows(connection, first=first)
    started = [StartedRun(row["id"], row["agent"], row["project"], row["started_at"]) for row in found]
    return started, _by_run(_used_since.rows(connection, first=first))


def total_of(each: Iterable[UsedView]) -> UsedView | None:
    found = list(each)
    return sum(found[1:], start=found[0]) if found else None


def _by_run(rows: Iterable[Row]) -> dict[str, UsedView]:
    found: dict[str, UsedView] = {}
    for row in rows:
        used = _read(row["body"])
        if used is not None:
            found[row["run_id"]] = found[row["run_id"]] + used if row["run_id"] in found else used
    return found


def _read(body: str) -> UsedView | None:
    """None for a report that names nothing, or cannot be read."""
    said = read_object(body) or {}
    read, written, cached = (_number(said.get(name)) for name in ("input", "output", "cached"))
    cost = said.get("cost")
    known = float(cost) if isinstance(cost, int | float) else None
    nothing = known is None and not (read or written or cached)
    return None if nothing else UsedView(read, written, cached, known)


def _number(value: object) -> int:
    return value if isinstance(value, int) else 0
