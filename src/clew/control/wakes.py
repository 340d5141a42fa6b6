"""Wakes: by a message in a thread, by hand, or by an event outside; shown and cancelled. All go through `wake`."""

from dataclasses import replace
from itertools import count

from clew.control.actor import Actor, Outside, author_of, name_of, origin_of
from clew.control.beginning import choose_beginning
from clew.control.faults import BadRequest
from clew.control.services import Services
from clew.control.threads import overlap_called
from clew.control.validation import check_size
from clew.kernel import (
    AdmissionPolicy,
    AdmissionReason,
    AgentId,
    Author,
    EntrySeq,
    Freshness,
    LaneId,
    Origin,
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
from clew.protocol.requests import Poke, Words
from clew.protocol.views import Cancelled, Spoken, WakeView
from clew.protocol.wakes import Accepted, Said, WakeRequest
from clew.store.engine.database import Transaction
from clew.store.engine.dialect import storable
from clew.store.engine.hints import hint_anything, hint_news, hint_thread
from clew.store.operations import cancel
from clew.store.operations.ids import new_id
from clew.store.operations.journal import Tried, append_once
from clew.store.operations.steering import live_run, set_pending_reason, steerable_run
from clew.store.operations.threads import must_be_open, thread_of
from clew.store.operations.wakes import MOST_PRIORITY, accept_wake
from clew.store.queries import wakes as queries
from clew.store.queries.agents import AgentRecord
from clew.store.queries.names import ThreadRecord, agent_named, project_named, run_called, thread_called, wake_called
from clew.store.queries.runs import read_run

_REASONS = {"issue": WakeReason.COMMENT}


async def say(services: Services, actor: Actor, ref: str, words: Words) -> Spoken:
    """A comment on an issue, or a message in a chat. A message that wakes no agent is written to the journal too."""
    if not words.text.strip():
        raise BadRequest("The message is empty.", "Give a text; to wake an agent without one, use `clew wake`.")
    overlap = None if words.overlap is None else overlap_called(words.overlap)
    if overlap is Overlap.STEER and (words.fresh or words.resume_run is not None):
        raise BadRequest(
            "--steer cannot be combined with --fresh or --resume: the running turn has a session already.",
            "Leave one of them out.",
        )
    said, named = message(author_of(actor), words.text), new_wake()
    tried: Tried = {}
    tries = count()

    def write(tx: Transaction) -> Spoken:
        # The name is new, so nothing has it at the first try.
        before = queries.find_wake(tx, named) if next(tries) else None
        if before is not None:
            # An earlier try was committed and its answer lost; the thread may have been closed or reassigned since.
            hint_anything(tx)
            return Spoken(before.entry or 0, before)
        thread = thread_called(tx, ref, locked=True)
        agent = _addressee(tx, thread, words)
        if agent is None:
            return _write_only(tx, thread.id, words, overlap, said, tried)
        must_be_open(thread, ref)
        reason = _REASONS.get(thread.kind, WakeReason.CHAT)
        request = wake_request(
            named, agent, thread.id, reason, origin_of(actor), said, key=words.key, fresh=words.fresh
        )
        if words.begin_from is not None:
            choose_beginning(tx, thread.id, agent, words.begin_from)
        accepted = wake(tx, request, words.resume_run, overlap)
        return Spoken(accepted.entry or 0, queries.show_wake(tx, accepted.wake, accepted.repeated))

    return await services.write(write)


def _write_only(
    tx: Transaction, thread: ThreadId, words: Words, overlap: Overlap | None, said: Said, tried: Tried
) -> Spoken:
    """A message that wakes no agent. `tried` outlives a lost answer, so the message is written once."""
    if words.key is not None:
        raise BadRequest("A key names a wake, and this message wakes no agent.", "Leave the key out.")
    if overlap is Overlap.STEER:
        raise BadRequest(
            "This message wakes no agent, so there is no turn to steer.", "Name an agent, or do not steer."
        )
    entry = append_once(tx, thread, said, tried)
    hint_thread(tx, thread)
    return Spoken(entry, None)


def _addressee(tx: Transaction, thread: ThreadRecord, words: Words) -> AgentId | None:
    if not words.wakes:
        return None
    return thread.assignee if words.agent is None else agent_named(tx, words.agent).id


_LONGEST_KEY = 200
_SUBJECT_FORM = "Write it as source:name, as in github:acme/app#12."


async def poke(services: Services, actor: Actor, asked: Poke) -> WakeView:
    """Wake an agent in a thread, or in its own. With a subject, what is said comes from that subject."""
    if abs(asked.priority) > MOST_PRIORITY:
        raise BadRequest(
            f"A priority must be between -{MOST_PRIORITY} and {MOST_PRIORITY} (got {asked.priority}).",
            "Choose one within that range.",
        )
    name, subject = new_wake(), _subject(asked)
    by = actor if subject is None else Outside(subject.source, subject.name)
    said = message(author_of(by), asked.text) if asked.text.strip() else None

    def write(tx: Transaction) -> WakeView:
        agent = agent_named(tx, asked.agent)
        thread = None
        if subject is not None:
            found = _thread_of_subject(tx, subject, agent, asked.project)
            must_be_open(found, str(subject))
            thread = found.id
        elif asked.thread is not None:
            found = thread_called(tx, asked.thread, locked=True)
            must_be_open(found, asked.thread)
            thread = found.id
        reason = WakeReason.MANUAL if subject is None else WakeReason.EVENT
        request = wake_request(
            name,
            agent.id,
            thread,
            reason,
            origin_of(by),
            said,
            key=asked.key,
            fresh=asked.fresh,
            priority=asked.priority,
        )
        accepted = wake(tx, request, asked.resume_run)
        return queries.show_wake(tx, accepted.wake, accepted.repeated)

    return await services.write(write)


async def show_wake(services: Services, actor: Actor, wake_id: str) -> WakeView:
    return await services.read(lambda tx: queries.show_wake(tx, wake_called(tx, wake_id)))


async def cancel_wake(services: Services, actor: Actor, wake_id: str) -> Cancelled:
    """Cancel a wake that no run has claimed yet. A claimed wake is cancelled with its run."""

    def write(tx: Transaction) -> Cancelled:
        ended = cancel.cancel_wake(tx, WakeId(wake_called(tx, wake_id)), by=name_of(actor))
        return Cancelled(ended.taken, ended.state.value, ended.words)

    return await services.write(write)


def message(author: Author, text: str) -> Said:
    """A text as a journal entry. Its size in tokens is estimated at four bytes each."""
    return Said(author, check_size(text, "The text"), (len(text.encode(errors="replace")) + 3) // 4)


def new_wake() -> WakeId:
    """An id before anything is written: however often the transaction is tried, it makes one wake."""
    return WakeId(new_id("wk"))


def wake_request(
    name: WakeId,
    agent: AgentId,
    thread: ThreadId | None,
    reason: WakeReason,
    origin: Origin,
    said: Said | None = None,
    *,
    key: str | None = None,
    fresh: bool = False,
    priority: int = 0,
    entries: tuple[EntrySeq, ...] = (),
) -> WakeRequest:
    if key is not None and (not 1 <= len(key) <= _LONGEST_KEY or storable(key) != key):
        raise BadRequest(
            f"A key must have 1 to {_LONGEST_KEY} characters, none of them NUL or half of a surrogate pair.",
            "Leave it out, or choose another.",
        )
    return WakeRequest(
        id=name,
        agent=agent,
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
    tx: Transaction, request: WakeRequest, resume_run: str | None = None, overlap: Overlap | None = None
) -> Accepted:
    """Accept the wake, and apply the overlap policy if its lane is busy: this wake's own, or else the lane's."""
    if resume_run is not None:
        if request.freshness is Freshness.FRESH:
            raise BadRequest("--fresh cannot be combined with --resume.", "Ask for one of them.")
        request = replace(request, resume_run=RunId(run_called(tx, resume_run)))
        _must_be_of_this_lane(tx, request)
    policy = None if overlap is None else AdmissionPolicy(overlap=overlap)
    return _apply_overlap(tx, request, accept_wake(tx, request, policy))


def _apply_overlap(tx: Transaction, request: WakeRequest, accepted: Accepted) -> Accepted:
    if accepted.repeated or accepted.overlap is None:
        return accepted
    lane = lane_id(request.agent, thread_for(request.agent, request.thread))
    match accepted.overlap:
        case Overlap.INTERRUPT:
            run = live_run(tx, lane)
            if run is not None:
                cancel.cancel_run(tx, run, RunOutcome.INTERRUPTED)
        case Overlap.STEER:
            return _steer(tx, request, accepted, lane)
        case Overlap.QUEUE | Overlap.REJECT:
            pass
    return accepted


def _steer(tx: Transaction, request: WakeRequest, accepted: Accepted, lane: LaneId) -> Accepted:
    """Tell the running turn's daemon at once. A turn that cannot be steered leaves the wake to the next run, and the
    receipt says so."""
    run = steerable_run(tx, lane)
    same_session = request.said is not None and request.freshness is Freshness.FOLLOW_POLICY and not request.entries
    if run is not None and same_session and request.resume_run is None:
        hint_news(tx, run)
        return accepted
    reason = AdmissionReason.QUEUED
    set_pending_reason(tx, accepted.wake, reason.code, reason.fill())
    return replace(accepted, code=reason.code, words=reason.fill(), overlap=Overlap.QUEUE)


def _must_be_of_this_lane(tx: Transaction, request: WakeRequest) -> None:
    assert request.resume_run is not None
    run = read_run(tx, request.resume_run)
    if (run.agent, run.thread) != (request.agent, thread_for(request.agent, request.thread)):
        raise BadRequest(
            f"{run.name} is {run.agent_name}'s in {run.ref}.",
            "A conversation continues in its own thread: wake that agent there.",
        )


def _subject(asked: Poke) -> Subject | None:
    """The outside subject that the wake is about, if any."""
    if asked.subject is None:
        if asked.project is not None:
            raise BadRequest("--project needs a subject: it is for the thread of one.", "Name the subject, too.")
        return None
    if asked.thread is not None:
        raise BadRequest("A subject has its own thread, and another thread is named.", "Name one of them.")
    if not asked.text.strip():
        raise BadRequest("The event of a subject needs a text.", "Give a text.")
    if storable(asked.subject) != asked.subject:
        raise BadRequest(f"{asked.subject!r} has a character that cannot be stored.", _SUBJECT_FORM)
    try:
        return read_subject(asked.subject)
    except ValueError as fault:
        raise BadRequest(str(fault), _SUBJECT_FORM) from fault


def _thread_of_subject(tx: Transaction, subject: Subject, agent: AgentRecord, project: str | None) -> ThreadRecord:
    wanted = None if project is None else ProjectId(project_named(tx, project).id)
    thread = thread_of(tx, subject, agent.id, wanted)
    if wanted is not None and thread.project != wanted:
        raise BadRequest(f"The thread of {subject} is not in project {project!r}.", "Leave the project out.")
    return thread
