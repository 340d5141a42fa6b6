"""A wake's row: what was asked for, and the receipt that says why it is in the state it is in."""

import json
from typing import Any

from sqlalchemy import Connection, bindparam

from clew.kernel import Instant, LaneId, ThreadId, WakeState
from clew.protocol.wakes import Accepted, WakeRequest
from clew.store.dialect import insert_in
from clew.store.statement import Statement
from clew.store.tables import wakes

ASKED = (
    "id",
    "lane_id",
    "thread_id",
    "reason",
    "origin_kind",
    "origin_agent",
    "origin_depth",
    "freshness",
    "scope",
    "resume_run",
    "priority",
    "route",
    "dedupe_key",
    "entries",
)
"""The columns that are as they were asked for."""

_COLUMNS = (*ASKED, "entry", "accepted_at", "not_before", "state", "code", "words", "ended_at")
_keep = Statement(lambda _: wakes.insert().values({name: bindparam(name) for name in _COLUMNS}))
_keep_once = Statement(
    lambda dialect: (
        insert_in(dialect, wakes)
        .values({name: bindparam(name) for name in _COLUMNS})
        .on_conflict_do_nothing(index_elements=[wakes.c.id])
    )
)


def asked_for(request: WakeRequest, thread: ThreadId, lane: LaneId) -> dict[str, Any]:
    """The values of those columns."""
    route = request.route
    return {
        "id": request.id,
        "lane_id": lane,
        "thread_id": thread,
        "reason": request.reason.value,
        "origin_kind": request.origin.kind.value,
        "origin_agent": request.origin.agent,
        "origin_depth": request.origin.depth,
        "freshness": request.freshness.value,
        "scope": "own" if request.isolated else "",
        "resume_run": request.resume_run,
        "priority": request.priority,
        "route": None if route is None else json.dumps([route.kind.value, route.address]),
        "dedupe_key": request.dedupe_key,
        "entries": json.dumps(request.entries) if request.entries else None,
    }


def keep_wake(
    connection: Connection,
    request: WakeRequest,
    thread: ThreadId,
    lane: LaneId,
    accepted: Accepted,
    at: Instant,
    once: bool = False,
) -> None:
    """The wake's row, in whatever state its receipt says; with `once` one that is there stays as it is."""
    (_keep_once if once else _keep).leave(
        connection,
        **asked_for(request, thread, lane),
        entry=accepted.entry or 0,
        accepted_at=at,
        not_before=accepted.until,
        state=accepted.state.value,
        code=accepted.code,
        words=accepted.words,
        ended_at=None if accepted.state is WakeState.PENDING else at,
    )
