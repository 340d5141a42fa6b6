"""Issues: opened, assigned to an agent, and handed over to another."""

from collections.abc import Sequence
from dataclasses import replace

from clew.control.actor import Actor, author_of, name_of, origin_of
from clew.control.branch_start import check_branch_start, choose_branch_start
from clew.control.faults import BadRequest, NotNow
from clew.control.services import Services
from clew.control.threads import thread_page
from clew.control.validation import check_size, check_title
from clew.control.wakes import message, new_wake, wake, wake_request
from clew.kernel import (
    AgentId,
    AuthorKind,
    EntrySeq,
    Freshness,
    LaneId,
    ProjectId,
    RunOutcome,
    ThreadId,
    WakeEnd,
    WakeReason,
    WakeState,
    lane_id,
)
from clew.protocol.orders import Entry
from clew.protocol.requests import Assign, NewIssue, ThreadChange
from clew.protocol.views import ThreadPage, ThreadView
from clew.protocol.wakes import Accepted, WakeRequest, handover_words
from clew.store.engine.database import Transaction
from clew.store.operations.cancel import end_pending, reassign
from clew.store.operations.journal import Tried, append, append_once, entries_between
from clew.store.operations.projects import change_project
from clew.store.operations.steering import live_run
from clew.store.operations.threads import change_thread, give_thread, lock_thread, must_be_open, new_thread, open_thread
from clew.store.operations.updates import ProjectUpdate
from clew.store.queries.agents import AgentRecord
from clew.store.queries.names import agent_named, project_named, thread_called
from clew.store.queries.threads import has_runs, show_thread
from clew.store.queries.wakes import pending_entries

_NEW_BODY = "The description is now:"

MOST_TOLD = 100
"""How many of the latest entries the first agent of an issue is asked to act on, and a handover looks through."""


async def open_issue(services: Services, actor: Actor, asked: NewIssue) -> ThreadPage:
    """The text is the first entry of the issue's journal; an assignee is woken for it."""
    title = check_title(asked.title)
    said = message(author_of(actor), check_size(asked.body.strip(), "The text") or title)
    thread, name = new_thread(), new_wake()

    def write(tx: Transaction) -> ThreadPage:
        agent = None if asked.assignee is None else agent_named(tx, asked.assignee)
        project = None if asked.project is None else ProjectId(project_named(tx, asked.project).id)
        if open_thread(tx, thread, "issue", title, project, None if agent is None else agent.id):
            if agent is None:
                append(tx, thread, said)
            else:
                request = wake_request(name, agent.id, thread, WakeReason.ASSIGNMENT, origin_of(actor), said)
                _must_wake(wake(tx, request), agent)
        return thread_page(tx, thread)

    return await services.write(write)


async def assign_thread(services: Services, actor: Actor, ref: str, asked: Assign) -> ThreadView:
    """Give an issue to an agent, or to none. The former agent's pending wakes in it end.

    The first agent of an issue is asked to act on what people said in it. A later one is given the thread as history,
    and is asked to act on the handover alone."""
    if asked.begin_from is not None:
        if asked.agent is None:
            raise BadRequest("No agent is named that could begin from a branch.", "Leave begin_from out.")
        await check_branch_start(services, actor, ref, asked.begin_from)

    def write(tx: Transaction) -> ThreadView:
        thread = lock_thread(tx, thread_called(tx, ref).id)
        if thread.kind != "issue":
            raise BadRequest(
                f"{ref} is not an issue, so it cannot be assigned.", "Open an issue, or a chat with the other agent."
            )
        agent = None if asked.agent is None else agent_named(tx, asked.agent)
        new = None if agent is None else agent.id
        if agent is not None:
            must_be_open(thread, ref)
            if asked.begin_from is not None:
                choose_branch_start(tx, thread.id, agent.id, asked.begin_from)
        if thread.assignee != new:
            # Before the former agent's pending wakes end: the request names the entries that they left unanswered.
            request = None if agent is None else _assignment(tx, actor, thread.id, agent, thread.assignee)
            if thread.assignee is not None:
                _end_former(tx, actor, thread.id, thread.assignee, new)
            give_thread(tx, thread.id, new)
            if agent is not None and request is not None:
                _must_wake(wake(tx, request), agent)
        return show_thread(tx, thread.id)

    view = await services.write(write)
    services.record(actor, f"assigned {view.ref} to {view.assignee or 'no agent'}")
    return view


