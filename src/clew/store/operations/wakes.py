"""Wakes: accepting one appends the message to the journal, stores the wake, and queues a run for it."""

import json

from sqlalchemy import (
    ColumnElement,
    Connection,
    FromClause,
    bindparam,
    exists,
    func,
    literal_column,
    select,
    text,
    true,
)
from sqlalchemy.sql import ClauseElement

from clew.kernel import (
    Admission,
    AdmissionPolicy,
    AgentId,
    AgentState,
    EntrySeq,
    Instant,
    LaneId,
    OriginKind,
    Overlap,
    Request,
    Sameness,
    ThreadId,
    WakeId,
    WakeReason,
    WakeState,
    admit,
    dedupe,
    lane_id,
    on_admission,
    thread_for,
)
from clew.protocol.wakes import Accepted, WakeRequest
from clew.store.engine.dialect import insert_in, now, storable
from clew.store.engine.hints import hint_queue, hint_thread
from clew.store.engine.statement import POSTGRESQL, Row, Statement
from clew.store.faults import BadText, KeyConflict, NoSuchAgent, NoSuchThread
from clew.store.operations.journal import append
from clew.store.operations.queue import queue_run
from clew.store.operations.rows import unreadable
from clew.store.operations.runtimes import last_seen_runtime
from clew.store.schema.tables import LIVE, NOT_ENDED, agents, lanes, runs, threads, wakes

OWN_SCOPE = "own"
"""Stored as the scope of a wake that is to be served in a scope of its run's own."""

MOST_PRIORITY = 1000
"""The highest and, negated, the lowest priority; one step weighs as much as five minutes of waiting."""


def _facts_of(dialect: str, keyed: bool, locked: bool = True) -> ClauseElement:
    # FOR KEY SHARE on agent and lane: a concurrent move commits first (queue at the new runtime), or waits and takes
    # this run along. The lane stands in a lateral subquery: PostgreSQL locks no optional side of an outer join.
    its_lane: FromClause = lanes
    on: ColumnElement[bool] = lanes.c.id == bindparam("lane")
    if dialect == POSTGRESQL and locked:
        its_lane, on = select(lanes).where(on).with_for_update(read=True, key_share=True).lateral("its_lane"), true()
    runtime = its_lane.c.runtime_id
    wake = bindparam("wake", type_=wakes.c.id.type)
    other = wakes.alias("other")
    by_key = select(other.c.id).where(other.c.dedupe_key == bindparam("key")).scalar_subquery()
    # coalesce() of one id, not an OR of two columns: PostgreSQL would answer the OR with a scan of all wakes.
    same = wakes.c.id == (func.coalesce(by_key, wake) if keyed else wake)
    live = exists().where(runs.c.lane_id == bindparam("lane"), text(f"runs.{NOT_ENDED} AND runs.{LIVE}"))
    facts = (
        select(
            agents.c.state.label("agent_state"),
            func.coalesce(runtime, agents.c.runtime_id, last_seen_runtime(agents.c.provider)).label("runtime"),
            its_lane.c.id.label("lane"),
            its_lane.c.overlap,
            threads.c.id.label("thread"),
            live.label("busy"),
            now().label("now"),
            *(wakes.c[name].label(f"wake_{name}") for name in _EARLIER),
        )
        .select_from(
            agents.outerjoin(its_lane, on)
            .outerjoin(threads, threads.c.id == bindparam("thread"))
            .outerjoin(wakes, same)
        )
        .where(agents.c.id == bindparam("agent"))
    )
    return facts.with_for_update(read=True, key_share=True, of=agents) if locked else facts


_EARLIER = ("id", "lane_id", "thread_id", "state", "code", "words", "entry", "not_before")
_facts = Statement(lambda dialect: _facts_of(dialect, keyed=False))
_facts_by_key = Statement(lambda dialect: _facts_of(dialect, keyed=True))
facts_unlocked = Statement(lambda dialect: _facts_of(dialect, keyed=False, locked=False))

_starts = Statement(
    lambda _: select(runs.c.started_at).where(
        runs.c.agent_id == bindparam("agent"), runs.c.started_at > bindparam("since")
    )
)

