"""Admitting: the common wake as one statement, for all that come at the same moment, where PostgreSQL can do all of it
by itself.

Somebody speaks to an agent that is active, in a thread that is open, and in the lane nothing waits or goes on. Whatever
else there is finds no row here, and is accepted step by step.
"""

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

from sqlalchemy import ColumnElement, Connection, func, literal_column, or_, select, text, true
from sqlalchemy.sql import ClauseElement

from clew.kernel import (
    AdmissionPolicy,
    AdmissionReason,
    AdmissionVerdict,
    AgentId,
    Aging,
    EntrySeq,
    Instant,
    Origin,
    OriginKind,
    QueuedRun,
    Request,
    RunId,
    RuntimeId,
    ThreadId,
    WakeReason,
    WakeState,
    admit,
    lane_id,
    rank,
)
from clew.protocol.wakes import Accepted, WakeRequest
from clew.store.claim import claim_beside
from clew.store.clock import now
from clew.store.dialect import looked_up
from clew.store.grouping import Grouped
from clew.store.hints import hint_queue, hint_thread
from clew.store.journal import SAID, said_columns
from clew.store.keeping import ASKED, asked_for
from clew.store.naming import new_id
from clew.store.standing import handing_of
from clew.store.statement import Given, Row, whole
from clew.store.tables import NOT_ENDED, agents, journal, lanes, runs, runtimes, threads, wakes

_WAKE = (*ASKED, "code", "words")
_GIVEN = {
    **{name: wakes.c[name] for name in _WAKE},
    **{f"said_{name}": journal.c[name] for name in SAID},
    "agent": agents.c.id,
    # 1 or 0, as this one is.
    "as_assignee": runs.c.prompt_sent,
    "run": runs.c.id,
    "ahead": runs.c.rank,
}


def somewhere(provider: ColumnElement[str]) -> ColumnElement[str]:
    """Where an agent works that lives nowhere: where its provider was heard of last."""
    return (
        select(runtimes.c.id)
        .where(runtimes.c.provider == provider)
        .order_by(runtimes.c.seen_at.desc())
        .limit(1)
        .scalar_subquery()
    )


_ZERO: ColumnElement[int] = literal_column("0")
_ONE: ColumnElement[int] = literal_column("1")


def counts_starts(request: WakeRequest) -> bool:
    """Whether it is of interest how many runs have started lately: a person is never deferred."""
    return request.origin.kind is not OriginKind.HUMAN and request.reason is not WakeReason.MANUAL


def is_let_in(request: WakeRequest, policy: AdmissionPolicy) -> bool:
    """Whether it is, where its agent is active and its lane is free; not where that is not all there is to know."""
    if request.thread is None or counts_starts(request):
        return False
    return _admits(request.agent, request.reason, request.origin, policy)


@lru_cache(maxsize=512)
def _admits(agent: AgentId, reason: WakeReason, origin: Origin, policy: AdmissionPolicy) -> bool:
    return admit(Request(agent, reason, origin, Instant(0)), policy).verdict is AdmissionVerdict.ACCEPT


