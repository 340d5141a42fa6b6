"""Issues: opened, given to an agent, and handed over to another."""

from collections.abc import Sequence
from dataclasses import replace

from sqlalchemy import Connection

from clew.control.faults import BadRequest, NotNow
from clew.control.services import Services
from clew.control.showing.threads import show_thread
from clew.control.threads import page_of
from clew.control.validation import check_title, not_too_long
from clew.control.wakes import new_wake, requested, say_it, wake
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
from clew.protocol.handover import handover_words
from clew.protocol.orders import Entry
from clew.protocol.requests import Assign, NewIssue
from clew.protocol.views import ThreadPage, ThreadView
from clew.protocol.wakes import Accepted, WakeRequest
from clew.store.engine.statement import Row
from clew.store.operations.cancel import end_pending, reassign
from clew.store.operations.journal import append, entries_between
from clew.store.operations.rows import read_wake
from clew.store.operations.steering import live_run
from clew.store.operations.threads import give_thread, hold_thread, must_be_open, new_thread, open_thread
from clew.store.queries.names import agent_named, project_named, thread_called
from clew.store.queries.threads import newest_runs_in, read_thread
from clew.store.queries.wakes import pending_wakes

MOST_TOLD = 100
"""How many of the latest entries an issue's first agent is asked to act on, and a handover looks through."""


async def open_issue(services: Services, asked: NewIssue) -> ThreadPage:
    """Its text is the first entry of its journal, and what its agent is woken for."""
    title = check_title(asked.title)
    text = not_too_long(asked.body.strip(), "The text") or title
    thread, name = new_thread(), new_wake()

    def do(connection: Connection) -> ThreadPage:
        agent = None if asked.assignee is None else agent_named(connection, asked.assignee)
        project = None if asked.project is None else ProjectId(project_named(connection, asked.project)["id"])
        assignee = None if agent is None else AgentId(agent["id"])
        if open_thread(connection, thread, "issue", title, project, assignee):
            if agent is None:
                append(connection, thread, say_it(text))
            else:
                request = requested(name, agent, thread, WakeReason.ASSIGNMENT, say_it(text))
                _give(wake(connection, request), agent)
        return page_of(connection, thread)

    return await services.write(do)


async def assign_thread(services: Services, ref: str, asked: Assign) -> ThreadView:
    """What its former agent was still to do of it ends. The first agent of an issue is asked to act on what people said
    in it; each later one is handed the thread as history, and is asked to act on the handover alone."""

    def do(connection: Connection) -> ThreadView:
        found = thread_called(connection, ref)
        thread = ThreadId(found["id"])
        row = hold_thread(connection, thread)
        if row["kind"] != "issue":
            raise BadRequest(f"{ref} is no issue, so it cannot change hands.", "Open an issue, or chat with the other.")
        agent = None if asked.agent is None else agent_named(connection, asked.agent)
        new = None if agent is None else AgentId(agent["id"])
        if agent is not None:
            must_be_open(row, ref)
        if row["assignee"] != new:
            # Before it is taken away: what waits in the former agent's lane is not answered, and ends with that.
            request = None if agent is None else _given(connection, thread, agent, row["assignee"])
            if row["assignee"] is not None:
                _take_away(connection, thread, AgentId(row["assignee"]), new)
            give_thread(connection, thread, new)
            if agent is not None and request is not None:
                _give(wake(connection, request), agent)
        return show_thread(connection, thread)

    return await services.write(do)


def _give(accepted: Accepted, agent: Row) -> None:
    """Whoever is given an issue is woken for it, or is not given it: nobody would look at it later."""
    if accepted.state is WakeState.SKIPPED:
        name = agent["name"]
        raise NotNow(
            f"{name} would not be woken for it: {accepted.words}",
            f"`clew agent resume {name}` first, give it to another, or open it without an agent.",
        )


def _take_away(connection: Connection, thread: ThreadId, old: AgentId, new: AgentId | None) -> None:
    if new is None:
        end_pending(connection, lane_id(old, thread), WakeEnd.BY_USER, RunOutcome.BY_USER)
    else:
        reassign(connection, thread, old, new)


def _given(connection: Connection, thread: ThreadId, agent: Row, former: str | None) -> WakeRequest:
    """The wake of an agent that an issue is given to."""
    known = read_thread(connection, thread)
    head = EntrySeq(0 if known is None else known["entries"])
    latest = entries_between(connection, thread, EntrySeq(0), head, MOST_TOLD)
    if former is None and not newest_runs_in(connection, [thread]) and not _last_answer(latest):
        # Nobody was ever woken in it, so all of it is still to be done.
        return requested(new_wake(), agent, thread, WakeReason.ASSIGNMENT, entries=_to_act_on(latest))
    lane = None if former is None else lane_id(AgentId(former), thread)
    words = handover_words(
        agent["name"],
        None if known is None or former is None else known["thread_owner"],
        _not_answered(connection, latest, lane),
        busy=lane is not None and live_run(connection, lane) is not None,
    )
    request = requested(new_wake(), agent, thread, WakeReason.ASSIGNMENT, say_it(words))
    return replace(request, freshness=Freshness.HANDOVER)


def _to_act_on(latest: Sequence[Entry]) -> tuple[EntrySeq, ...]:
    """What people and the outside said: an assignment starts afresh, so nothing else is told by itself."""
    return tuple(sorted({EntrySeq(1), *_said(latest)})) if latest else ()


def _not_answered(connection: Connection, latest: Sequence[Entry], lane: LaneId | None) -> tuple[EntrySeq, ...]:
    """What was said since an agent last spoke, and what still waits in the former agent's lane."""
    pending = () if lane is None else pending_wakes(connection, lane)
    waits = {entry for row in pending for entry in read_wake(row).entries}
    answer = _last_answer(latest)
    return tuple(sorted(waits.union(entry for entry in _said(latest) if entry > answer)))


def _said(latest: Sequence[Entry]) -> list[EntrySeq]:
    return [entry.seq for entry in latest if entry.facts.author.kind in (AuthorKind.HUMAN, AuthorKind.OUTSIDE)]


def _last_answer(latest: Sequence[Entry]) -> EntrySeq:
    """The last entry that an agent wrote; 0 where none has."""
    return max((entry.seq for entry in latest if entry.facts.author.kind is AuthorKind.AGENT), default=EntrySeq(0))
