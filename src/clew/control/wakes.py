"""Wakes: by a message in a thread, by hand, or by an event outside; shown and cancelled. All go through `wake`."""

from dataclasses import replace
from itertools import count

from clew.control.actor import Actor, Outside, author_of, name_of, origin_of
from clew.control.branch_start import check_branch_start, choose_branch_start
from clew.control.faults import BadRequest
from clew.control.files import check_files, with_files
from clew.control.services import Services
from clew.control.subjects import subject_of, thread_of_subject
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
    RunId,
    RunOutcome,
    ThreadId,
    WakeId,
    WakeReason,
    lane_id,
    thread_for,
)
from clew.protocol.preview import read_foretold
from clew.protocol.requests import Poke, Words
from clew.protocol.views import Cancelled, Spoken, WakeView
from clew.protocol.wakes import Accepted, Said, WakeRequest
from clew.store.engine.database import Transaction
from clew.store.engine.dialect import storable
from clew.store.engine.hints import hint_anything, hint_news, hint_thread
from clew.store.operations import cancel
from clew.store.operations.files import mark_sent
from clew.store.operations.ids import new_id
from clew.store.operations.journal import Tried, append_once
from clew.store.operations.message_changes import take_back
from clew.store.operations.steering import live_run, set_pending_reason, steerable_run
from clew.store.operations.threads import must_be_open
from clew.store.operations.wakes import MOST_PRIORITY, accept_wake
from clew.store.queries import wakes as queries
from clew.store.queries.names import ThreadRecord, agent_named, run_called, thread_called, wake_called
from clew.store.queries.runs import read_run

_FOR_A_WAKE = ("agent", "fresh", "resume_run", "begin_from", "preview")
"""Fields of a message that say something about its wake."""

_REASONS = {"issue": WakeReason.COMMENT}


async def say(services: Services, actor: Actor, ref: str, words: Words) -> Spoken:
    """A comment on an issue, or a message in a chat. A message that wakes no agent is written to the journal too."""
    if not words.text.strip() and not words.files:
        raise BadRequest("The message is empty.", "Give a text; to wake an agent without one, use `clew wake`.")
    check_files(words.files)
    overlap = check_words(words)
    if words.begin_from is not None:
        await check_branch_start(services, actor, ref, words.begin_from)
    text, named = message(author_of(actor), words.text), new_wake()
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
        agent = addressee(tx, thread, words)
        if words.wakes:
            must_be_open(thread, ref)
        said = with_files(tx, thread.id, actor, text, words.files)
        if agent is None:
            return _write_only(tx, thread.id, words, overlap, said, tried)
        request = message_request(named, agent, thread, actor, words, said)
        if words.begin_from is not None:
            choose_branch_start(tx, thread.id, agent, words.begin_from)
        accepted = wake(tx, request, words.resume_run, overlap)
        if not accepted.repeated:
            mark_sent(tx, thread.id, said.files)
        return Spoken(accepted.entry or 0, queries.show_wake(tx, accepted.wake, accepted.repeated))

    return await services.write(write)


def check_words(words: Words) -> Overlap | None:
    """How the message is handled while the agent is busy, if it says so itself. Refuses what contradicts itself."""
    overlap = None if words.overlap is None else overlap_called(words.overlap)
    if overlap is Overlap.STEER and (words.fresh or words.resume_run is not None):
        raise BadRequest(
            "A message that steers cannot start fresh or resume a run: the running turn has a session already.",
            "Leave one of them out.",
        )
    beside = [name for name in _FOR_A_WAKE if getattr(words, name)]
    if beside and not words.wakes:
        raise BadRequest(f"This message wakes no agent, so {beside[0]} means nothing.", "Leave it out, or wake one.")
    if words.preview is not None and read_foretold(words.preview) is None:
        raise BadRequest(
            "`preview` is not the token of a preview.", "Send the token of the one that was shown, or none."
        )
    return overlap


