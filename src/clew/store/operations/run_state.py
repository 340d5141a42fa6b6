"""A run's next state as one statement: the kernel's table of runs, written as SQL and guarded by the fence."""

from dataclasses import dataclass
from functools import cache
from typing import Any

from sqlalchemy import (
    Column,
    ColumnElement,
    Connection,
    Update,
    bindparam,
    case,
    false,
    func,
    literal_column,
    null,
    or_,
    select,
)
from sqlalchemy.sql import ClauseElement

from clew.kernel import LIVE, RUN_ENDS, RUN_TABLE, Run, RunEvent, RunId, RunRefusal, RunState, apply
from clew.store.engine.dialect import greater, lesser, now
from clew.store.engine.statement import Given, Row, Statement, named
from clew.store.faults import NoSuchRun
from clew.store.operations.rows import read_run
from clew.store.operations.runtimes import account_of_run
from clew.store.schema.tables import agents, journal, lanes, runs, runtimes, sessions

_NOT_NEEDED = frozenset(
    {
        "landing",
        "claim",
        "rank",
        "not_before",
        "claimed_by",
        "agent_place",
        "runtime_place",
        "hold",
        "hold_code",
        "prompt",
        "evidence_words",
        "evidence_at",
        "steer",
    }
)


def _own(name: str) -> ColumnElement[Any]:
    # SQLAlchemy leaves the table out where SQLite returns rows: a column would be compared with its namesake beside it.
    return literal_column(f"runs.{name}")


def _looked_up(column: Column[Any], key: Column[Any], name: str) -> ColumnElement[Any]:
    """What the row says that a column of the run points to."""
    return select(column).where(key == _own(name)).scalar_subquery()


_THREAD = _looked_up(lanes.c.thread_id, lanes.c.id, "lane_id")

_ITS_OWN: tuple[ColumnElement[Any], ...] = (
    *(column for column in runs.c if column.name not in _NOT_NEEDED),
    _THREAD.label("thread_id"),
    _looked_up(runtimes.c.provider, runtimes.c.id, "runtime_id").label("provider"),
    select(func.count()).where(sessions.c.id == _own("session_id")).scalar_subquery().label("pinned"),
    now().label("now"),
)
_WHO_ANSWERS: tuple[ColumnElement[Any], ...] = (
    account_of_run(_own("session_id"), _own("runtime_id"), _own("agent_id")).label("account"),
    _looked_up(agents.c.name, agents.c.id, "agent_id").label("agent_name"),
    runs.c.prompt,
)
RUN_COLUMNS = (*_ITS_OWN, *_WHO_ANSWERS)
"""A run with what else its operations need of it: its thread, who answers there, and whether its session is pinned."""

Events = tuple[RunEvent, ...]

_SAID = named(
    {
        "run": runs.c.id,
        "attempt": runs.c.attempt,
        "lease": runs.c.lease_until,
        **{
            name: runs.c[name]
            for name in ("outcome", "words", "landing", "claim", "told", "prompt", "evidence", "evidence_words")
        },
    }
)

_GRACE = 60.0


@cache
def targets(events: Events) -> dict[RunState, RunState]:
    """From which states the events can happen one after the other, and where they lead."""
    found: dict[RunState, RunState] = {}
    for start in RunState:
        state: RunState | None = start
        for event in events:
            state = None if state is None else RUN_TABLE.get((state, event))
        if state is not None:
            found[start] = state
    return found


def advance(
    connection: Connection,
    run: str,
    attempt: int,
    events: Events,
    lease: float = _GRACE,
    outcome: str | None = None,
    words: str | None = None,
    landing: str | None = None,
    claim: str | None = None,
    told: int | None = None,
    prompt: str | None = None,
    evidence: str | None = None,
    evidence_words: str | None = None,
) -> Row | None:
    """The run after the events, if that attempt holds it and they can happen to it; None when nothing was changed.

    What is None stays as it is.
    """
    return _statement(events).first(
        connection,
        run=run,
        attempt=attempt,
        lease=lease,
        outcome=outcome,
        words=words,
        landing=landing,
        claim=claim,
        told=told,
        prompt=prompt,
        evidence=evidence,
        evidence_words=evidence_words,
    )


@cache
def _statement(events: Events) -> Statement:
    return Statement(lambda dialect: _update(dialect, events))


def _update(dialect: str, events: Events) -> ClauseElement:
    # Each look-up takes its time, so a run that goes on brings none of an end's.
    may_end = any(end in RUN_ENDS for end in targets(events).values())
    return changed(dialect, events, _SAID).returning(*(RUN_COLUMNS if may_end else _ITS_OWN))


