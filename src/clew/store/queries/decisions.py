"""Recorded decisions: as views of a run, and in order, page by page, for a replay."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, bindparam, select, tuple_

from clew.kernel import Instant, Plan, RecordError, Route, RunId, Session, Step, decide, situation_from_record
from clew.protocol.why_views import ConsideredView, DecisionView, StepView
from clew.store.engine.statement import Row, Statement
from clew.store.operations.decisions import decisions_of
from clew.store.operations.ids import first_id
from clew.store.operations.rows import read_object
from clew.store.queries.refs import THREAD_NAME, run_ref, thread_ref, with_owner
from clew.store.schema.tables import decisions, lanes, runs, threads

Place = tuple[str, int, int]
"""A decision's run, attempt and step."""


@dataclass(frozen=True, slots=True)
class RecordedDecision:
    """`record` is the JSON that `clew.kernel.record` reads."""

    run: str
    ref: str
    """Its run's name for people: run-17."""
    attempt: int
    step: int
    thread: str
    at: float
    outcome: str
    record: str

    @property
    def place(self) -> Place:
        return self.run, self.attempt, self.step


page = Statement(
    lambda _: (
        select(decisions, runs.c.number, lanes.c.thread_id, *THREAD_NAME)
        .select_from(
            with_owner(
                decisions.join(runs, runs.c.id == decisions.c.run_id)
                .join(lanes, lanes.c.id == runs.c.lane_id)
                .join(threads, threads.c.id == lanes.c.thread_id)
            )
        )
        .where(
            tuple_(decisions.c.run_id, decisions.c.attempt, decisions.c.step)
            > tuple_(bindparam("run"), bindparam("attempt"), bindparam("step"))
        )
        .order_by(decisions.c.run_id, decisions.c.attempt, decisions.c.step)
        .limit(bindparam("most"))
    )
)


def first_since(at: Instant) -> Place:
    """The place before every decision of a run queued since then: run ids sort by the time they were made."""
    return (first_id("rn", at), -1, -2)


def decisions_after(connection: Connection, place: Place, most: int) -> tuple[RecordedDecision, ...]:
    rows = page.rows(connection, run=place[0], attempt=place[1], step=place[2], most=most)
    return tuple(
        RecordedDecision(
            row["run_id"],
            run_ref(row),
            row["attempt"],
            row["step"],
            thread_ref(row),
            row["at"],
            row["outcome"],
            row["record"],
        )
        for row in rows
    )


def decisions_of_run(connection: Connection, run: RunId) -> tuple[DecisionView, ...]:
    """In the order in which they were made: a decision that held a run again is later than the one of its claim."""
    rows = sorted(decisions_of(connection, run), key=lambda row: (row["at"], row["attempt"], row["step"]))
    return tuple(map(_view, rows))


_PROBE = "probe"

_ROUTES: Mapping[Route, str] = {
    Route.RESUME: "It can be resumed.",
    Route.FORK: "It can be forked.",
    Route.TRANSFER: "It can be moved here.",
    Route.WAIT: "It is busy; the run waits for it.",
    Route.OUT: "It cannot be used.",
}
_NOT_NEEDED = "Not weighed: a newer session decided."


def _view(row: Row) -> DecisionView:
    """Decided again from its record, to show every rule; or as it was recorded, where that comes out differently."""
    record = read_object(row["record"]) or {}
    kept = record.get("plan")
    kept = kept if isinstance(kept, dict) else {}
    plan = _decided_again(record)
    if plan is None or plan.outcome.value != row["outcome"] or plan.reason.code != row["code"]:
        # This Clew decides differently, or cannot read the version of the record. The decision as made counts.
        return _as_recorded(row, kept)
    return DecisionView(
        attempt=row["attempt"],
        step=row["step"],
        at=row["at"],
        outcome=plan.outcome.value,
        code=plan.reason.code,
        words=plan.words,
        directory=None if plan.workspace is None else plan.workspace.directory.path,
        place_words=plan.place.words,
        mode=None if plan.mode is None else plan.mode.value,
        mode_words=plan.mode_choice.words,
        catch_up=_catch_up(plan.catch_up.after, plan.catch_up.through, plan.kept),
        notices=tuple(notice.words for notice in plan.notices),
        considered=_considered(plan),
        probes=_steps(plan, _PROBE),
        session=None if plan.session is None else plan.session.id,
    )


def _decided_again(record: Mapping[str, object]) -> Plan | None:
    try:
        return decide(situation_from_record(record))
    except (RecordError, ValueError, TypeError, KeyError):
        return None


def _considered(plan: Plan) -> tuple[ConsideredView, ...]:
    weighed = [
        _one(each.session, each.route.value, _ROUTES[each.route], [*_of(plan, each.session)])
        for each in plan.considered
    ]
    passed = [_one(session, "not-weighed", _NOT_NEEDED, [*_of(plan, session)]) for session in plan.not_needed]
    return (*weighed, *passed)


def _of(plan: Plan, session: Session) -> list[Step]:
    return [step for step in plan.trace if step.subject == session.id and step.rule != _PROBE]


def _one(session: Session, route: str, words: str, steps: list[Step]) -> ConsideredView:
    return ConsideredView(session.id, session.generation, route, words, tuple(map(_step, steps)))


def _steps(plan: Plan, rule: str) -> tuple[StepView, ...]:
    return tuple(_step(step) for step in plan.trace if step.rule == rule)


def _step(step: Step) -> StepView:
    return StepView(str(step.subject), str(step.rule), str(step.outcome), str(step.code), step.words)


def _catch_up(after: int, through: int, kept: Any) -> str:
    earlier = [f"entry {entry}" for entry in kept]
    first = after + 1
    later = [] if first > through else [f"entry {through}" if first == through else f"entries {first} to {through}"]
    return ", ".join(earlier + later) or "nothing"


def _as_recorded(row: Row, plan: Mapping[str, Any]) -> DecisionView:
    trace = [StepView(*map(str, step)) for step in plan.get("trace", ()) if len(step) == 5]
    by_rule = {step.rule: step.words for step in trace}
    workspace, caught = plan.get("workspace"), plan.get("catch_up") or [0, 0]
    sessions = dict.fromkeys(step.subject for step in trace if step.subject.startswith("ss_"))
    return DecisionView(
        attempt=row["attempt"],
        step=row["step"],
        at=row["at"],
        outcome=row["outcome"],
        code=row["code"],
        words=str(plan.get("words") or row["code"]),
        directory=workspace.get("directory") if isinstance(workspace, dict) else None,
        place_words=by_rule.get("place", ""),
        mode=plan.get("mode"),
        mode_words=by_rule.get("permission", ""),
        catch_up=_catch_up(caught[0], caught[1], plan.get("kept", ())),
        notices=tuple(step.words for step in trace if step.rule == "notice"),
        considered=tuple(
            ConsideredView(
                session, 0, "", "", tuple(step for step in trace if step.subject == session and step.rule != _PROBE)
            )
            for session in sessions
        ),
        probes=tuple(step for step in trace if step.rule == _PROBE),
        session=plan.get("session"),
    )
