"""Waking an agent: the one door that every wake of a person goes through, whatever it is about."""

from dataclasses import replace

from sqlalchemy import Connection

from clew.control.faults import BadRequest
from clew.control.services import Services
from clew.control.showing import wakes as showing
from clew.control.validation import not_too_long
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
    OriginKind,
    Overlap,
    ProjectId,
    RunId,
    RunOutcome,
    Subject,
    ThreadId,
    WakeId,
    WakeReason,
    lane_id,
    read_subject,
    thread_for,
)
from clew.protocol.requests import Poke
from clew.protocol.views import Cancelled, WakeView
from clew.protocol.wakes import Accepted, Said, WakeRequest
from clew.store.engine.hints import hint_news
from clew.store.engine.statement import Row
from clew.store.operations import cancel
from clew.store.operations.cancel import cancel_run
from clew.store.operations.ids import new_id
from clew.store.operations.steering import call_it, live_run, steerable_run
from clew.store.operations.texts import keepable
from clew.store.operations.threads import must_be_open, thread_of
from clew.store.operations.wakes import MOST_PRIORITY, accept_wake
from clew.store.queries.names import agent_named, project_named, run_called, thread_called, wake_called
from clew.store.queries.runs import read_run
from clew.store.queries.threads import thread_ref
from clew.store.queries.wakes import read_wake

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


OUTSIDE = Origin(OriginKind.OUTSIDE)


async def poke(services: Services, asked: Poke) -> WakeView:
    """In a thread, or in the agent's own: never in a conversation that was not named."""
    if abs(asked.priority) > MOST_PRIORITY:
        raise BadRequest(f"A priority of {asked.priority} is out of reach.", f"Stay within {MOST_PRIORITY}.")
    said = say_it(asked.text) if asked.text.strip() else None
    name, subject = new_wake(), subject_named(asked)
    if subject is not None and said is not None:
        said = replace(said, author=Author(AuthorKind.OUTSIDE, str(subject)))

    def do(connection: Connection) -> WakeView:
        agent = agent_named(connection, asked.agent)
        thread = None
        if subject is not None:
            row = its_thread(connection, subject, agent, asked.project)
            must_be_open(row, str(subject))
            thread = ThreadId(row["id"])
        elif asked.thread is not None:
            row = thread_called(connection, asked.thread, held=True)
            must_be_open(row, asked.thread)
            thread = ThreadId(row["id"])
        request = requested(
            name,
            agent,
            thread,
            WakeReason.MANUAL if subject is None else WakeReason.EVENT,
            said,
            asked.key,
            asked.fresh,
            asked.priority,
            origin=HUMAN if subject is None else OUTSIDE,
        )
        accepted = wake(connection, request, asked.resume_run)
        return showing.show_wake(read_wake(connection, accepted.wake), accepted.repeated)

    return await services.write(do)


async def show_wake(services: Services, wake_id: str) -> WakeView:
    return await services.read(
        lambda connection: showing.show_wake(read_wake(connection, wake_called(connection, wake_id)))
    )


async def cancel_wake(services: Services, wake_id: str) -> Cancelled:
    """One that no run has taken yet; what a run carries is cancelled with the run."""

    def do(connection: Connection) -> Cancelled:
        ended = cancel.cancel_wake(connection, WakeId(wake_called(connection, wake_id)))
        return Cancelled(ended.taken, ended.state.value, ended.words)

    return await services.write(do)


_WRITE_IT = "Write it as source:name, as in github:acme/app#12."


def subject_named(asked: Poke) -> Subject | None:
    """None for a wake that is about none."""
    if asked.subject is None:
        if asked.project is not None:
            raise BadRequest("A project is for the thread of a subject, and none is named.", "Name the subject, too.")
        return None
    if asked.thread is not None:
        raise BadRequest("A subject has its own thread, and another one is named.", "Name one of them.")
    if not asked.text.strip():
        raise BadRequest("An event says something, and this one says nothing.", "Give a text.")
    if keepable(asked.subject) != asked.subject:
        raise BadRequest(f"{asked.subject!r} holds a character that cannot be kept.", _WRITE_IT)
    try:
        return read_subject(asked.subject)
    except ValueError as fault:
        raise BadRequest(str(fault), _WRITE_IT) from fault


def its_thread(connection: Connection, subject: Subject, agent: Row, project: str | None) -> Row:
    wanted = None if project is None else ProjectId(project_named(connection, project)["id"])
    row = thread_of(connection, subject, AgentId(agent["id"]), wanted)
    if wanted is not None and row["project_id"] != wanted:
        raise BadRequest(f"{subject} is not worked on in {project}.", "Leave the project out: the thread has its own.")
    return row
