"""Schedules: an agent's heartbeat, which wakes it in one lane by a rhythm, and the ticks that are due."""

import json
from dataclasses import dataclass
from datetime import UTC, datetime, time, tzinfo
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from cronsim import CronSim, CronSimError
from sqlalchemy import Connection, bindparam, exists, select, text
from sqlalchemy.sql import ClauseElement

from clew.kernel import (
    AgentId,
    Every,
    Instant,
    LaneId,
    NextAfter,
    Origin,
    OriginKind,
    PacePolicy,
    QuietHours,
    RouteKey,
    ThreadId,
    Tick,
    TickDecision,
    TickFacts,
    TickVerdict,
    WakeId,
    WakeReason,
    WakeState,
    due,
    pace,
    tick,
)
from clew.protocol.wakes import Accepted, WakeRequest
from clew.store.engine.dialect import insert, now, read_clock
from clew.store.engine.statement import Row, Statement
from clew.store.faults import Unreadable
from clew.store.operations.approvals import OVERDUE
from clew.store.operations.ids import derived_id
from clew.store.operations.rows import read_route, unreadable
from clew.store.operations.wakes import accept_wake, keep_wake
from clew.store.schema.tables import LIVE, NOT_ENDED, lanes, runs, schedules, wakes


@dataclass(frozen=True, slots=True)
class Rhythm:
    """When a schedule is due, and what keeps its ticks quiet. A cron line has no interval; 1 s stands for it."""

    next_after: NextAfter
    interval: float
    checklist: str | None
    quiet: QuietHours | None
    route: RouteKey | None


def _read_rhythm(row: Row) -> Rhythm:
    try:
        zone = ZoneInfo(row["zone"])
        settings = json.loads(row["settings"])
        quiet, checklist = settings.get("quiet"), settings.get("checklist")
        if not isinstance(checklist, str | None):
            raise TypeError(f"a checklist must be text, not {checklist!r}")
        return Rhythm(
            _next_after(row, zone),
            row["every"] if row["cron"] is None else 1.0,
            checklist,
            None if quiet is None else QuietHours(time.fromisoformat(quiet[0]), time.fromisoformat(quiet[1]), zone),
            read_route(row["route"]),
        )
    except (
        ValueError,
        TypeError,
        KeyError,
        IndexError,
        AttributeError,
        OSError,
        RecursionError,
        CronSimError,
        ZoneInfoNotFoundError,
    ) as fault:
        raise unreadable("schedules", row["id"], "its rhythm or settings", fault) from fault


def _next_after(row: Row, zone: tzinfo) -> NextAfter:
    if row["cron"] is not None:
        line = row["cron"]
        # Parsed once here, so that an invalid line is found now and not at its next tick.
        CronSim(line, datetime.now(UTC))
        return lambda after: _next_of_line(line, after, zone)
    anchor = row["next_due"] if row["last_due"] is None else row["last_due"]
    return pace(Every(row["every"], anchor), row["idle_ticks"], anchor, PacePolicy()).schedule.next_after


def _next_of_line(line: str, after: Instant, zone: tzinfo) -> Instant | None:
    found = next(CronSim(line, datetime.fromtimestamp(after, zone)), None)
    return None if found is None else found.timestamp()


@dataclass(frozen=True, slots=True)
class Heartbeat:
    """`every` in seconds, or a `cron` line in a `zone`. Replies go to `route`, whatever scope a tick has."""

    lane: LaneId
    route: RouteKey
    every: float | None = None
    cron: str | None = None
    zone: str = "UTC"
    isolated: bool = True


_remove = Statement(lambda _: schedules.delete().where(schedules.c.id == bindparam("schedule")))


def schedule_of(agent: AgentId) -> str:
    """The id of an agent's schedule, derived: an agent has one heartbeat."""
    return derived_id("sc", "heartbeat", agent)


def put_heartbeat(connection: Connection, agent: AgentId, beat: Heartbeat) -> Instant | None:
    """Replace the agent's heartbeat. The time of its first tick; None if there is none."""
    at = read_clock(connection)
    values = {
        "lane_id": beat.lane,
        "every": beat.every,
        "cron": beat.cron,
        "zone": beat.zone,
        "isolated": int(beat.isolated),
        "route": json.dumps([beat.route.kind.value, beat.route.address]),
        "settings": "{}",
        "idle_ticks": 0,
        "last_due": None,
        "fault": None,
    }
    row = {**values, "id": schedule_of(agent), "next_due": at}
    following = _read_rhythm(row).next_after(at)
    put = {**values, "next_due": following, "enabled": int(following is not None)}
    made = insert(connection, schedules).values(id=row["id"], **put)
    connection.execute(made.on_conflict_do_update(index_elements=[schedules.c.id], set_=put))
    return following


def remove_heartbeat(connection: Connection, agent: AgentId) -> None:
    _remove.count(connection, schedule=schedule_of(agent))


MOST_AT_ONCE = 100
_READ_AGAIN = 300.0
"""Seconds after which a schedule that could not be read is read again."""


@dataclass(frozen=True, slots=True)
class Ticked:
    """The result of a due schedule; `wake` is its receipt, also when the tick was skipped."""

    schedule: str
    verdict: TickVerdict | None
    words: str
    wake: WakeId | None = None


