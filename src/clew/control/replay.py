"""Replay: which of the kept decisions another policy would have made otherwise."""

import asyncio
import math
from collections.abc import Sequence
from functools import partial

import orjson

from clew.control.faults import BadRequest
from clew.control.services import Services
from clew.kernel import Policy, RecordError, policy_from_record
from clew.kernel import replay as decide_again
from clew.protocol.requests import Replay
from clew.protocol.views import Changed, ReplayView
from clew.store.engine.statement import Row
from clew.store.queries.decisions import Place, decisions_after, first_since
from clew.store.queries.threads import thread_ref

PAGE = 200
MOST = 200_000
"""How many decisions are made again for one request."""

MOST_CHANGED = 5000


async def replay_decisions(services: Services, asked: Replay) -> ReplayView:
    """Of the runs that were queued since then, page by page, so that nobody else waits for it."""
    policy = _policy(asked)
    place: Place = first_since(asked.since)
    looked_at, unreadable, changed = 0, 0, list[Changed]()
    while looked_at < MOST and len(changed) < MOST_CHANGED:
        rows = await services.read(partial(decisions_after, place=place, most=PAGE))
        if not rows:
            break
        last = rows[-1]
        place = (last["run_id"], last["attempt"], last["step"])
        failed, found = await asyncio.to_thread(_decide_again, rows, policy)
        looked_at, unreadable = looked_at + len(rows), unreadable + failed
        changed += found
    return ReplayView(looked_at, unreadable, tuple(changed[:MOST_CHANGED]))


def _policy(asked: Replay) -> Policy:
    if not math.isfinite(asked.since) or not 0 <= asked.since < 2**40:
        raise BadRequest(f"{asked.since} is no time.", "Give seconds since the epoch.")
    try:
        return policy_from_record(dict(asked.policy))
    except (RecordError, ValueError, TypeError, RecursionError) as fault:
        raise BadRequest(f"The policy cannot be read: {fault}.", "See docs/kernel.md for its fields.") from fault


def _decide_again(rows: Sequence[Row], policy: Policy) -> tuple[int, list[Changed]]:
    """How many could not be read, and those that come out otherwise."""
    unreadable, changed = 0, []
    for row in rows:
        try:
            again = decide_again(orjson.loads(row["record"]), policy)
        except (RecordError, ValueError, TypeError, KeyError, AttributeError):
            unreadable += 1
            continue
        if not again.same:
            fields = ", ".join(change.field for change in again.changes)
            outcome = again.plan.outcome.value
            words = again.plan.words if outcome != row["outcome"] else f"{again.plan.words} Otherwise: {fields}."
            which = (row["attempt"], row["step"])
            changed.append(Changed(row["run_id"], thread_ref(row), row["at"], row["outcome"], outcome, words, *which))
    return unreadable, changed
