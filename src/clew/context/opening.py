"""How a prompt begins: what woke the agent where nobody wrote anything, and what it must know before all else."""

from collections.abc import Mapping

from clew.kernel import Audience, Outcome, Plan, RunScope, WakeReason
from clew.wire.orders import Order

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

_NEW = "This is a new conversation: what was said before stands below, as far as there was room. The files are there."


def opening_lines(order: Order, plan: Plan) -> list[str]:
    lines = [notice.words for notice in plan.notices if notice.audience is Audience.AGENT]
    if plan.outcome is Outcome.RESEED and order.entries:
        lines.append(_NEW)
    return [*_reasons(order, plan), *lines]


def _reasons(order: Order, plan: Plan) -> list[str]:
    """Only of wakes that bring no words of their own; the words of the others say why."""
    silent = dict.fromkeys(wake.reason for wake in order.wakes if not wake.entries)
    lines = [_WOKEN[reason] for reason in silent]
    if WakeReason.TIMER in silent and isinstance(plan.situation.scope, RunScope):
        lines.append(_ALONE)
    return lines
