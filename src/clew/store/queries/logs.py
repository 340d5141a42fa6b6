"""Logs of a thread or a run from a position onwards, for live streams."""

import math
from collections.abc import Iterator, Mapping, Sequence

from sqlalchemy import Connection, bindparam, func, literal_column, select

from clew.protocol.live import (
    TRACKED,
    LogHead,
    LogLine,
    LogPage,
    LogPosition,
    LogRun,
    LogScope,
    RunLog,
    ThreadLog,
)
from clew.protocol.views import LogView
from clew.store.engine.statement import Row, Statement, in_one_trip
from clew.store.queries.run_log import log_of_run, read_event
from clew.store.queries.runs import run_row
from clew.store.queries.spoken import spoken
from clew.store.schema.tables import events, lanes, runs

_CLOCK_SLACK = 600
"""Seconds. The runs of a lane are in the order of their numbers; its index is in that of the clock, which may be set
back."""

_RUN = (runs.c.id, runs.c.lane_id, runs.c.number, runs.c.ended_at)

_lanes = Statement(lambda _: select(lanes.c.id).where(lanes.c.thread_id == bindparam("thread")))

_queued_at = select(runs.c.queued_at).where(runs.c.number == bindparam("first")).scalar_subquery()

runs_from = Statement(
    lambda _: (
        select(*_RUN)
        .where(
            runs.c.lane_id == bindparam("lane"),
            # Bounded by ix_runs_lane: without it all runs of the lane would be read.
            runs.c.queued_at >= func.coalesce(_queued_at, literal_column("0")) - literal_column(str(_CLOCK_SLACK)),
            runs.c.number >= bindparam("first"),
        )
        .order_by(runs.c.number)
    )
)

newest_of_lane = Statement(
    lambda _: (
        select(*_RUN)
        .where(runs.c.lane_id == bindparam("lane"))
        .order_by(runs.c.queued_at.desc(), runs.c.id.desc())
        .limit(literal_column(str(TRACKED)))
    )
)

last_line = Statement(lambda _: select(func.max(events.c.seq).label("seq")).where(events.c.run_id == bindparam("run")))

run_of_thread = Statement(
    lambda _: (
        select(*_RUN, lanes.c.thread_id)
        .select_from(runs.join(lanes, lanes.c.id == runs.c.lane_id))
        .where(runs.c.number == bindparam("number"))
    )
)


def log_head(connection: Connection, scope: LogScope) -> LogHead:
    """The end of the logs as they are now."""
    match scope:
        case ThreadLog(thread):
            asked = [(newest_of_lane, {"lane": row["id"]}) for row in _lanes.rows(connection, thread=thread)]
            found = [_run(row) for done in in_one_trip(connection, *asked) for row in reversed(done.rows)]
        case RunLog(run):
            found = [_run(run_row(connection, run))]
    ends = in_one_trip(connection, *((last_line, {"run": each.id}) for each in found))
    listed: dict[str, dict[int, int]] = {}
    for run_, end in zip(found, ends, strict=True):
        listed.setdefault(run_.lane, {})[run_.number] = end.rows[0]["seq"] or 0
    ordered = {lane: {number: numbers[number] for number in sorted(numbers)} for lane, numbers in listed.items()}
    return LogHead(LogPosition(ordered), tuple(found))


def read_log(
    connection: Connection, scope: LogScope, after: LogPosition, upto: LogPosition | None, most: int
) -> LogPage:
    """The next lines after a position, and up to another: each lane's runs one after the other."""
    match scope:
        case ThreadLog(thread):
            asked = [
                (runs_from, {"lane": row["id"], "first": after.first(row["id"])})
                for row in _lanes.rows(connection, thread=thread)
            ]
            found = tuple(_run(row) for done in in_one_trip(connection, *asked) for row in done.rows)
        case RunLog(run):
            found = (_run(run_row(connection, run)),)
    lines = list[LogLine]()
    for some in _several([run for run in found if _has_unread(run, after, upto)]):
        for line in _lines(connection, some, after, upto, most - len(lines)):
            lines.append(line)
            if len(lines) == most:
                return LogPage(spoken(connection, tuple(lines)), found, more=True)
    return LogPage(spoken(connection, tuple(lines)), found, more=False)


def positions_of(connection: Connection, lines: Mapping[int, int]) -> dict[str, LogPosition]:
    """The positions that such run numbers and lines stand for, by thread. Numbers that no run has are left out."""
    asked = [(run_of_thread, {"number": number}) for number in sorted(lines)]
    found: dict[str, dict[str, dict[int, int]]] = {}
    for done in in_one_trip(connection, *asked):
        for row in done.rows:
            of_thread = found.setdefault(row["thread_id"], {})
            of_thread.setdefault(row["lane_id"], {})[row["number"]] = lines[row["number"]]
    return {thread: LogPosition(listed) for thread, listed in found.items()}


def _has_unread(run: LogRun, after: LogPosition, upto: LogPosition | None) -> bool:
    last = None if upto is None else upto.last_line(run)
    return last is None or last > after.line(run)


def _lines(
    connection: Connection, some: Sequence[LogRun], after: LogPosition, upto: LogPosition | None, most: int
) -> Iterator[LogLine]:
    asked = ((log_of_run, {"run": run.id, "after": after.line(run), "most": most}) for run in some)
    for run, done in zip(some, in_one_trip(connection, *asked), strict=True):
        limit = None if upto is None else upto.last_line(run)
        last = math.inf if limit is None else limit
        for row in done.rows:
            if row["seq"] <= last:
                yield _line(run, row)


def _several(found: Sequence[LogRun]) -> Iterator[Sequence[LogRun]]:
    """As many as are usually read at once: in one trip, and without reading much more than fits into a page."""
    for at in range(0, len(found), TRACKED):
        yield found[at : at + TRACKED]


def _line(run: LogRun, row: Row) -> LogLine:
    event = read_event(row)
    return LogLine(run.lane, run.number, LogView(run.id, event.seq, event.kind, event.at, event.body))


def _run(row: Row) -> LogRun:
    return LogRun(row["id"], row["lane_id"], row["number"], row["ended_at"] is not None)
