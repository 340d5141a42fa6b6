"""Waking an agent: the one door that every wake of a person goes through, whatever it is about."""

from dataclasses import replace

from sqlalchemy import Connection

from clew.control.bounds import not_too_long
from clew.control.faults import BadRequest
from clew.kernel import (
    HUMAN,
    AdmissionPolicy,
    AdmissionReason,
    AgentId,
    Author,
    AuthorKind,
    EntrySeq,
    Freshness,
    LaneId,
    Origin,
    Overlap,
    RunId,
    RunOutcome,
    ThreadId,
    WakeId,
    WakeReason,
    lane_id,
    thread_for,
)
from clew.protocol.wakes import Accepted, Said, WakeRequest
from clew.store.engine.hints import hint_news
from clew.store.engine.statement import Row
from clew.store.operations.cancel import cancel_run
from clew.store.operations.ids import new_id
from clew.store.operations.steering import call_it, live_run, steerable_run
from clew.store.operations.texts import keepable
from clew.store.operations.wakes import accept_wake
from clew.store.queries.names import run_called
from clew.store.queries.runs import read_run
from clew.store.queries.threads import thread_ref

PERSON = Author(AuthorKind.HUMAN, "user")
_LONGEST_KEY = 200


def say_it(text: str) -> Said:
    """What a person says; a token is taken for four bytes."""
    return Said(PERSON, not_too_long(text, "The text"), (len(text.encode(errors="replace")) + 3) // 4)


def new_wake() -> WakeId:
    """A name for what is asked for, before anything is written: however often that is tried, it is one wake."""
    return WakeId(new_id("wk"))


def requested(
    name: WakeId,
    agent: Row,
    thread: ThreadId | None,
    reason: WakeReason,
    said: Said | None = None,
    key: str | None = None,
    fresh: bool = False,
    priority: int = 0,
    entries: tuple[EntrySeq, ...] = (),
    origin: Origin = HUMAN,
) -> WakeRequest:
    """A wake as it is asked for."""
    if key is not None and (not 1 <= len(key) <= _LONGEST_KEY or keepable(key) != key):
        raise BadRequest("A key has 1 to 200 characters, all of which can be kept.", "Leave it out, or choose another.")
    return WakeRequest(
        id=name,
        agent=AgentId(agent["id"]),
        reason=reason,
        origin=origin,
        thread=thread,
        said=said,
        freshness=Freshness.FRESH if fresh else Freshness.FOLLOW_POLICY,
        priority=priority,
        dedupe_key=key,
        entries=entries,
    )


def wake(
    connection: Connection, request: WakeRequest, resume_run: str | None = None, overlap: Overlap | None = None
) -> Accepted:
    """One transaction. On a busy lane its overlap policy is applied, unless this wake has one of its own, and the
    receipt says which."""
    if resume_run is not None:
        if request.freshness is Freshness.FRESH:
            raise BadRequest("A fresh start and an earlier run's session cannot both be had.", "Ask for one of them.")
        request = replace(request, resume_run=RunId(run_called(connection, resume_run)))
        _must_be_its_own(connection, request)
    policy = None if overlap is None else AdmissionPolicy(overlap=overlap)
    return apply_overlap(connection, request, accept_wake(connection, request, policy))


def apply_overlap(connection: Connection, request: WakeRequest, accepted: Accepted) -> Accepted:
    """What the policy says of a wake that came while the lane was busy."""
    if accepted.repeated or accepted.overlap is None:
        return accepted
    lane = lane_id(request.agent, thread_for(request.agent, request.thread))
    match accepted.overlap:
        case Overlap.INTERRUPT:
            run = live_run(connection, lane)
            if run is not None:
                cancel_run(connection, run, RunOutcome.INTERRUPTED)
        case Overlap.STEER:
            return _steer(connection, request, accepted, lane)
        case Overlap.QUEUE | Overlap.REJECT:
            pass
    return accepted


def _steer(connection: Connection, request: WakeRequest, accepted: Accepted, lane: LaneId) -> Accepted:
    """The daemon of the run that is going is told at once; where nothing can be told within its turn, the next one has
    it, and the receipt says so."""
    run = steerable_run(connection, lane)
    of_this_session = request.said is not None and request.freshness is Freshness.FOLLOW_POLICY and not request.entries
    if run is not None and of_this_session and request.resume_run is None:
        hint_news(connection, run)
        return accepted
    reason = AdmissionReason.QUEUED
    call_it(connection, accepted.wake, reason.code, reason.fill())
    return replace(accepted, code=reason.code, words=reason.fill(), overlap=Overlap.QUEUE)


def _must_be_its_own(connection: Connection, request: WakeRequest) -> None:
    assert request.resume_run is not None
    run = read_run(connection, request.resume_run)
    if (run["agent_id"], run["thread_id"]) != (request.agent, thread_for(request.agent, request.thread)):
        raise BadRequest(
            f"Run {request.resume_run} is {run['agent_name']}'s in {thread_ref(run)}.",
            "A conversation goes on where it was: wake that agent in that thread.",
        )