def _admit(_: str, handed: Mapping[str, Given]) -> ClauseElement:
    given = handed["given"]
    going = select(func.count()).where(runs.c.lane_id == given["lane_id"], text(f"runs.{NOT_ENDED}")).scalar_subquery()
    active = agents.c.state == literal_column("'active'")
    # Whoever moves an agent or a lane does so before, and it is queued there; or after, and it goes along.
    agent = looked_up(agents, "agent", agents.c.id == given["agent"], active, put=True)
    # Whoever closes or gives away a thread does so before its wake comes, or after.
    thread = looked_up(
        threads,
        "thread",
        threads.c.id == given["thread_id"],
        threads.c.state == literal_column("'open'"),
        or_(given["as_assignee"] == _ZERO, threads.c.assignee == given["agent"]),
        held=True,
    )
    its_lane = looked_up(lanes, "its_lane", lanes.c.id == given["lane_id"], put=True)
    last = (
        select(func.coalesce(func.max(journal.c.seq), _ZERO))
        .where(journal.c.thread_id == given["thread_id"])
        .scalar_subquery()
    )
    let_in = (
        select(
            *given.values(),
            its_lane.c.id.label("lane"),
            func.coalesce(its_lane.c.runtime_id, agent.c.runtime_id, somewhere(agent.c.provider)).label("runtime"),
            (last + _ONE).label("place"),
            now().label("at"),
        )
        .join_from(given["id"].table, agent, true())
        .join(thread, true())
        .outerjoin(its_lane, true())
        .where(going == _ZERO)
        # All take threads in one order, so that nobody waits in a circle.
        .order_by(given["thread_id"])
        .cte("let_in")
    )
    lane = {"id": let_in.c.lane_id, "agent_id": let_in.c.agent, "thread_id": let_in.c.thread_id}
    made = lanes.insert().from_select([*lane], select(*lane.values()).where(let_in.c.lane.is_(None))).cte("made")
    run = {
        "id": let_in.c.run,
        "lane_id": let_in.c.lane_id,
        "agent_id": let_in.c.agent,
        "runtime_id": let_in.c.runtime,
        "rank": let_in.c.at + let_in.c.ahead,
        "queued_at": let_in.c.at,
    }
    queued = runs.insert().from_select([*run], select(*run.values())).returning(runs.c.id).cte("queued")
    entry = {
        "thread_id": let_in.c.thread_id,
        "seq": let_in.c.place,
        **{name: let_in.c[f"said_{name}"] for name in SAID},
        "at": let_in.c.at,
    }
    # After its run, in the order in which the end of a run takes them too.
    after = select(*entry.values()).join_from(let_in, queued, queued.c.id == let_in.c.run)
    said = (
        journal.insert()
        .from_select([*entry], after.where(let_in.c.said_body.is_not(None)))
        .returning(journal.c.thread_id, journal.c.seq)
        .cte("said")
    )
    place = select(said.c.seq).where(said.c.thread_id == let_in.c.thread_id).scalar_subquery()
    wake = {
        **{name: let_in.c[name] for name in _WAKE},
        "entry": func.coalesce(place, _ZERO),
        "accepted_at": let_in.c.at,
        "state": literal_column(f"'{WakeState.PENDING.value}'"),
    }
    kept = wakes.insert().from_select([*wake], select(*wake.values())).cte("kept")
    return select(let_in.c.id, let_in.c.runtime, place.label("entry")).add_cte(made, kept)


_all = Grouped({"given": _GIVEN}, _admit)


Asked = tuple[WakeRequest, bool]
"""A wake, and whether its agent is woken because the thread is its own."""


def admit_all(connection: Connection, asked: Sequence[Asked]) -> list[Accepted | None]:
    """What became of these, in the order of their threads; None for each that takes more, and was not touched. One that
    comes by itself while a daemon waits for work is claimed as it is accepted, and handed to it."""
    sets = [_given(*each) for each in asked]
    admitting, handing = _all.of(given=sets), handing_of(connection)
    waits = handing.take(AgentId(sets[0]["agent"])) if len(sets) == 1 else None
    if waits is None:
        rows, taken = whole(connection, admitting)[0].rows, frozenset[RunId]()
    else:
        rows, orders = claim_beside(connection, *waits, admitting)
        handing.put(orders)
        taken = frozenset(order.run for order in orders)
    done = {row["id"]: row for row in rows}
    for each in sets:
        if each["id"] in done:
            _tell(connection, each, done[each["id"]], each["run"] in taken)
    return [_accepted(each, done.get(each["id"])) for each in sets]


def _tell(connection: Connection, given: dict[str, Any], row: Row, taken: bool) -> None:
    runtime = None if row["runtime"] is None else RuntimeId(row["runtime"])
    if runtime is not None:
        handing_of(connection).learn(AgentId(given["agent"]), runtime)
    if not taken:
        hint_queue(connection, runtime)
    hint_thread(connection, ThreadId(given["thread_id"]))


def _given(request: WakeRequest, as_assignee: bool) -> dict[str, Any]:
    assert request.thread is not None
    # Whoever comes here is let in; why is the same for all of them.
    reason = AdmissionReason.LANE_FREE
    run = RunId(new_id("rn"))
    return {
        **asked_for(request, request.thread, lane_id(request.agent, request.thread)),
        "code": reason.code,
        "words": reason.fill(),
        **{f"said_{name}": value for name, value in said_columns(request.said).items()},
        "agent": request.agent,
        "as_assignee": int(as_assignee),
        "run": run,
        # All runs age alike: what is ahead of its time at any moment is so at every other.
        "ahead": rank(QueuedRun(run, Instant(0), request.priority), Aging()),
    }


def _accepted(given: dict[str, Any], row: Row | None) -> Accepted | None:
    if row is None:
        return None
    entry = None if row["entry"] is None else EntrySeq(row["entry"])
    return Accepted(given["id"], WakeState.PENDING, given["code"], given["words"], entry)
