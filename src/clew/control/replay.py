"""Replay: which recorded decisions another policy would have made differently."""

import asyncio
import math
from collections.abc import Sequence
from functools import partial

import orjson

from clew.control.actor import Actor
from clew.control.faults import BadRequest
from clew.control.services import Services
from clew.kernel import Policy, RecordError, policy_from_record
from clew.kernel import replay as decide_again
from clew.protocol.requests import Replay
from clew.protocol.views import Changed, ReplayView
from clew.store.queries.decisions import RecordedDecision, decisions_after, first_since

PAGE = 200
MOST = 200_000
"""How many decisions one request replays."""

MOST_CHANGED = 5000


async def replay_decisions(services: Services, actor: Actor, asked: Replay) -> ReplayView:
    """Replay the decisions of runs queued since then. It reads page by page, so that no other request waits for it."""
    policy = _policy(asked)
    place = first_since(asked.since)
    looked_at, unreadable, changed = 0, 0, list[Changed]()
    while looked_at < MOST and len(changed) < MOST_CHANGED:
        found = await services.read(partial(decisions_after, place=place, most=PAGE))
        if not found:
            break
        place = found[-1].place
        failed, different = await asyncio.to_thread(_decide_again, found, policy)
        looked_at, unreadable = looked_at + len(found), unreadable + failed
        changed += different
    return ReplayView(looked_at, unreadable, tuple(changed[:MOST_CHANGED]))


def _policy(asked: Replay) -> Policy:
    if not math.isfinite(asked.since) or not 0 <= asked.since < 2**40:
        raise BadRequest(f"{asked.since} is not a time.", "Give seconds since the epoch.")
    try:
        return policy_from_record(dict(asked.policy))
    except (RecordError, ValueError, TypeError, RecursionError) as fault:
        raise BadRequest(f"The policy cannot be read: {fault}.", "See docs/kernel.md for its fields.") from fault


def _decide_again(recorded: Sequence[RecordedDecision], policy: Policy) -> tuple[int, list[Changed]]:
    """How many could not be read, and those that come out differently."""
    unreadable, changed = 0, []
    for each in recorded:
        try:
            again = decide_again(orjson.loads(each.record), policy)
        except (RecordError, ValueError, TypeError, KeyError, AttributeError):
            unreadable += 1
            continue
        if not again.same:
            fields = ", ".join(change.field for change in again.changes)
            outcome = again.plan.outcome.value
            words = again.plan.words if outcome != each.outcome else f"{again.plan.words} Different: {fields}."
            changed.append(
                Changed(each.run, each.thread, each.at, each.outcome, outcome, words, each.attempt, each.step)
            )
    return unreadable, changed