def message_request(
    name: WakeId, agent: AgentId, thread: ThreadRecord, actor: Actor, words: Words, said: Said
) -> WakeRequest:
    """The wake that a message in the thread makes."""
    reason = _REASONS.get(thread.kind, WakeReason.CHAT)
    request = wake_request(name, agent, thread.id, reason, origin_of(actor), said, key=words.key, fresh=words.fresh)
    return replace(request, preview=words.preview)


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
    mark_sent(tx, thread, said.files)
    hint_thread(tx, thread)
    return Spoken(entry, None)


def addressee(tx: Transaction, thread: ThreadRecord, words: Words) -> AgentId | None:
    if not words.wakes:
        return None
    return thread.assignee if words.agent is None else agent_named(tx, words.agent).id


_LONGEST_KEY = 200
_SHOWN = 60


async def poke(services: Services, actor: Actor, asked: Poke) -> WakeView:
    """Wake an agent in a thread, or in its own. With a subject, what is said comes from that subject."""
    if abs(asked.priority) > MOST_PRIORITY:
        raise BadRequest(
            f"A priority must be between -{MOST_PRIORITY} and {MOST_PRIORITY} (got {asked.priority}).",
            "Choose one within that range.",
        )
    name, subject = new_wake(), subject_of(asked)
    by = actor if subject is None else Outside(subject.source, subject.name)
    said = message(author_of(by), asked.text) if asked.text.strip() else None

    def write(tx: Transaction) -> WakeView:
        agent = agent_named(tx, asked.agent)
        thread = None
        if subject is not None:
            found = thread_of_subject(tx, subject, agent, asked.project)
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
    """Cancel a wake that no run has claimed yet, and take its message back. A claimed one is cancelled with its run."""
    author = author_of(actor)

    def write(tx: Transaction) -> Cancelled:
        ended = take_back(tx, WakeId(wake_called(tx, wake_id)), author, name_of(actor))
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
        shown = repr(key) if len(key) <= _SHOWN else f"{key[:_SHOWN]!r}…"
        words = f"{shown} cannot be a key: one has 1 to {_LONGEST_KEY} characters, all valid Unicode and none NUL."
        raise BadRequest(words, "Leave it out, or choose another.")
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
    request = with_run(tx, request, resume_run)
    return _apply_overlap(tx, request, accept_wake(tx, request, policy_of(overlap)))


def with_run(tx: Transaction, request: WakeRequest, resume_run: str | None) -> WakeRequest:
    """The request, for the session of that run of its lane."""
    if resume_run is None:
        return request
    if request.freshness is Freshness.FRESH:
        raise BadRequest("A wake cannot start fresh and resume a run.", "Ask for one of them.")
    request = replace(request, resume_run=RunId(run_called(tx, resume_run)))
    _must_be_of_this_lane(tx, request)
    return request


def policy_of(overlap: Overlap | None) -> AdmissionPolicy | None:
    return None if overlap is None else AdmissionPolicy(overlap=overlap)


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
    if run is not None and fits_turn(request):
        hint_news(tx, run)
        return accepted
    reason = AdmissionReason.QUEUED
    set_pending_reason(tx, accepted.wake, reason.code, reason.fill())
    return replace(accepted, code=reason.code, words=reason.fill(), overlap=Overlap.QUEUE)


def fits_turn(request: WakeRequest) -> bool:
    """Whether a running turn can be told of it: one message, for the session that the turn is in."""
    same_session = request.freshness is Freshness.FOLLOW_POLICY and request.resume_run is None
    return same_session and request.said is not None and not request.entries


def _must_be_of_this_lane(tx: Transaction, request: WakeRequest) -> None:
    assert request.resume_run is not None
    run = read_run(tx, request.resume_run)
    if (run.agent, run.thread) != (request.agent, thread_for(request.agent, request.thread)):
        raise BadRequest(
            f"{run.name} is {run.agent_name}'s in {run.ref}.",
            "A conversation continues in its own thread: wake that agent there.",
        )
