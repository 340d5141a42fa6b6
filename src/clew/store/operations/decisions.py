"""Decisions: the situation that a run's decision is made from, and the record that it is stored as."""

import hashlib
import uuid
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import orjson
from sqlalchemy import Connection, bindparam, select
from sqlalchemy.sql import ClauseElement

from clew.kernel import (
    RECORD_VERSION,
    EntrySeq,
    Here,
    Instant,
    LaneId,
    MachineId,
    NativeId,
    Plan,
    ProviderName,
    RunId,
    RuntimeId,
    ScopeKey,
    Session,
    Situation,
    Source,
    Unheard,
    Wake,
    coalesce,
    gather,
    parse_mode,
    plan_to_record,
)
from clew.store.engine.dialect import insert_in
from clew.store.engine.statement import Row, Statement
from clew.store.operations.policies import read_policy
from clew.store.operations.rows import read_capabilities, read_floor, unreadable
from clew.store.operations.sessions import lane_sessions, run_session
from clew.store.operations.workspaces import place_facts
from clew.store.schema.tables import decisions


def situation_of(
    connection: Connection, row: Row, wakes: Sequence[Wake], scope: ScopeKey, unheard: tuple[Unheard, ...] = ()
) -> Situation:
    """The run's row, wakes and sessions as one value. A read that fails raises: the claim is rolled back, and never
    decides for a fresh start because it could not read."""
    lane, run = LaneId(row["lane_id"]), RunId(row["run_id"])
    demand = coalesce(wakes)

    def read(source: Source) -> Sequence[Session]:
        if source is Source.ASKED:
            return [] if demand.resume_run is None else run_session(connection, demand.resume_run)
        # A lane without sessions has none to read, nor has a scope that this run opens.
        if not row["has_sessions"] or (scope.run == run and row["attempt"] == 0):
            return []
        return lane_sessions(connection, lane, scope.run or "")

    here, sources, place = _here(row), gather(demand, read), place_facts(connection, row)
    try:
        return Situation(
            run=run,
            lane=lane,
            scope=scope,
            here=here,
            demand=demand,
            sources=sources,
            head=EntrySeq(row["head"]),
            place=place,
            policy=read_policy(row["agent_id"], row["policy"], row["project_id"], row["project_settings"]),
            now=row["now"],
            floor=read_floor(row),
            fresh_id=NativeId(str(uuid.uuid4())) if here.capabilities.choose_id else None,
            told_before=bool(row["told_before"]),
            unheard=unheard,
        )
    except ValueError as fault:
        raise unreadable("wakes", ", ".join(demand.wakes), "entry", fault) from fault


def _here(row: Row) -> Here:
    limits = (row["thread_mode_limit"], row["project_mode_limit"])
    return Here(
        machine=MachineId(row["machine_id"]),
        runtime=RuntimeId(row["runtime_id"]),
        provider=ProviderName(row["provider"]),
        capabilities=read_capabilities(row["runtime_id"], row["capabilities"]),
        account=row["account"],
        credential=row["credential"],
        agent=row["agent_name"],
        model=row["model"],
        mode=parse_mode(row["mode"]),
        mode_limits=tuple(parse_mode(each) for each in limits if each is not None),
        instructions=_digest(row["instructions"]),
        tools=_digest(row["tools"]),
    )


@lru_cache(maxsize=512)
def _digest(text: str | None) -> str | None:
    return None if text is None else hashlib.sha256(text.encode()).hexdigest()[:16]


HELD = -1
"""The step of the decision that held the run before it was claimed. Only the latest is stored."""

Decided = tuple[Plan, RunId, int, int, Instant]
"""A plan with its run, attempt, step (0 is the claim's own) and time."""

_KEPT = ("run_id", "attempt", "step", "outcome", "code", "record", "at")


def _keeping(dialect: str) -> ClauseElement:
    kept = insert_in(dialect, decisions).values({name: bindparam(name) for name in _KEPT})
    return kept.on_conflict_do_update(
        index_elements=[decisions.c.run_id, decisions.c.attempt, decisions.c.step],
        set_={name: kept.excluded[name] for name in ("outcome", "code", "record", "at")},
    )


keep_decision = Statement(_keeping)

_of_run = Statement(
    lambda _: (
        select(decisions).where(decisions.c.run_id == bindparam("run")).order_by(decisions.c.attempt, decisions.c.step)
    )
)


def keep_decisions(connection: Connection, decided: Sequence[Decided]) -> None:
    rows = (kept(plan, decision_record(plan), run, attempt, step, at) for plan, run, attempt, step, at in decided)
    keep_decision.defer_all(connection, rows)


def kept(plan: Plan, record: str, run: RunId, attempt: int, step: int, at: Instant) -> dict[str, Any]:
    """The row of a decision. `record` is from `decision_record`."""
    return {
        "run_id": run,
        "attempt": attempt,
        "step": step,
        "outcome": plan.outcome.value,
        "code": plan.reason.code,
        "record": record,
        "at": at,
    }


def decision_record(plan: Plan) -> str:
    """The JSON that `clew.kernel.record` reads: the same as of `decision_to_record`, written by orjson in one pass."""
    whole = {"version": RECORD_VERSION, "situation": plan.situation, "plan": plan_to_record(plan)}
    return orjson.dumps(whole, default=_plain).decode()


def _plain(value: object) -> list[object]:
    if isinstance(value, frozenset):
        return sorted(value, key=str)
    raise TypeError(f"a record cannot contain a value of type {type(value).__name__}")


def decisions_of(connection: Connection, run: RunId) -> list[Row]:
    """Every decision of a run in order; `record` is what `clew.kernel.record` reads."""
    return _of_run.rows(connection, run=run)
