"""Accepting a wake: what was said goes into the journal, the request becomes durable, and a run waits for it."""

import json
from dataclasses import dataclass

from sqlalchemy import Connection, RowMapping, func, literal_column, select, text, update

from clew.kernel import (
    Admission,
    AdmissionPolicy,
    AdmissionVerdict,
    AgentId,
    AgentState,
    Aging,
    Author,
    EntrySeq,
    Freshness,
    Instant,
    LaneId,
    Origin,
    OriginKind,
    Overlap,
    QueuedRun,
    Request,
    RouteKey,
    RunId,
    Sameness,
    ThreadId,
    WakeId,
    WakeReason,
    WakeState,
    admit,
    dedupe,
    lane_id,
    rank,
    thread_for,
)
from clew.store.clock import now
from clew.store.dialect import insert, lesser
from clew.store.faults import KeyConflict, NoSuchAgent, NoSuchThread
from clew.store.naming import new_id
from clew.store.tables import LIVE, NOT_ENDED, agents, journal, lanes, runs, threads, wakes


@dataclass(frozen=True, slots=True)
class Said:
    """What somebody wrote, to be kept in the journal whatever becomes of the wake."""

    author: Author
    body: str
    size: int = 0


@dataclass(frozen=True, slots=True)
class WakeRequest:
    """A request that an agent act. The caller names the wake, so that asking twice is asking once."""

    id: WakeId
    agent: AgentId
    reason: WakeReason
    origin: Origin
    thread: ThreadId | None = None
    said: Said | None = None
    freshness: Freshness = Freshness.FOLLOW_POLICY
    resume_run: RunId | None = None
    priority: int = 0
    dedupe_key: str | None = None
    route: RouteKey | None = None


@dataclass(frozen=True, slots=True)
class Accepted:
    """The receipt: the wake that stands for the request, its state and why. `repeated` when it was there before."""

    wake: WakeId
    state: WakeState
    code: str
    words: str
    entries: tuple[EntrySeq, ...] = ()
    until: Instant | None = None
    overlap: Overlap | None = None
    repeated: bool = False


def accept_wake(connection: Connection, request: WakeRequest, policy: AdmissionPolicy | None = None) -> Accepted:
    """One transaction: the entry, the wake, and a queued run if the lane has none. Safe to repeat."""
    thread = thread_for(request.agent, request.thread)
    earlier = _asked_before(connection, request, thread)
    if earlier is not None:
        return earlier
    lane = lane_id(request.agent, thread)
    facts = _facts(connection, request.agent, lane)
    if facts["lane"] is None:
        _make_lane(connection, request, thread, lane, facts["now"])
    admission = admit(_request(connection, request, facts), policy or AdmissionPolicy(overlap=_overlap(facts)))
    entries = () if request.said is None else (_write(connection, thread, request.said),)
    pending = admission.verdict in (AdmissionVerdict.ACCEPT, AdmissionVerdict.DEFER)
    _keep(connection, request, thread, lane, admission, entries, facts["now"], pending)
    if pending:
        _queue(connection, request, lane, admission.until, facts)
    state = WakeState.PENDING if pending else WakeState.SKIPPED
    reason = admission.reason
    return Accepted(request.id, state, reason.code, admission.words, entries, admission.until, admission.overlap)


def _asked_before(connection: Connection, request: WakeRequest, thread: ThreadId) -> Accepted | None:
    same = wakes.c.id == request.id
    if request.dedupe_key is not None:
        same = same | (wakes.c.dedupe_key == request.dedupe_key)
    row = connection.execute(select(wakes).where(same)).mappings().first()
    if row is None:
        return None
    found = dedupe((WakeId(row["id"]), ThreadId(row["thread_id"])), thread)
    if found.sameness is Sameness.CONFLICT and found.reason is not None:
        raise KeyConflict(found.reason.fill(), "Leave the key out, or name each request anew.")
    return Accepted(
        WakeId(row["id"]),
        WakeState(row["state"]),
        row["code"],
        row["words"],
        tuple(map(EntrySeq, json.loads(row["entries"]))),
        row["not_before"],
        repeated=True,
    )


def _facts(connection: Connection, agent: AgentId, lane: LaneId) -> RowMapping:
    """All that the door needs to know of agent and lane, in one read."""
    busy = select(func.count()).select_from(runs).where(runs.c.lane_id == lane, text(LIVE)).scalar_subquery()
    statement = (
        select(
            agents.c.state,
            func.coalesce(lanes.c.runtime_id, agents.c.runtime_id).label("runtime"),
            lanes.c.id.label("lane"),
            lanes.c.overlap,
            busy.label("busy"),
            now().label("now"),
        )
        .select_from(agents.outerjoin(lanes, lanes.c.id == lane))
        .where(agents.c.id == agent)
    )
    row = connection.execute(statement).mappings().first()
    if row is None:
        raise NoSuchAgent(f"There is no agent {agent}.", "Name one that exists.")
    return row


