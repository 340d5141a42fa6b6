"""Retry: which failures are retried, when, and whether the prompt may be sent a second time."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from clew.kernel.evidence import HELD_BY_AGENT, Evidence
from clew.kernel.ids import Instant
from clew.kernel.reason import Reason


class FailureKind(StrEnum):
    """How a run failed. Outage: the model could not be reached or failed. Crashed: the agent died. Interrupted: its
    daemon or server restarted or lost it."""

    TRANSIENT = "transient"
    OUTAGE = "outage"
    PERMANENT = "permanent"
    USAGE_LIMIT = "usage-limit"
    CRASHED = "crashed"
    INTERRUPTED = "interrupted"
    RESUME_REJECTED = "resume-rejected"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Failure:
    """What failed, and what is known about the prompt. `continues`: the session can be found again."""

    kind: FailureKind
    why: str
    evidence: Evidence = Evidence.UNSENT
    continues: bool = False
    tool_ran: bool = False
    reopened: bool = False
    reset_at: Instant | None = None


class Redo(StrEnum):
    """What the next run does after a failed one.

    Resend: the agent does not have the prompt, so the next run sends what its session has not seen.
    Continue: the session has the prompt, so it is resumed and told what was lost; the prompt is not sent again.
    Ask first: the agent's store is asked about the prompt before anything is sent.
    """

    RESEND = "resend"
    CONTINUE = "continue"
    ASK_FIRST = "ask-first"


_PASSING = (
    FailureKind.TRANSIENT,
    FailureKind.OUTAGE,
    FailureKind.USAGE_LIMIT,
    FailureKind.CRASHED,
    FailureKind.INTERRUPTED,
)

REDO_TABLE: Mapping[tuple[FailureKind, Evidence], Redo] = {
    **{(kind, Evidence.UNSENT): Redo.RESEND for kind in (*_PASSING, FailureKind.UNKNOWN)},
    **{(kind, Evidence.TAKEN): Redo.CONTINUE for kind in _PASSING},
    **{(kind, Evidence.CUT_OFF): Redo.CONTINUE for kind in _PASSING},
    **{(kind, Evidence.UNKNOWN): Redo.ASK_FIRST for kind in (*_PASSING, FailureKind.UNKNOWN)},
}
"""A pair that is not listed is not retried automatically. A prompt that was taken is never sent again. A run whose
reply is in the agent's store has not failed."""


WAITED_OUT = frozenset({FailureKind.OUTAGE, FailureKind.USAGE_LIMIT})
"""Failures that are not the run's own: they end by themselves, after hours perhaps."""


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """`spread` is the part of a delay that jitter may remove; `return_within` spreads the runs after a usage limit.
    Outages and limits of a model have bounds of their own: with these, some hours are waited out, and the end is
    noticed within minutes."""

    max_tries: int = 5
    outage_tries: int = 50
    outage_cap: float = 300.0
    base: float = 5.0
    factor: float = 2.0
    cap: float = 900.0
    spread: float = 0.5
    return_within: float = 120.0
    longest_hold: float = 8 * 86_400.0

    def __post_init__(self) -> None:
        if min(self.max_tries, self.outage_tries, self.factor) < 1 or min(self.base, self.cap, self.outage_cap) < 0:
            raise ValueError("a retry policy needs tries and factor of at least 1, and base and caps of at least 0")
        if not 0 <= self.spread <= 1:
            raise ValueError(f"the spread of a retry policy must be between 0 and 1 (got {self.spread})")

    def most_tries(self, kind: FailureKind) -> int:
        return self.outage_tries if kind in WAITED_OUT else self.max_tries

    def longest_wait(self, kind: FailureKind) -> float:
        return self.outage_cap if kind in WAITED_OUT else self.cap


class RetryStep(StrEnum):
    AGAIN = "again"
    HOLD = "hold"
    GIVE_UP = "give-up"
    ASK = "ask"