def _due(_: str) -> ClauseElement:
    busy = exists().where(runs.c.lane_id == schedules.c.lane_id, text(f"runs.{NOT_ENDED} AND runs.{LIVE}"))
    # A pending tick does not count as an event.
    waiting = exists().where(
        wakes.c.lane_id == schedules.c.lane_id, text("wakes.state = 'pending' AND wakes.reason <> 'timer'")
    )
    return (
        select(
            schedules,
            lanes.c.agent_id,
            lanes.c.thread_id,
            busy.label("busy"),
            waiting.label("waiting"),
            now().label("now"),
        )
        .join(lanes, lanes.c.id == schedules.c.lane_id)
        .where(text("schedules.enabled = 1 AND schedules.next_due IS NOT NULL"), schedules.c.next_due <= now())
        .order_by(schedules.c.next_due)
        .limit(bindparam("most"))
        .with_for_update(of=schedules, skip_locked=True)
    )


due_schedules = Statement(_due)

_move_on = Statement(
    lambda _: (
        schedules.update()
        .where(schedules.c.id == bindparam("schedule"))
        .values(
            last_due=bindparam("last"),
            next_due=bindparam("next"),
            fault=bindparam("fault"),
            # Off once there is no next time.
            enabled=bindparam("enabled"),
        )
    )
)


def tick_due(connection: Connection, most: int = MOST_AT_ONCE) -> tuple[Ticked, ...]:
    """Tick every schedule that is due, each with a receipt. One that cannot be read gets a fault, and the others go
    on. PostgreSQL: FOR UPDATE SKIP LOCKED, so that several servers share the ticks."""
    return tuple(_tick(connection, row) for row in due_schedules.rows(connection, most=most))


def _tick(connection: Connection, row: Row) -> Ticked:
    try:
        return _tick_once(connection, row, _read_rhythm(row))
    except Unreadable as fault:
        _set(connection, row, row["last_due"], row["now"] + _READ_AGAIN, str(fault))
        return Ticked(row["id"], None, str(fault))


def _tick_once(connection: Connection, row: Row, rhythm: Rhythm) -> Ticked:
    # Ticks before the schedule was first read are not made up for.
    last = row["last_due"] if row["last_due"] is not None else row["next_due"] - 1e-3
    try:
        ticked = due(rhythm.next_after, last, row["now"])
        following = rhythm.next_after(row["now"] if ticked is None else ticked.due)
    except (ValueError, OverflowError) as fault:
        raise unreadable("schedules", row["id"], "its rhythm", fault) from fault
    if ticked is None:
        _set(connection, row, row["last_due"], following)
        return Ticked(row["id"], None, "It was not due after all.")
    decision = tick(_facts(row, rhythm))
    if decision.verdict is TickVerdict.RETRY:
        _set(connection, row, row["last_due"], decision.retry_at)
        return Ticked(row["id"], decision.verdict, decision.words)
    wake = _receipt(connection, row, rhythm, ticked, decision)
    _set(connection, row, ticked.due, following)
    return Ticked(row["id"], decision.verdict, f"{decision.words} {ticked.words}", wake)


def _facts(row: Row, rhythm: Rhythm) -> TickFacts:
    return TickFacts(
        now=row["now"],
        interval=rhythm.interval,
        enabled=bool(row["enabled"]),
        event=bool(row["waiting"]),
        route=rhythm.route,
        checklist=rhythm.checklist,
        quiet=rhythm.quiet,
        lane_busy=bool(row["busy"]),
    )


def _receipt(connection: Connection, row: Row, rhythm: Rhythm, ticked: Tick, decision: TickDecision) -> WakeId:
    request = WakeRequest(
        # Derived from the schedule and the time: repeating the tick makes the same wake.
        id=WakeId(derived_id("wk", row["id"], repr(ticked.due))),
        agent=AgentId(row["agent_id"]),
        reason=WakeReason.TIMER,
        origin=Origin(OriginKind.TIMER),
        thread=ThreadId(row["thread_id"]),
        route=rhythm.route,
        isolated=bool(row["isolated"]),
    )
    if decision.verdict is TickVerdict.WAKE:
        return accept_wake(connection, request).wake
    skipped = Accepted(request.id, WakeState.SKIPPED, decision.reason.code, f"{decision.words} {ticked.words}")
    keep_wake(connection, request, ThreadId(row["thread_id"]), LaneId(row["lane_id"]), skipped, row["now"], once=True)
    return request.id


def _set(
    connection: Connection, row: Row, last: Instant | None, following: Instant | None, fault: str | None = None
) -> None:
    on = int(following is not None)
    _move_on.count(connection, schedule=row["id"], last=last, next=following, fault=fault, enabled=on)


@dataclass(frozen=True, slots=True)
class Due:
    """Which kinds of timed work there is now."""

    ticks: bool
    leases: bool
    approvals: bool


looked_for = Statement(
    lambda _: select(
        exists()
        .where(text("schedules.enabled = 1 AND schedules.next_due IS NOT NULL"), schedules.c.next_due <= now())
        .label("ticks"),
        exists().where(text(f"runs.{LIVE}"), runs.c.lease_until <= now()).label("leases"),
        exists().where(*OVERDUE).label("approvals"),
    )
)


def anything_due(connection: Connection) -> Due:
    row = looked_for.first(connection)
    assert row is not None
    return Due(bool(row["ticks"]), bool(row["leases"]), bool(row["approvals"]))
