"""The trace of a decision: every candidate session and every rule, as codes and sentences."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from clew.kernel.rule import Findings, Wanted
from clew.kernel.rule_reason import Effect, RuleName, RuleReason
from clew.kernel.session import Session


class Route(StrEnum):
    """How a candidate could be used for the run."""

    RESUME = "resume"
    FORK = "fork"
    TRANSFER = "transfer"
    WAIT = "wait"
    OUT = "out"


_ROUTES = (Route.RESUME, Route.FORK, Route.TRANSFER, Route.WAIT, Route.OUT)
_RESUME = Route.RESUME


def route_of(findings: Findings) -> Route:
    """The greatest effect decides; the routes are in the order of the effects."""
    return _ROUTES[max([finding.effect for finding in findings])] if findings else _RESUME


Weighed = tuple[Session, Findings]
"""A candidate and its findings, as used inside a decision; `Considered` has the same with names."""


@dataclass(frozen=True, slots=True)
class Considered:
    """One candidate and its findings, up to the first that ruled it out."""

    session: Session
    findings: Findings

    @property
    def route(self) -> Route:
        return route_of(self.findings)


@dataclass(frozen=True, slots=True)
class Step:
    """One line of a trace. `subject` is a session's id, or what else was examined."""

    subject: str
    rule: str
    outcome: str
    code: str
    words: str


FITS: Mapping[RuleName, str] = {
    RuleName.RESET: "The wake accepts earlier sessions.",
    RuleName.LANE: "It belongs to this lane.",
    RuleName.SCOPE: "Its context is kept under this run's scope.",
    RuleName.RECORD: "It is the newest record of its session.",
    RuleName.FRESH_START: "It was made after the lane's last fresh start, if there was one.",
    RuleName.STATE: "It is neither lost nor ended.",
    RuleName.PROVIDER: "It was made by the provider of this run.",
    RuleName.ACCOUNT: "It belongs to the account of this run.",
    RuleName.CURSOR: "Its cursor can be read.",
    RuleName.ABILITY: "The provider can resume sessions.",
    RuleName.JOURNAL: "It has seen no more than the journal holds.",
    RuleName.RUNTIME: "It lives on the runtime of this run.",
    RuleName.ARCHIVE: "No archive is needed, or a good one is there.",
    RuleName.DIRECTORY: "It works in the wanted directory, or none is chosen.",
    RuleName.LIMITS: "It is within its limits.",
    RuleName.MODEL: "Its model is the wanted one, or none is named.",
    RuleName.MODE: "Its permission mode is the wanted one, or none can be given.",
    RuleName.BUSY: "Nobody else is using it.",
    RuleName.INSTRUCTIONS: "Its instructions are the current ones.",
    RuleName.TOOLS: "Its list of tools is the current one.",
    RuleName.KEY: "Its key is the current one, or none is known.",
}

FIT = "fit"


def steps_of(considered: Considered, wanted: Wanted) -> tuple[Step, ...]:
    """Every rule that was checked for one candidate, with its result."""
    session, said = considered.session, {finding.rule: finding for finding in considered.findings}
    steps: list[Step] = []
    for rule in RuleName:
        reason = said.get(rule)
        if reason is None:
            steps.append(Step(session.id, rule, FIT, FIT, FITS[rule]))
            continue
        words = reason.fill(session=session, wanted=wanted)
        steps.append(Step(session.id, rule, reason.effect.name.lower(), reason.code, words))
        if reason.effect is Effect.OUT or reason in (RuleReason.BUSY, RuleReason.SEALED):
            break
    return tuple(steps)


ALL_FIT = " ".join(RuleName)


def in_brief(considered: Considered, wanted: Wanted) -> tuple[Step, ...]:
    """The same with one line for all rules that fit. This is the recorded form."""
    if not considered.findings:
        return (Step(considered.session.id, FIT, FIT, FIT, ALL_FIT),)
    steps = steps_of(considered, wanted)
    fitted = " ".join(step.rule for step in steps if step.outcome == FIT)
    return (
        Step(considered.session.id, FIT, FIT, FIT, fitted),
        *(step for step in steps if step.outcome != FIT),
    )


def passed_over(session: Session) -> Step:
    words = "The search ended at a newer generation, so this one was not weighed."
    return Step(session.id, RuleName.RECORD, "not-weighed", "not-weighed", words)
