"""What queued runs wait for, in words, with when that ends and whether a person has to act."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from sqlalchemy import Connection, bindparam, func, literal_column, select, text, tuple_
from sqlalchemy.sql import ClauseElement

from clew.kernel import (
    AgentState,
    EvidenceReason,
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
from clew.store.queries.refs import THREAD_NAME, run_ref, thread_ref, with_owner
from clew.store.schema.tables import LIVE, agents, lanes, machines, runs, runtimes, threads, wakes

MOST_AHEAD = 100
"""How many runs of the queue are counted for one that waits behind them."""

MOST_BUSY = 5
"""How many threads are named in which an agent is busy."""

TIME = "time"
"""The hold of a run that waits for its time alone."""


@dataclass(frozen=True, slots=True)
class Wait:
    """`held` is what ends the wait: another-try, session-free, person or time; None for a run that waits its turn."""

    held: str | None
    code: str | None
    words: str
    until: float | None = None


def _facts(dialect: str) -> ClauseElement:
    r, b, c, q = runs.alias("r"), runs.alias("b"), runs.alias("c"), runs.alias("q")
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
    return (
        select(
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
        )
        .select_from(
            r.join(agents, agents.c.id == r.c.agent_id)
            .outerjoin(runtimes, runtimes.c.id == r.c.runtime_id)
            .outerjoin(machines, machines.c.id == runtimes.c.machine_id)
        )
        .where(among(dialect, r.c.id, "runs"))
    )


facts_of_queued = Statement(_facts)

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


def queued_waits(connection: Connection, rows: Iterable[Row]) -> Mapping[str, Wait]:
    """For each run among the rows that is queued. The rows have the run's id, state, hold, hold_code, words, number
    and not_before."""
    queued = {row["id"]: row for row in rows if RunState(row["state"]) is RunState.QUEUED}
    waits = {id_: _for_person(row) for id_, row in queued.items() if row["hold"] == WaitsFor.PERSON}
    others = [id_ for id_ in queued if id_ not in waits]
    for facts in facts_of_queued.rows(connection, runs=others) if others else ():
        waits[facts["id"]] = _wait(connection, queued[facts["id"]], facts)
    return waits


def held_words(words: str, run: str, code: str | None) -> str:
    """Why a run is held for a person, and the command that lets it continue. Clew does not check by itself whether
    the cause was fixed."""
    words = words.strip()
    if code == EvidenceReason.UNKNOWN.code:
        # These words already say what a person can decide.
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
        return Wait(row["hold"], row["hold_code"], row["words"] or waiting.words, row["not_before"])
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
