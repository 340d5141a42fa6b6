"""Decisions as they are shown: made again from their records for every rule, or told as they were kept."""

from collections.abc import Mapping
from typing import Any

import orjson

from clew.kernel import Plan, RecordError, Route, Session, Step, decide, situation_from_record
from clew.protocol.views import ConsideredView, DecisionView, StepView
from clew.store.engine.statement import Row

_PROBE, _SOURCE, _FIT = "probe", "source", "fit"

ROUTE_WORDS: Mapping[Route, str] = {
    Route.RESUME: "It can be resumed.",
    Route.FORK: "It can be forked.",
    Route.TRANSFER: "It can be carried here.",
    Route.WAIT: "It must be waited for.",
    Route.OUT: "It cannot be used.",
}
_NOT_WEIGHED = "It was not weighed: a newer one decided."


def show_decision(row: Row) -> DecisionView:
    record = _record(row["record"])
    kept = record.get("plan")
    kept = kept if isinstance(kept, dict) else {}
    plan = _made_again(record)
    if plan is None or plan.outcome.value != row["outcome"] or plan.reason.code != row["code"]:
        # A later program decides otherwise, or reads another version; what was decided then is what counts.
        return _as_kept(row, kept)
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
    )


def _record(text: str) -> dict[str, Any]:
    try:
        record = orjson.loads(text)
    except ValueError:
        return {}
    return record if isinstance(record, dict) else {}


def _made_again(record: Mapping[str, object]) -> Plan | None:
    try:
        return decide(situation_from_record(record))
    except (RecordError, ValueError, TypeError, KeyError):
        return None


def _considered(plan: Plan) -> tuple[ConsideredView, ...]:
    weighed = [
        _one(each.session, each.route.value, ROUTE_WORDS[each.route], [*_of(plan, each.session)])
        for each in plan.considered
    ]
    passed = [_one(session, "not-weighed", _NOT_WEIGHED, [*_of(plan, session)]) for session in plan.not_needed]
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


def _as_kept(row: Row, plan: Mapping[str, Any]) -> DecisionView:
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
    )
