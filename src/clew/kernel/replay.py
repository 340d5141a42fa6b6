"""Replay: decide a recorded situation again, under its own policy or another."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from clew.kernel.decision import decide
from clew.kernel.plan import Plan
from clew.kernel.record import Json, RecordError, situation_from_record, situation_to_record
from clew.kernel.situation import Policy


@dataclass(frozen=True, slots=True)
class Change:
    """One field in which a plan differs from the recorded one."""

    field: str
    was: Json
    now: Json


@dataclass(frozen=True, slots=True)
class Replay:
    plan: Plan
    changes: tuple[Change, ...]

    @property
    def same(self) -> bool:
        return not self.changes


def plan_to_record(plan: Plan) -> dict[str, Json]:
    """What was decided, without the situation. Sentences are separate fields, so that programs can leave them out."""
    workspace = plan.workspace
    return {
        "outcome": plan.outcome.value,
        "code": plan.reason.code,
        "session": None if plan.session is None else plan.session.id,
        "native_id": plan.native_id,
        "workspace": None if workspace is None else {"id": workspace.id, "directory": workspace.directory.place},
        "mode": None if plan.mode is None else plan.mode.value,
        "model": plan.model,
        "catch_up": [plan.catch_up.after, plan.catch_up.through],
        "kept": list(plan.kept),
        "act_on": list(plan.act_on),
        "proven": plan.proven,
        "waits_for": None if plan.waits_for is None else plan.waits_for.value,
        "marks": [[each.session, each.event.value, each.reason.code] for each in plan.session_changes],
        "notices": [[notice.audience.value, notice.reason.code, notice.words] for notice in plan.notices],
        "words": plan.words,
        "trace": [[step.subject, step.rule, step.outcome, step.code, step.words] for step in plan.brief_trace],
    }


def decision_to_record(plan: Plan) -> dict[str, Json]:
    """A whole decision, situation and plan, as a store keeps it."""
    return {**situation_to_record(plan.situation), "plan": plan_to_record(plan)}


# A later release may reword a sentence; that does not change the decision.
_WORDING = frozenset({"words", "trace", "notices"})


def replay(record: Mapping[str, object], policy: Policy | None = None) -> Replay:
    """Decide a recorded situation again, with `policy` instead of its own where one is given."""
    kept = record.get("plan")
    if not isinstance(kept, dict):
        raise RecordError("the record has no plan to compare with")
    situation = situation_from_record(record)
    plan = decide(situation if policy is None else replace(situation, policy=policy))
    now = plan_to_record(plan)
    changes = (Change(name, kept.get(name), now[name]) for name in now if name not in _WORDING)
    return Replay(plan, tuple(change for change in changes if change.was != change.now))
