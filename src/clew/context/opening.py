"""How a prompt begins: what woke the agent where nobody wrote anything, and what it must know before all else."""

from collections.abc import Mapping

from clew.kernel import (
    Audience,
    Freshness,
    NoticeReason,
    Outcome,
    Plan,
    RunScope,
    WakeReason,
)
from clew.protocol.handover import former_of
from clew.protocol.orders import Order

_WOKEN: Mapping[WakeReason, str] = {
    WakeReason.ASSIGNMENT: "This was given to you.",
    WakeReason.COMMENT: "Somebody commented here.",
    WakeReason.MENTION: "You were mentioned here.",
    WakeReason.CHAT: "You were written to.",
    WakeReason.REVIEW: "A review is wanted of you here.",
    WakeReason.TIMER: "This is a heartbeat: a timer woke you, and nobody wrote anything. Look whether there is "
    "something to do; if there is nothing, say so in one line.",
    WakeReason.EVENT: "Something happened outside that concerns this thread.",
    WakeReason.MANUAL: "A person woke you by hand.",
    WakeReason.RETRY: "You are woken again for what is not done yet.",
}

_ALONE = "It stands alone: what earlier heartbeats saw or did is no part of it."

_NEW = "This is a new conversation: what was said before stands below, as far as there was room."

_FILES = "The files are there."

_HANDED_OVER = (
    "You take this issue over{former}. What is quoted below (>) is its history: who said what, and what was done. "
    "Nothing of it is to be done again: look how far it came, then go on with what is left."
)


def opening_lines(order: Order, plan: Plan) -> list[str]:
    told = {notice.reason: notice.words for notice in plan.notices if notice.audience is Audience.AGENT}
    lines = list(told.values())
    if is_handed_over(order, plan):
        lines.append(_HANDED_OVER.format(former=_from_whom(order)))
    elif plan.outcome is Outcome.RESEED and order.entries:
        lines.append(_NEW if NoticeReason.WORKSPACE_REMADE in told else f"{_NEW} {_FILES}")
    return [*_reasons(order, plan), *lines]


def is_handed_over(order: Order, plan: Plan) -> bool:
    """Whether this prompt is the one that tells of the handover; a session that was told before is not told again."""
    return any(
        wake.freshness is Freshness.HANDOVER and not set(plan.already_told).issuperset(wake.entries)
        for wake in order.wakes
    )


def _from_whom(order: Order) -> str:
    handing = {entry for wake in order.wakes if wake.freshness is Freshness.HANDOVER for entry in wake.entries}
    formers = (former_of(entry.body) for entry in order.entries if entry.seq in handing)
    # The last one, where an issue went to and fro before this agent began.
    former = next((name for name in reversed([*formers]) if name is not None), None)
    return "" if former is None else f" from {former}"


def _reasons(order: Order, plan: Plan) -> list[str]:
    """Only of wakes that bring no words of their own; the words of the others say why."""
    silent = dict.fromkeys(wake.reason for wake in order.wakes if not wake.entries)
    lines = [_WOKEN[reason] for reason in silent]
    if WakeReason.TIMER in silent and isinstance(plan.situation.scope, RunScope):
        lines.append(_ALONE)
    return lines
