"""Decisions as they are kept: the situation, the plan and the trace, so that each can be shown and made again."""

from collections.abc import Sequence
from typing import Any

import orjson
from sqlalchemy import Connection, bindparam, select
from sqlalchemy.sql import ClauseElement

from clew.kernel import RECORD_VERSION, Instant, Plan, RunId, plan_to_record
from clew.store.engine.dialect import insert_in
from clew.store.engine.statement import Row, Statement
from clew.store.schema.tables import decisions

HELD = -1
"""The step of a decision that held the run before it was claimed; there is one, the latest."""

Decided = tuple[Plan, RunId, int, int, Instant]
"""A plan with its run, the attempt, the step within it (0 is the claim's own) and when."""

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
    """The row of a decision whose record was written before."""
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
    """What `clew.kernel.record` reads, as `decision_to_record` would have it, but written in one go."""
    whole = {"version": RECORD_VERSION, "situation": plan.situation, "plan": plan_to_record(plan)}
    return orjson.dumps(whole, default=_plain).decode()


def _plain(value: object) -> list[object]:
    if isinstance(value, frozenset):
        return sorted(value, key=str)
    raise TypeError(f"{type(value).__name__} has no place in a record")


def decisions_of(connection: Connection, run: RunId) -> list[Row]:
    """Every decision of a run in order, as it is kept: `record` is what `clew.kernel.record` takes."""
    return _of_run.rows(connection, run=run)