async def edit_thread(services: Services, actor: Actor, ref: str, change: ThreadChange) -> ThreadPage:
    """Change an issue's or a chat's title or project, or its description. In another project each lane gets a new
    workspace with its next run; the old one stays as it is. A live run ends where it works."""
    title = None if change.title is None else check_title(change.title)
    said = None
    if change.body is not None and change.body.strip():
        said = message(author_of(actor), f"{_NEW_BODY}\n\n{check_size(change.body.strip(), 'The text')}")
    tried: Tried = {}

    def write(tx: Transaction) -> ThreadPage:
        thread = lock_thread(tx, thread_called(tx, ref).id)
        if thread.kind == "own":
            raise BadRequest(f"{ref} is an agent's own thread.", "It has no title, description or project.")
        project = None if change.project is None else ProjectId(project_named(tx, change.project).id)
        change_thread(tx, thread.id, title, project)
        if project is not None:
            # Runs that were held for want of a place are decided again.
            change_project(tx, project, ProjectUpdate())
        if said is not None:
            append_once(tx, thread.id, said, tried)
        return thread_page(tx, thread.id)

    page = await services.write(write)
    services.record(actor, f"changed {page.thread.ref}")
    return page


def _must_wake(accepted: Accepted, agent: AgentRecord) -> None:
    """An agent that cannot be woken is not given the issue: nothing would wake it for it later."""
    if accepted.state is WakeState.SKIPPED:
        raise NotNow(
            f"{agent.name} would not be woken for it: {accepted.words}",
            f"`clew agent resume {agent.name}` first, give it to another agent, or open it without one.",
        )


def _end_former(tx: Transaction, actor: Actor, thread: ThreadId, old: AgentId, new: AgentId | None) -> None:
    by = name_of(actor)
    if new is None:
        end_pending(tx, lane_id(old, thread), WakeEnd.BY_USER, RunOutcome.BY_USER, by=by)
    else:
        reassign(tx, thread, old, new, by=by)


def _assignment(
    tx: Transaction, actor: Actor, thread: ThreadId, agent: AgentRecord, former: AgentId | None
) -> WakeRequest:
    """The wake of an agent that an issue is given to."""
    known = show_thread(tx, thread)
    latest = entries_between(tx, thread, EntrySeq(0), EntrySeq(known.entries), MOST_TOLD)
    reason, origin = WakeReason.ASSIGNMENT, origin_of(actor)
    if former is None and not has_runs(tx, thread) and not _last_answer(latest):
        # No agent was ever woken in it, so all of it is still to be done.
        return wake_request(new_wake(), agent.id, thread, reason, origin, entries=_to_act_on(latest))
    lane = None if former is None else lane_id(former, thread)
    words = handover_words(
        agent.name,
        None if former is None else known.assignee,
        _unanswered(tx, latest, lane),
        busy=lane is not None and live_run(tx, lane) is not None,
    )
    request = wake_request(new_wake(), agent.id, thread, reason, origin, message(author_of(actor), words))
    return replace(request, freshness=Freshness.HANDOVER)


def _to_act_on(latest: Sequence[Entry]) -> tuple[EntrySeq, ...]:
    """The entries of people and the outside: an assignment starts a new conversation, which is told nothing else."""
    return tuple(sorted({EntrySeq(1), *_said(latest)})) if latest else ()


def _unanswered(tx: Transaction, latest: Sequence[Entry], lane: LaneId | None) -> tuple[EntrySeq, ...]:
    """The entries since an agent last spoke, and those that the former agent's pending wakes ask to be answered."""
    waiting = frozenset[EntrySeq]() if lane is None else pending_entries(tx, lane)
    answer = _last_answer(latest)
    return tuple(sorted(waiting.union(entry for entry in _said(latest) if entry > answer)))


def _said(latest: Sequence[Entry]) -> list[EntrySeq]:
    return [entry.seq for entry in latest if entry.facts.author.kind in (AuthorKind.HUMAN, AuthorKind.OUTSIDE)]


def _last_answer(latest: Sequence[Entry]) -> EntrySeq:
    """The last entry that an agent wrote; 0 where none has."""
    return max((entry.seq for entry in latest if entry.facts.author.kind is AuthorKind.AGENT), default=EntrySeq(0))
