"""What runs wait for, in words: queued ones, with when that ends and whether a person has to act, and running ones
that are silent or whose model does not answer."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, FromClause, Select, bindparam, cast, func, literal_column, select, text, tuple_
from sqlalchemy.sql import ClauseElement

from clew.kernel import (
    AgentState,
    EvidenceReason,
    FoundReason,
    Heard,
    LiveRuns,
    Patience,
    QueueFacts,
    RunLimits,
    RunState,
    WaitReason,
    WaitsFor,
    presence,
    waits_for,
)
from clew.store.engine.dialect import among, now
from clew.store.engine.statement import Row, Statement
from clew.store.operations.rows import read_object
from clew.store.operations.workspaces import GOES_ON_AFTER
from clew.store.queries.refs import THREAD_NAME, run_ref, thread_ref, with_owner
from clew.store.schema.tables import LIVE, agents, events, lanes, machines, runs, runtimes, threads, wakes

MOST_AHEAD = 100
"""How many runs of the queue are counted for one that waits behind them."""

MOST_BUSY = 5
"""How many threads are named in which an agent is busy."""

_STEP, _RETRYING, _SILENCE = "step", "retrying", "silence"
_OUTAGE = "The model does not answer, and the agent tries again"
_later = events.alias("later")

TIME = "time"
"""The hold of a run that waits for its time alone."""


@dataclass(frozen=True, slots=True)
class Wait:
    """`held` is what ends the wait: another-try, session-free, person or time; None for a run that waits its turn."""

    held: str | None
    code: str | None
    words: str
    until: float | None = None


def _facts(r: FromClause) -> Select[Any]:
    """What runs wait for. `r` has their id, agent_id, runtime_id, lane_id and rank."""
    b, c, q = runs.alias("b"), runs.alias("c"), runs.alias("q")
    of_agent = select(func.count()).select_from(b).where(b.c.agent_id == r.c.agent_id, text(f"b.{LIVE}"))
    of_runtime = select(func.count()).select_from(c).where(c.c.runtime_id == r.c.runtime_id, text(f"c.{LIVE}"))
    # Along ix_runs_queue, from its start to the run.
    before = (
        select(literal_column("1").label("one"))
        .select_from(q)
        .where(
            text("q.state = 'queued' AND q.hold <> 'person'"),
            q.c.runtime_id == r.c.runtime_id,
            q.c.not_before.is_(None) | (q.c.not_before <= now()),
            tuple_(q.c.rank, q.c.id) < tuple_(r.c.rank, r.c.id),
        )
        .limit(MOST_AHEAD)
        .correlate(r)
        .subquery("ahead")
    )
    why = (
        select(wakes.c.words)
        .where(wakes.c.lane_id == r.c.lane_id, text("wakes.state = 'pending'"))
        .order_by(wakes.c.accepted_at, wakes.c.id)
        .limit(1)
    )
    return select(
        r.c.id,
        r.c.agent_id,
        agents.c.name,
        agents.c.state.label("agent_state"),
        agents.c.missing,
        agents.c.max_live.label("agent_max"),
        runtimes.c.max_live.label("runtime_max"),
        runtimes.c.seen_at,
        machines.c.name.label("machine_name"),
        of_agent.correlate(r).scalar_subquery().label("agent_live"),
        of_runtime.correlate(r).scalar_subquery().label("runtime_live"),
        select(func.count()).select_from(before).scalar_subquery().label("ahead"),
        why.correlate(r).scalar_subquery().label("why"),
        now().label("now"),
    ).select_from(
        r.join(agents, agents.c.id == r.c.agent_id)
        .outerjoin(runtimes, runtimes.c.id == r.c.runtime_id)
        .outerjoin(machines, machines.c.id == runtimes.c.machine_id)
    )


def _facts_of_queued(dialect: str) -> ClauseElement:
    r = runs.alias("r")
    return _facts(r).where(among(dialect, r.c.id, "runs"))


def _facts_of_new(_: str) -> ClauseElement:
    text_, names = runs.c.id.type, ("id", "agent_id", "runtime_id", "lane_id")
    given = [cast(bindparam(name, type_=text_), text_).label(name) for name in names]
    rank = cast(bindparam("rank", type_=runs.c.rank.type), runs.c.rank.type).label("rank")
    return _facts(select(*given, rank).subquery("r"))


facts_of_queued = Statement(_facts_of_queued)
facts_of_new = Statement(_facts_of_new)
"""The same for a run that does not exist yet."""

busy = Statement(
    lambda _: (
        select(runs.c.state, lanes.c.thread_id, *THREAD_NAME)
        .select_from(
            with_owner(runs.join(lanes, lanes.c.id == runs.c.lane_id).join(threads, threads.c.id == lanes.c.thread_id))
        )
        .where(runs.c.agent_id == bindparam("agent"), text(f"runs.{LIVE}"))
        .order_by(runs.c.started_at, runs.c.id)
        .limit(bindparam("most"))
    )
)


_last_lines = Statement(
    lambda dialect: (
        select(events.c.run_id, events.c.kind, events.c.body)
        .select_from(runs)
        .join(
            events,
            (events.c.run_id == runs.c.id)
            & (
                events.c.seq
                == select(func.max(_later.c.seq)).where(_later.c.run_id == runs.c.id).correlate(runs).scalar_subquery()
            ),
        )
        .where(
            among(dialect, runs.c.id, "runs"),
            events.c.kind.in_([literal_column(f"'{_RETRYING}'"), literal_column(f"'{_STEP}'")]),
        )
    )
)


def queued_waits(connection: Connection, rows: Iterable[Row]) -> Mapping[str, Wait]:
    """For each run among the rows that is queued. The rows have the run's id, state, hold, hold_code, words, number
    and not_before."""
    queued = {row["id"]: row for row in rows if RunState(row["state"]) is RunState.QUEUED}
    waits = {id_: _for_person(row) for id_, row in queued.items() if row["hold"] == WaitsFor.PERSON}
    others = [id_ for id_ in queued if id_ not in waits]
    for facts in facts_of_queued.rows(connection, runs=others) if others else ():
        waits[facts["id"]] = _wait(connection, queued[facts["id"]], facts)
    return waits


def wait_of_new(connection: Connection, run: str, agent: str, runtime: str | None, lane: str, rank: float) -> Wait:
    """What a run would wait for if it were queued now, with that rank."""
    row = {"hold": "", "hold_code": None, "words": None, "not_before": None}
    asked = {"id": run, "agent_id": agent, "runtime_id": runtime, "lane_id": lane, "rank": rank}
    (facts,) = facts_of_new.rows(connection, **asked)
    return _wait(connection, row, facts)


def delays(connection: Connection, rows: Iterable[Row]) -> Mapping[str, str]:
    """For each run whose agent waits for its model at the moment, or is silent: what is known about it."""
    running = [row["id"] for row in rows if RunState(row["state"]) is RunState.RUNNING]
    found = _last_lines.rows(connection, runs=running) if running else ()
    said = {row["run_id"]: (row["kind"], read_object(row["body"]) or {}) for row in found}
    return {
        run: f"{_OUTAGE}: {body.get('words', '')}" if kind == _RETRYING else str(body.get("words", ""))
        for run, (kind, body) in said.items()
        if kind == _RETRYING or body.get("what") == _SILENCE
    }


def held_words(words: str, run: str, code: str | None) -> str:
    """Why a run is held for a person, and the command that lets it continue. Clew does not check by itself whether
    the cause was fixed."""
    words = words.strip()
    if code == EvidenceReason.UNKNOWN.code or GOES_ON_AFTER in words:
        # These words already say what a person can decide, and what is typed for it starts the run.
        return f"{words} Or `clew cancel {run}`."
    # The reason may come from an agent's program, and need not be a whole sentence.
    stop = "" if not words or words.endswith((".", "!", "?")) else "."
    return f"{words}{stop} Once that is fixed, run `clew retry {run}`; or `clew cancel {run}`.".strip()


def _for_person(row: Row) -> Wait:
    return Wait(WaitsFor.PERSON, row["hold_code"], held_words(row["words"] or "", run_ref(row), row["hold_code"]))


def _wait(connection: Connection, row: Row, facts: Row) -> Wait:
    waiting = waits_for(_read(connection, row, facts), row["not_before"], facts["now"])
    if waiting.needs_person:
        return Wait(WaitsFor.PERSON, waiting.reason.code, waiting.words)
    if row["hold"]:
        # Where something is in use, its time is only when Clew looks again: nobody knows when it is free.
        free = row["hold"] == WaitsFor.SESSION_FREE or row["hold_code"] == FoundReason.IN_USE.code
        until = None if free else row["not_before"]
        return Wait(row["hold"], row["hold_code"], row["words"] or waiting.words, until)
    held = TIME if waiting.reason is WaitReason.NOT_YET else None
    return Wait(held, waiting.reason.code, waiting.words, waiting.until)


def _read(connection: Connection, row: Row, facts: Row) -> QueueFacts:
    full = facts["agent_live"] >= facts["agent_max"]
    return QueueFacts(
        agent=facts["name"],
        live=LiveRuns(0, facts["agent_live"], facts["runtime_live"]),
        limits=RunLimits(facts["agent_max"], facts["runtime_max"] or 0),
        active=AgentState(facts["agent_state"]) is AgentState.ACTIVE,
        missing=facts["missing"] or "",
        registered=facts["machine_name"] is not None,
        machine=facts["machine_name"] or "",
        where=presence(Heard(facts["seen_at"] or 0.0), facts["now"], Patience()),
        ahead=facts["ahead"],
        why=row["words"] or facts["why"] or "",
        busy_in=_busy_in(connection, facts["agent_id"]) if full else (),
    )


def _busy_in(connection: Connection, agent: str) -> tuple[str, ...]:
    live = busy.rows(connection, agent=agent, most=MOST_BUSY)
    asks = " (which waits for your answer, see `clew approvals`)"
    return tuple(thread_ref(each) + (asks if RunState(each["state"]) is RunState.WAITING else "") for each in live)