_make_own_thread = Statement(
    lambda dialect: (
        insert_in(dialect, threads)
        .values(
            id=bindparam("id"),
            kind=literal_column("'own'"),
            created_at=bindparam("at"),
            assignee=bindparam("agent"),
        )
        .on_conflict_do_nothing()
    )
)
# No ON CONFLICT: if a concurrent transaction makes the same lane, the unique violation runs this operation again, and
# it sees the lane's runtime.
_make = Statement(
    lambda _: lanes.insert().values(id=bindparam("id"), agent_id=bindparam("agent"), thread_id=bindparam("thread"))
)


def accept_wake(connection: Connection, request: WakeRequest, policy: AdmissionPolicy | None = None) -> Accepted:
    """One transaction: the journal entry, the wake, and a queued run if the lane has none. Safe to repeat."""
    _refuse_unstorable(request)
    thread = thread_for(request.agent, request.thread)
    lane = lane_id(request.agent, thread)
    facts = _read_facts(connection, request, thread, lane)
    if facts["wake_id"] is not None:
        earlier = _earlier(facts, thread, lane)
        if earlier.state is WakeState.PENDING:
            # The first answer may have been lost together with its hints, so send them again.
            hint_queue(connection, facts["runtime"])
            hint_thread(connection, thread)
        return earlier
    if facts["lane"] is None:
        _make_lane(connection, request, thread, lane, facts)
    admission = _admission(connection, request, facts, policy)
    receipt = on_admission(request.id, admission, facts["now"])
    if receipt.state is WakeState.PENDING:
        # Lock order: the lane's run before its journal, as the end of a run does.
        queue_run(connection, lane, request.agent, facts["runtime"], facts["now"], request.priority, admission.until)
    entry = None if request.said is None else append(connection, thread, request.said)
    accepted = Accepted(
        request.id, receipt.state, receipt.reason.code, receipt.words, entry, admission.until, admission.overlap
    )
    keep_wake(connection, request, thread, lane, accepted, facts["now"])
    hint_thread(connection, thread)
    return accepted


def foresee_admission(connection: Connection, request: WakeRequest, policy: AdmissionPolicy | None = None) -> Admission:
    """What `accept_wake` would answer now. Nothing is locked or written."""
    thread = thread_for(request.agent, request.thread)
    known = {"agent": request.agent, "lane": lane_id(request.agent, thread), "thread": thread, "wake": request.id}
    facts = facts_unlocked.first(connection, **known)
    if facts is None:
        raise _no_agent(request.agent)
    return _admission(connection, request, facts, policy)


def _admission(connection: Connection, request: WakeRequest, facts: Row, policy: AdmissionPolicy | None) -> Admission:
    policy = policy or AdmissionPolicy(overlap=_overlap(facts))
    since = facts["now"] - policy.flood_window
    return admit(_admission_facts(connection, request, facts, since), policy)


def _no_agent(agent: AgentId) -> NoSuchAgent:
    return NoSuchAgent(f"There is no agent {agent}.", "See them with `clew agent list`.")


def _unstorable_name(request: WakeRequest) -> str | None:
    """The first id or address that cannot be stored. These are compared, so unlike text they are not changed."""
    route = request.route
    names = (request.id, request.dedupe_key, request.resume_run, None if route is None else route.address)
    return next((name for name in names if name is not None and storable(name) != name), None)


def _refuse_unstorable(request: WakeRequest) -> None:
    name = _unstorable_name(request)
    if name is not None:
        raise BadText(f"{name!r} contains a character that cannot be stored.", "Leave it out.")
    if abs(request.priority) > MOST_PRIORITY:
        raise BadText(
            f"The priority {request.priority} is out of range.",
            f"Use a number between -{MOST_PRIORITY} and {MOST_PRIORITY}.",
        )


def _read_facts(connection: Connection, request: WakeRequest, thread: ThreadId, lane: LaneId) -> Row:
    """Everything that admission needs, in one read: the agent, its lane, and an earlier wake of the same request."""
    known = {"agent": request.agent, "lane": lane, "thread": thread, "wake": request.id}
    if request.dedupe_key is None:
        row = _facts.first(connection, **known)
    else:
        row = _facts_by_key.first(connection, key=request.dedupe_key, **known)
    if row is None:
        raise _no_agent(request.agent)
    return row


