"""A run's next state as one statement: the kernel's table of runs as SQL, fenced by the attempt number."""

from dataclasses import dataclass
from functools import cache
from typing import Any, TypedDict, Unpack

from sqlalchemy import (
    Column,
    ColumnElement,
    Connection,
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

from clew.kernel import LIVE, RUN_ENDS, RUN_TABLE, Patience, Run, RunEvent, RunId, RunRefusal, RunState, apply
from clew.store.engine.dialect import greater, lesser, now
from clew.store.engine.statement import Row, Statement, named
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
    # As text: in RETURNING on SQLite, SQLAlchemy renders columns without their table, so `id = id` would compare a
    # column of the subquery with itself.
    return literal_column(f"runs.{name}")


def _looked_up(column: Column[Any], key: Column[Any], name: str) -> ColumnElement[Any]:
    """A column of the row that the run refers to by `name`."""
    return select(column).where(key == _own(name)).scalar_subquery()


_OWN_COLUMNS: tuple[ColumnElement[Any], ...] = (
    *(column for column in runs.c if column.name not in _NOT_NEEDED),
    _looked_up(lanes.c.thread_id, lanes.c.id, "lane_id").label("thread_id"),
    _looked_up(runtimes.c.provider, runtimes.c.id, "runtime_id").label("provider"),
    select(func.count()).where(sessions.c.id == _own("session_id")).scalar_subquery().label("pinned"),
    now().label("now"),
)
_ANSWER_COLUMNS: tuple[ColumnElement[Any], ...] = (
    account_of_run(_own("session_id"), _own("runtime_id"), _own("agent_id")).label("account"),
    _looked_up(agents.c.name, agents.c.id, "agent_id").label("agent_name"),
    runs.c.prompt,
)
RUN_COLUMNS = (*_OWN_COLUMNS, *_ANSWER_COLUMNS)
"""A run with what its operations need beside it: its thread, agent and account, and whether its session is pinned."""

Events = tuple[RunEvent, ...]


class RunValues(TypedDict, total=False):
    """The columns of a run that an event can set."""

    outcome: str | None
    words: str | None
    landing: str | None
    claim: str | None
    told: int | None
    prompt: str | None
    evidence: str | None
    evidence_words: str | None


_GIVEN = named(
    {
        "run": runs.c.id,
        "attempt": runs.c.attempt,
        "lease": runs.c.lease_until,
        **{name: runs.c[name] for name in RunValues.__annotations__},
    }
)

_LEASE = Patience().lease


@cache
def targets(events: Events) -> dict[RunState, RunState]:
    """The states in which these events can happen one after the other, each with the state they lead to."""
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
    lease: float = _LEASE,
    **values: Unpack[RunValues],
) -> Row | None:
    """The run after the events; None when another attempt has it, or they cannot happen in its state.

    A value that is left out or None leaves its column as it is.
    """
    given = {**dict.fromkeys(RunValues.__annotations__), **values}
    return _statement(events).first(connection, run=run, attempt=attempt, lease=lease, **given)


@cache
def _statement(events: Events) -> Statement:
    return Statement(lambda dialect: _update(dialect, events))


def _update(dialect: str, events: Events) -> ClauseElement:
    """The kernel's table as one UPDATE. A value that is given as NULL leaves its column as it is."""
    to = targets(events)
    live = [start.value for start, end in to.items() if end in LIVE]
    ending = [start.value for start, end in to.items() if end in RUN_ENDS]
    renewed = greater(dialect, runs.c.lease_until, now() + _GIVEN["lease"])
    ends = _one_of(ending)
    statement = (
        runs.update()
        .where(
            runs.c.id == _GIVEN["run"],
            runs.c.attempt == _GIVEN["attempt"],
            _one_of([start.value for start in to]),
        )
        .values(
            state=case(*((runs.c.state == _literal(start.value), _literal(end.value)) for start, end in to.items())),
            lease_until=case((_one_of(live), renewed), else_=null()),
            ended_at=case((ends, now()), else_=null()),
            # A run that was being stopped ends for the reason it was stopped for.
            outcome=case((ends, func.coalesce(runs.c.stop_code, _GIVEN["outcome"])), else_=null()),
            words=case((runs.c.stop_code.is_not(None), runs.c.words), else_=_given_or_kept("words")),
            landing=_given_or_kept("landing"),
            claim=_given_or_kept("claim"),
            **(_evidence() if ending else {}),
            # The prompt of this report counts, also where REOPEN clears the one before.
            **(_flags(events) | (_prompt(dialect) if RunEvent.PROMPT in events else {})),
        )
    )
    if RunEvent.REOPEN in events:
        statement = statement.where(runs.c.tool_ran == _number(0), runs.c.reopened == _number(0))
    # Each look-up costs time, so an event that cannot end the run returns fewer columns.
    return statement.returning(*(RUN_COLUMNS if ending else _OWN_COLUMNS))


def _given_or_kept(name: str) -> ColumnElement[Any]:
    return func.coalesce(_GIVEN[name], runs.c[name])


def _evidence() -> dict[str, ColumnElement[Any]]:
    """What the agent's store said of the prompt, if the run was about to send one and the end brings an answer."""
    said = runs.c.prompt.is_not(None) & _GIVEN["evidence"].is_not(None)
    return {
        "evidence": case((said, _GIVEN["evidence"]), else_=runs.c.evidence),
        "evidence_words": case((said, _GIVEN["evidence_words"]), else_=runs.c.evidence_words),
        "evidence_at": case((said, now()), else_=runs.c.evidence_at),
    }


def _prompt(dialect: str) -> dict[str, ColumnElement[Any]]:
    """The prompt, and the last entry it contains: never more than the journal has."""
    lane = lanes.alias("of_lane")
    head = (
        select(func.coalesce(func.max(journal.c.seq), 0))
        .join(lane, lane.c.thread_id == journal.c.thread_id)
        .where(lane.c.id == runs.c.lane_id)
        .scalar_subquery()
    )
    told = _GIVEN["told"]
    return {
        "told": case((told.is_(None), runs.c.told), else_=lesser(dialect, told, head)),
        "prompt": _GIVEN["prompt"],
    }


def _flags(events: Events) -> dict[str, ColumnElement[Any]]:
    """How far the run has come. It decides what may be repeated after a failure."""
    flags: dict[str, ColumnElement[Any]] = {}
    for event in events:
        match event:
            case RunEvent.PROMPT:
                flags["prompt_sent"] = _number(1)
            case RunEvent.REOPEN:
                # A session that could not be resumed did not take the prompt either.
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
    # OR instead of IN: SQLite builds a temporary table for every IN.
    return or_(false(), *(runs.c.state == _literal(state) for state in states))


_run = Statement(lambda _: select(*RUN_COLUMNS).where(runs.c.id == bindparam("run")))


@dataclass(frozen=True, slots=True)
class Refused:
    """The run, unchanged; `reason` is None when the event is possible now."""

    row: Row
    run: Run
    reason: RunRefusal | None
    words: str


def _read_run_row(connection: Connection, run: RunId) -> Row:
    row = _run.first(connection, run=run)
    if row is None:
        raise NoSuchRun(f"There is no run {run}.", "See them with `clew runs`.")
    return row


def why_refused(connection: Connection, run: RunId, attempt: int, event: RunEvent) -> Refused:
    row = _read_run_row(connection, run)
    found = read_run(row)
    applied = apply(found, event, attempt, lease_until=0.0)
    return Refused(row, found, applied.refused, applied.words)
