"""Runs as they are shown: one, those of a thread or an agent, or all; newest first."""

from collections.abc import Sequence
from typing import Any

from sqlalchemy import (
    ColumnElement,
    Connection,
    Select,
    TextClause,
    bindparam,
    func,
    literal_column,
    select,
    text,
    tuple_,
)

from clew.kernel import LIVE, RUN_ENDS, RunState
from clew.store.engine.statement import Row, Statement, among
from clew.store.faults import NoSuchRun
from clew.store.queries.threads import THREAD_NAME, with_owner
from clew.store.schema.tables import LIVE as LIVE_RUN
from clew.store.schema.tables import NOT_ENDED, agents, decisions, events, landings, lanes, runs, threads

LAST = "~"
"""Behind every id."""


def _shown(*which: ColumnElement[bool] | TextClause) -> Select[Any]:
    source = runs.join(lanes, lanes.c.id == runs.c.lane_id).join(threads, threads.c.id == lanes.c.thread_id)
    return (
        select(*runs.c, lanes.c.thread_id, agents.c.name.label("agent_name"), *THREAD_NAME)
        .select_from(with_owner(source.join(agents, agents.c.id == runs.c.agent_id)))
        .where(*which)
        .limit(bindparam("most"))
    )


_before = runs.c.id < bindparam("before")

newest = Statement(lambda _: _shown(_before).order_by(runs.c.id.desc()))
of_agent = Statement(lambda _: _shown(runs.c.agent_id == bindparam("agent"), _before).order_by(runs.c.id.desc()))
of_lane = Statement(
    lambda _: _shown(
        runs.c.lane_id == bindparam("lane"),
        tuple_(runs.c.queued_at, runs.c.id) < tuple_(bindparam("before_at"), bindparam("before")),
    ).order_by(runs.c.queued_at.desc(), runs.c.id.desc())
)
_is = runs.c.state == bindparam("state")
answered = Statement(lambda _: _shown(_is, _before).order_by(runs.c.id.desc()))
unserved = Statement(
    lambda _: _shown(text("runs.ended_at IS NOT NULL AND runs.state <> 'succeeded'"), _is, _before).order_by(
        runs.c.id.desc()
    )
)
# By what is going and waits alone: the order of ids is no index's here, or all that ever ran would be walked along.
_id: ColumnElement[str] = func.coalesce(runs.c.id, literal_column("''"))
going = Statement(lambda _: _shown(text(f"runs.{NOT_ENDED}"), _is, _id < bindparam("before")).order_by(_id.desc()))

one = Statement(lambda _: _shown(runs.c.id == bindparam("run")))

_open = Statement(lambda _: _shown(runs.c.lane_id == bindparam("lane"), text(f"runs.{NOT_ENDED}")))

_live = Statement(lambda _: _shown(runs.c.agent_id == bindparam("agent"), text(f"runs.{LIVE_RUN}")))

_lanes = Statement(lambda _: select(lanes.c.id).where(lanes.c.thread_id == bindparam("thread")))

decisions_of_runs = Statement(
    lambda dialect: select(
        decisions.c.run_id, decisions.c.outcome, decisions.c.code, decisions.c.record, decisions.c.at
    ).where(among(dialect, decisions.c.run_id, "runs"))
)

log_of_run = Statement(
    lambda _: (
        select(events)
        .where(events.c.run_id == bindparam("run"), events.c.seq > bindparam("after"))
        .order_by(events.c.seq)
        .limit(bindparam("most"))
    )
)

_refused = Statement(
    lambda _: (
        select(landings).where(landings.c.run_id == bindparam("run")).order_by(landings.c.attempt, landings.c.step)
    )
)


def read_run(connection: Connection, run: str) -> Row:
    row = one.first(connection, run=run, most=1)
    if row is None:
        raise NoSuchRun(f"There is no run {run}.", "See them with `clew runs`.")
    return row


def open_run_of(connection: Connection, lane: str) -> Row | None:
    """The lane's run that has not ended."""
    return _open.first(connection, lane=lane, most=1)


def live_runs_of(connection: Connection, agent: str) -> Sequence[Row]:
    """What the agent is doing, as far as a person would read on."""
    return _live.rows(connection, agent=agent, most=5)


def list_runs(
    connection: Connection,
    thread: str | None,
    agent: str | None,
    state: RunState | None,
    most: int,
    before: str | None,
) -> Sequence[Row]:
    """The newest first, of those that are of that thread, agent and state; the ones before a given run."""
    if thread is not None:
        found = _of_thread(connection, thread, most, before, None if agent is None and state is None else MANY)
    elif agent is not None and (state is None or state is RunState.SUCCEEDED):
        found = of_agent.rows(connection, agent=agent, before=before or LAST, most=most if state is None else MANY)
    else:
        wanted = most if agent is None else MANY
        found = _of_state(connection, state, wanted, before or LAST)
    return [row for row in found if _fits(row, agent, state)][:most]


MANY = 5000
"""How many are looked through where two things are asked at once, and an index knows one of them."""


def _of_state(connection: Connection, state: RunState | None, most: int, before: str) -> Sequence[Row]:
    if state is None:
        return newest.rows(connection, before=before, most=most)
    statement = answered if state is RunState.SUCCEEDED else unserved if state in RUN_ENDS else going
    return statement.rows(connection, state=state.value, before=before, most=most)


def _of_thread(connection: Connection, thread: str, most: int, before: str | None, look: int | None) -> Sequence[Row]:
    """Its lanes are few, and each knows its own runs."""
    place = {"before": LAST, "before_at": 1e15}
    if before is not None:
        place = {"before": before, "before_at": read_run(connection, before)["queued_at"]}
    found = [
        row
        for lane in _lanes.rows(connection, thread=thread)
        for row in of_lane.rows(connection, lane=lane["id"], most=look or most, **place)
    ]
    return sorted(found, key=lambda row: (row["queued_at"], row["id"]), reverse=True)


def _fits(row: Row, agent: str | None, state: RunState | None) -> bool:
    return (agent is None or row["agent_id"] == agent) and (state is None or row["state"] == state.value)


def newest_decisions(connection: Connection, of: Sequence[str]) -> dict[str, Row]:
    """The latest decision of each run; one that held it may be later than the one before it was claimed."""
    latest: dict[str, Row] = {}
    for row in decisions_of_runs.rows(connection, runs=list(of)) if of else ():
        if row["run_id"] not in latest or latest[row["run_id"]]["at"] <= row["at"]:
            latest[row["run_id"]] = row
    return latest


def list_events(connection: Connection, run: str, after: int, most: int) -> Sequence[Row]:
    return log_of_run.rows(connection, run=run, after=after, most=most)


def refused_landings(connection: Connection, run: str) -> Sequence[Row]:
    return _refused.rows(connection, run=run)


def is_live(row: Row) -> bool:
    return RunState(row["state"]) in LIVE