class RetryReason(Reason):
    BACKOFF = "retry:backoff", "Trying again (try {next} of {most}): {failure.why}"
    OUTAGE = "retry:outage", "The model does not answer, so this is tried again (try {next}): {failure.why}"
    AT_ONCE = "retry:at-once", "Trying again now (try {next} of {most}): {failure.why}"
    USAGE_LIMIT = "retry:usage-limit", "Waiting for the usage limit to reset: {failure.why}"
    NEW_SESSION = "retry:new-session", "The agent refused to resume the session; trying a new one, once: {failure.why}"
    PERMANENT = "retry:permanent", "{failure.why}"
    TRIED_OUT = "retry:tried-out", "Tried {tries} times, which is the limit: {failure.why}"
    REJECTED_AGAIN = "retry:rejected-again", "A new session was already tried: {failure.why}"
    TOO_LONG = (
        "retry:too-long",
        "The usage limit resets in {days:.0f} days, too long to wait unasked: {failure.why}",
    )
    ASK_FIRST = "retry:ask-first", "First checking in the agent's own store whether it took the prompt: {failure.why}"
    NOT_RESENT = "retry:not-resent", "The agent took the prompt, so it is not sent again: {failure.why}"


@dataclass(frozen=True, slots=True)
class RetryChoice:
    """What to do after a failure. `at` is when, `redo` is how; both are None when a person has to act."""

    step: RetryStep
    reason: RetryReason
    failure: Failure
    tries: int
    policy: RetryPolicy
    wait: float = 0.0
    at: Instant | None = None
    redo: Redo | None = None

    @property
    def words(self) -> str:
        return self.reason.fill(
            failure=self.failure,
            tries=self.tries,
            next=self.tries + 1,
            most=self.policy.most_tries(self.failure.kind),
            days=self.wait / 86_400.0,
        )


def backoff(tries: int, policy: RetryPolicy, jitter: float, cap: float) -> float:
    """Seconds to wait after that many tries: growing up to the cap, minus the jitter."""
    try:
        grown = policy.base * float(policy.factor) ** (tries - 1)
    except OverflowError:
        grown = cap
    return min(grown, cap) * (1.0 - policy.spread * jitter)


def retry(failure: Failure, tries: int, policy: RetryPolicy, now: Instant, jitter: float) -> RetryChoice:
    """Decide what follows a failure, from the number of tries so far (this one included) and a jitter in [0, 1)."""

    def choose(step: RetryStep, reason: RetryReason, wait: float = 0.0, redo: Redo | None = None) -> RetryChoice:
        at = None if redo is None else now + wait
        return RetryChoice(step, reason, failure, tries, policy, wait, at, redo)

    if failure.kind is FailureKind.PERMANENT:
        return choose(RetryStep.GIVE_UP, RetryReason.PERMANENT)
    if failure.kind is FailureKind.RESUME_REJECTED:
        if failure.tool_ran or failure.evidence in HELD_BY_AGENT:
            return choose(RetryStep.ASK, RetryReason.NOT_RESENT)
        if failure.reopened:
            return choose(RetryStep.GIVE_UP, RetryReason.REJECTED_AGAIN)
        return choose(RetryStep.AGAIN, RetryReason.NEW_SESSION, redo=Redo.RESEND)
    redo = REDO_TABLE.get((failure.kind, failure.evidence))
    if redo is None or (redo is Redo.CONTINUE and not failure.continues):
        return choose(RetryStep.ASK, RetryReason.NOT_RESENT)
    if redo is Redo.ASK_FIRST:
        # Asking needs no model call, so it does not count as a try.
        return choose(RetryStep.AGAIN, RetryReason.ASK_FIRST, redo=redo)
    if tries >= policy.most_tries(failure.kind):
        return choose(RetryStep.GIVE_UP, RetryReason.TRIED_OUT)
    if failure.kind is FailureKind.USAGE_LIMIT and failure.reset_at is not None:
        left = max(0.0, failure.reset_at - now)
        if left > policy.longest_hold:
            return choose(RetryStep.ASK, RetryReason.TOO_LONG, left)
        return choose(RetryStep.HOLD, RetryReason.USAGE_LIMIT, left + policy.return_within * jitter, redo)
    if failure.kind is FailureKind.INTERRUPTED:
        return choose(RetryStep.AGAIN, RetryReason.AT_ONCE, redo=redo)
    reason = RetryReason.OUTAGE if failure.kind is FailureKind.OUTAGE else RetryReason.BACKOFF
    wait = backoff(tries, policy, jitter, policy.longest_wait(failure.kind))
    return choose(RetryStep.AGAIN, reason, wait, redo)
