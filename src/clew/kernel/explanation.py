"""Explanations: a plan as text for a person."""

from collections.abc import Mapping

from clew.kernel.plan import Plan
from clew.kernel.trace import FIT, Route


def headline(plan: Plan) -> str:
    """The outcome and its reason in one line."""
    return f"{plan.outcome}: {plan.words} [{plan.reason.code}]"


def explain(plan: Plan, every_rule: bool = False) -> str:
    """The headline, what the run gets, and each session with the rules that applied; with `every_rule`, all rules."""
    lines = [headline(plan)]
    if plan.workspace is not None:
        lines.append(f"  directory  {plan.workspace.directory}  ({plan.place.words})")
    lines.append(f"  mode       {plan.mode}  ({plan.mode_choice.words})")
    lines.append(f"  catch-up   {_catch_up(plan)}")
    lines.extend(f"  note       {notice.words}" for notice in plan.notices)
    steps = plan.trace
    for read in plan.situation.sources:
        words = next(step.words for step in steps if step.subject == read.source and step.rule == "source")
        lines.append(f"  source     {read.source}: {words}")
    for each in plan.considered:
        session = each.session
        lines.append(f"  session    {session.id}, generation {session.generation}: {_VERBS[each.route]}")
        lines.extend(
            f"    {step.outcome:<11} {step.rule:<13} {step.words}"
            for step in steps
            if step.subject == session.id and (every_rule or step.outcome != FIT)
        )
    lines.extend(
        f"  session    {session.id}, generation {session.generation}: was not weighed" for session in plan.not_needed
    )
    return "\n".join(lines)


_VERBS: Mapping[Route, str] = {
    Route.RESUME: "can be resumed",
    Route.FORK: "can be forked",
    Route.TRANSFER: "can be carried here",
    Route.WAIT: "must be waited for",
    Route.OUT: "cannot be used",
}


def _catch_up(plan: Plan) -> str:
    kept = [f"entry {entry}" for entry in plan.kept]
    first, last = plan.catch_up.after + 1, plan.catch_up.through
    later = [] if first > last else [f"entry {last}" if first == last else f"entries {first} to {last}"]
    return ", ".join(kept + later) or "nothing"