def changed(dialect: str, events: Events, given: Given) -> Update:
    """The run after the events, where they can happen to it. What is not given, or given as null, stays as it is."""

    def said(column: Column[Any]) -> ColumnElement[Any]:
        return func.coalesce(given[column.name], column) if column.name in given else column

    to = targets(events)
    live = [start.value for start, end in to.items() if end in LIVE]
    ending = [start.value for start, end in to.items() if end in RUN_ENDS]
    renewed = greater(dialect, runs.c.lease_until, now() + given["lease"])
    ends = _one_of(ending)
    statement = (
        runs.update()
        .where(
            runs.c.id == given["run"],
            runs.c.attempt == given["attempt"],
            _one_of([start.value for start in to]),
        )
        .values(
            state=case(*((runs.c.state == _literal(start.value), _literal(end.value)) for start, end in to.items())),
            lease_until=case((_one_of(live), renewed), else_=null()),
            ended_at=case((ends, now()), else_=null()),
            # A run that was being stopped ends for the reason it was stopped for.
            outcome=case((ends, func.coalesce(runs.c.stop_code, given.get("outcome", null()))), else_=null()),
            words=case((runs.c.stop_code.is_not(None), runs.c.words), else_=said(runs.c.words)),
            **{name: said(runs.c[name]) for name in ("landing", "claim") if name in given},
            **({"told": _at_most_all(dialect, given["told"])} if RunEvent.PROMPT in events else {}),
            **(_heard(given) if ending and "evidence" in given else {}),
            **(_flags(events) | ({"prompt": given["prompt"]} if RunEvent.PROMPT in events else {})),
        )
    )
    if RunEvent.REOPEN in events:
        statement = statement.where(runs.c.tool_ran == _number(0), runs.c.reopened == _number(0))
    return statement


def _heard(given: Given) -> dict[str, ColumnElement[Any]]:
    """What its agent's store said of the prompt of a run that ends, where one was about to go out and was asked for."""
    said = runs.c.prompt.is_not(None) & given["evidence"].is_not(None)
    return {
        "evidence": case((said, given["evidence"]), else_=runs.c.evidence),
        "evidence_words": case((said, given["evidence_words"]), else_=runs.c.evidence_words),
        "evidence_at": case((said, now()), else_=runs.c.evidence_at),
    }


def _at_most_all(dialect: str, told: ColumnElement[Any]) -> ColumnElement[Any]:
    """How far the run told: nobody was told more than the journal holds."""
    lane = lanes.alias("of_lane")
    all_of_it = (
        select(func.coalesce(func.max(journal.c.seq), 0))
        .join(lane, lane.c.thread_id == journal.c.thread_id)
        .where(lane.c.id == runs.c.lane_id)
        .scalar_subquery()
    )
    return case((told.is_(None), runs.c.told), else_=lesser(dialect, told, all_of_it))


def _flags(events: Events) -> dict[str, ColumnElement[Any]]:
    """How far the run has come, which decides what may be done again."""
    flags: dict[str, ColumnElement[Any]] = {}
    for event in events:
        match event:
            case RunEvent.PROMPT:
                flags["prompt_sent"] = _number(1)
            case RunEvent.REOPEN:
                # A session that refuses to be resumed has refused the prompt too.
                flags["prompt_sent"], flags["reopened"] = _number(0), _number(1)
                flags["prompt"] = null()
            case RunEvent.TOOL:
                flags["tool_ran"] = _number(1)
            case RunEvent.ASK:
                flags["tool_ran"], flags["asked"] = _number(1), runs.c.asked + 1
            case _:
                pass
    return flags


def _number(value: int) -> ColumnElement[int]:
    result: ColumnElement[int] = literal_column(str(value))
    return result


def _literal(value: str) -> ColumnElement[str]:
    result: ColumnElement[str] = literal_column(f"'{value}'")
    return result


def _one_of(states: list[str]) -> ColumnElement[bool]:
    # Spelled out: SQLite builds a table for an IN each time.
    return or_(false(), *(runs.c.state == _literal(state) for state in states))


_run = Statement(lambda _: select(*RUN_COLUMNS).where(runs.c.id == bindparam("run")))


@dataclass(frozen=True, slots=True)
class Refused:
    """The run as it stands, untouched; `reason` is None when what was reported had been taken before."""

    row: Row
    run: Run
    reason: RunRefusal | None
    words: str


def read_run_row(connection: Connection, run: RunId) -> Row:
    row = _run.first(connection, run=run)
    if row is None:
        raise NoSuchRun(f"There is no run {run}.", "Name one that exists.")
    return row


def why_refused(connection: Connection, run: RunId, attempt: int, event: RunEvent) -> Refused:
    row = read_run_row(connection, run)
    found = read_run(row)
    applied = apply(found, event, attempt, lease_until=0.0)
    return Refused(row, found, applied.refused, applied.words)