def _earlier(facts: Row, thread: ThreadId, lane: LaneId) -> Accepted:
    found = dedupe((WakeId(facts["wake_id"]), ThreadId(facts["wake_thread_id"])), thread)
    if found.sameness is Sameness.SAME and facts["wake_lane_id"] != lane:
        raise KeyConflict("This key was used for another agent's wake.", "Give each request its own key.")
    if found.sameness is Sameness.CONFLICT and found.reason is not None:
        raise KeyConflict(found.reason.fill(), "Leave the key out, or give each request its own key.")
    return Accepted(
        WakeId(facts["wake_id"]),
        WakeState(facts["wake_state"]),
        facts["wake_code"],
        facts["wake_words"],
        EntrySeq(facts["wake_entry"]) if facts["wake_entry"] else None,
        facts["wake_not_before"],
        repeated=True,
    )


def _overlap(facts: Row) -> Overlap:
    if facts["overlap"] is None:
        return Overlap.QUEUE
    try:
        return Overlap(facts["overlap"])
    except ValueError as fault:
        raise unreadable("lanes", facts["lane"], "overlap", fault) from fault


def _admission_facts(connection: Connection, request: WakeRequest, facts: Row, since: Instant) -> Request:
    return Request(
        agent=request.agent,
        reason=request.reason,
        origin=request.origin,
        now=facts["now"],
        agent_state=AgentState(facts["agent_state"]),
        starts=_recent_starts(connection, request, since),
        lane_busy=bool(facts["busy"]),
    )


def _recent_starts(connection: Connection, request: WakeRequest, since: Instant) -> tuple[Instant, ...]:
    # A person's wake is never deferred, so the starts need not be counted.
    if request.origin.kind is OriginKind.HUMAN or request.reason is WakeReason.MANUAL:
        return ()
    rows = _starts.rows(connection, agent=request.agent, since=since)
    return tuple(row["started_at"] for row in rows)


def _make_lane(connection: Connection, request: WakeRequest, thread: ThreadId, lane: LaneId, facts: Row) -> None:
    if facts["thread"] is None:
        if request.thread is not None:
            raise NoSuchThread(
                f"There is no thread {thread}.", "Open it first, or leave it out to wake the agent in its own thread."
            )
        _make_own_thread.defer(connection, id=thread, at=facts["now"], agent=request.agent)
    _make.defer(connection, id=lane, agent=request.agent, thread=thread)


_COLUMNS = tuple(column.name for column in wakes.c if column.name not in ("run_id", "began"))
_keep = Statement(lambda _: wakes.insert().values({name: bindparam(name) for name in _COLUMNS}))
_keep_once = Statement(
    lambda dialect: (
        insert_in(dialect, wakes)
        .values({name: bindparam(name) for name in _COLUMNS})
        .on_conflict_do_nothing(index_elements=[wakes.c.id])
    )
)


def keep_wake(
    connection: Connection,
    request: WakeRequest,
    thread: ThreadId,
    lane: LaneId,
    accepted: Accepted,
    at: Instant,
    once: bool = False,
) -> None:
    """Insert the wake in the state of its receipt. With `once`, an existing row stays as it is."""
    route = request.route
    (_keep_once if once else _keep).defer(
        connection,
        id=request.id,
        lane_id=lane,
        thread_id=thread,
        reason=request.reason.value,
        origin_kind=request.origin.kind.value,
        origin_agent=request.origin.agent,
        origin_depth=request.origin.depth,
        freshness=request.freshness.value,
        scope=OWN_SCOPE if request.isolated else "",
        resume_run=request.resume_run,
        priority=request.priority,
        route=None if route is None else json.dumps([route.kind.value, route.address]),
        dedupe_key=request.dedupe_key,
        entries=json.dumps(request.entries) if request.entries else None,
        preview=request.preview,
        entry=accepted.entry or 0,
        accepted_at=at,
        not_before=accepted.until,
        state=accepted.state.value,
        code=accepted.code,
        words=accepted.words,
        ended_at=None if accepted.state is WakeState.PENDING else at,
    )
