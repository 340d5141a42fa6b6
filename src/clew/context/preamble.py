"""The beginning of a prompt: why the agent was woken, if no message says it, and what it must know first."""

from collections.abc import Mapping

from clew.kernel import (
    STARTS_NEW_SESSION,
    Audience,
    Freshness,
    NoticeReason,
    Outcome,
    RunScope,
    WakeReason,
    WorkspaceKind,
)
from clew.ports.context import PromptRequest
from clew.protocol.wakes import former_of

_WOKEN: Mapping[WakeReason, str] = {
    WakeReason.ASSIGNMENT: "This was assigned to you.",
    WakeReason.COMMENT: "There is a new comment here.",
    WakeReason.MENTION: "You were mentioned here.",
    WakeReason.CHAT: "You have a new message.",
    WakeReason.REVIEW: "Your review is requested here.",
    WakeReason.TIMER: "This is a heartbeat: a timer woke you, and nobody wrote anything. Look whether there is "
    "something to do; if there is nothing, say so in one line.",
    WakeReason.EVENT: "Something happened outside that concerns this thread.",
    WakeReason.MANUAL: "A person woke you by hand.",
    WakeReason.RETRY: "You are woken again for what is not done yet.",
}

_ALONE = "It stands alone: what earlier heartbeats saw or did is no part of it."

_NEW = "This is a new conversation: what was said before stands below, as far as there was room."

_FILES = "The files are there."

_STAY = "You work on git branch {branch}. Stay on it: do not switch to another branch, and make none."

_HANDED_OVER = (
    "You take this issue over{former}. What is quoted below (>) is its history: who said what, and what was done. "
    "Nothing of it is to be done again: look how far it came, then go on with what is left."
)


def preamble(request: PromptRequest) -> list[str]:
    plan = request.plan
    told = {notice.reason: notice.words for notice in plan.notices if notice.audience is Audience.AGENT}
    lines = list(told.values())
    if is_handed_over(request):
        lines.append(_HANDED_OVER.format(former=_from_whom(request)))
    elif plan.outcome is Outcome.RESEED and request.entries:
        lines.append(_NEW if NoticeReason.WORKSPACE_REMADE in told else f"{_NEW} {_FILES}")
    return [*_reasons(request), *lines, *_branch(request)]


def _branch(request: PromptRequest) -> list[str]:
    """Told once for each conversation: a run on a branch that its agent made would be held."""
    plan = request.plan
    place = plan.workspace
    if plan.outcome not in STARTS_NEW_SESSION or place is None or place.kind is not WorkspaceKind.WORKTREE:
        return []
    return [_STAY.format(branch=place.branch)] if place.branch else []


def is_handed_over(request: PromptRequest) -> bool:
    """Whether this prompt tells of the handover. A session that was told before is not told again."""
    return any(
        wake.freshness is Freshness.HANDOVER and not set(request.plan.already_told).issuperset(wake.entries)
        for wake in request.wakes
    )


def _from_whom(request: PromptRequest) -> str:
    handing = {entry for wake in request.wakes if wake.freshness is Freshness.HANDOVER for entry in wake.entries}
    formers = (former_of(entry.body) for entry in request.entries if entry.facts.seq in handing)
    # The last one, where an issue changed hands several times before this agent began.
    former = next((name for name in reversed([*formers]) if name is not None), None)
    return "" if former is None else f" from {former}"


def _reasons(request: PromptRequest) -> list[str]:
    """Only for wakes without a message; a message says itself why it was sent."""
    silent = dict.fromkeys(wake.reason for wake in request.wakes if not wake.entries)
    lines = [_WOKEN[reason] for reason in silent]
    if WakeReason.TIMER in silent and isinstance(request.plan.situation.scope, RunScope):
        lines.append(_ALONE)
    return lines