def _overlap(facts: RowMapping) -> Overlap:
    return Overlap.QUEUE if facts["overlap"] is None else Overlap(facts["overlap"])


def _request(connection: Connection, request: WakeRequest, facts: RowMapping) -> Request:
    return Request(
        agent=request.agent,
        reason=request.reason,
        origin=request.origin,
        now=facts["now"],
        agent_state=AgentState(facts["state"]),
        starts=_recent_starts(connection, request, facts["now"]),
        lane_busy=facts["busy"] > 0,
    )


def _recent_starts(connection: Connection, request: WakeRequest, at: Instant) -> tuple[Instant, ...]:
    # A person is never deferred, so nobody needs to count for one.
    if request.origin.kind is OriginKind.HUMAN or request.reason is WakeReason.MANUAL:
        return ()
    since = at - AdmissionPolicy().flood_window
    started = select(runs.c.started_at).where(runs.c.agent_id == request.agent, runs.c.started_at > since)
    return tuple(connection.execute(started).scalars())


def _make_lane(connection: Connection, request: WakeRequest, thread: ThreadId, lane: LaneId, at: Instant) -> None:
    if request.thread is None:
        own = insert(connection, threads).values(id=thread, kind="own", created_at=at)
        connection.execute(own.on_conflict_do_nothing())
    elif connection.execute(select(threads.c.id).where(threads.c.id == thread)).first() is None:
        raise NoSuchThread(f"There is no thread {thread}.", "Open it first, or leave it out to wake the agent itself.")
    made = insert(connection, lanes).values(id=lane, agent_id=request.agent, thread_id=thread)
    connection.execute(made.on_conflict_do_nothing())


def _write(connection: Connection, thread: ThreadId, said: Said) -> EntrySeq:
    """Append to the journal. Taking the next place holds the thread until the commit, so no two take the same."""
    place = update(threads).where(threads.c.id == thread).values(head=threads.c.head + 1).returning(threads.c.head)
    seq = EntrySeq(connection.execute(place).scalar_one())
    connection.execute(
        insert(connection, journal).values(
            thread_id=thread,
            seq=seq,
            author_kind=said.author.kind.value,
            author_name=said.author.name,
            agent_id=said.author.agent,
            body=said.body,
            size=said.size,
            at=now(),
        )
    )
    return seq


def _keep(
    connection: Connection,
    request: WakeRequest,
    thread: ThreadId,
    lane: LaneId,
    admission: Admission,
    entries: tuple[EntrySeq, ...],
    at: Instant,
    pending: bool,
) -> None:
    route = request.route
    row = {
        "id": request.id,
        "lane_id": lane,
        "thread_id": thread,
        "reason": request.reason.value,
        "origin_kind": request.origin.kind.value,
        "origin_agent": request.origin.agent,
        "origin_depth": request.origin.depth,
        "freshness": request.freshness.value,
        "resume_run": request.resume_run,
        "priority": request.priority,
        "entries": json.dumps(entries),
        "route": None if route is None else json.dumps([route.kind.value, route.address]),
        "dedupe_key": request.dedupe_key,
        "accepted_at": at,
        "not_before": admission.until,
        "state": (WakeState.PENDING if pending else WakeState.SKIPPED).value,
        "code": admission.reason.code,
        "words": admission.words,
        "ended_at": None if pending else at,
    }
    connection.execute(insert(connection, wakes).values(row))


def _queue(
    connection: Connection, request: WakeRequest, lane: LaneId, until: Instant | None, facts: RowMapping
) -> None:
    """A run that takes the lane's pending wakes; one that is queued already comes as early as the earliest of them."""
    run = RunId(new_id("rn"))
    at = facts["now"]
    first = rank(QueuedRun(run, at, request.priority), Aging())
    queued = insert(connection, runs).values(
        id=run,
        lane_id=lane,
        agent_id=request.agent,
        runtime_id=facts["runtime"],
        rank=first,
        queued_at=at,
        not_before=until,
    )
    sooner = queued.on_conflict_do_update(
        index_elements=[runs.c.lane_id],
        index_where=text(NOT_ENDED),
        set_={
            "rank": lesser(connection, runs.c.rank, queued.excluded.rank),
            "not_before": literal_column("NULL") if until is None else runs.c.not_before,
        },
        where=runs.c.state == "queued",
    )
    connection.execute(sooner)
