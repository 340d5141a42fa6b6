"""Threads: listed, shown, closed and reopened; chats, and how a busy lane takes messages."""

from collections.abc import Sequence

from clew.control.actor import Actor, name_of, reader_of
from clew.control.faults import BadRequest, NotNow
from clew.control.services import Services
from clew.control.validation import check_limit, check_title
from clew.kernel import AgentState, Overlap, ProjectId, ThreadId
from clew.protocol.requests import NewChat
from clew.protocol.views import LaneView, ThreadPage, ThreadView
from clew.store.engine.database import Transaction
from clew.store.operations import threads as store
from clew.store.operations.allowances import forget
from clew.store.queries import threads as queries
from clew.store.queries.approvals import pending_approvals
from clew.store.queries.entries import WHOLE, entries_page
from clew.store.queries.names import agent_named, project_named, thread_called
from clew.store.queries.runs import list_runs, show_runs
from clew.store.queries.usage import used_of_thread

RUNS_SHOWN = 20


async def list_threads(
    services: Services,
    actor: Actor,
    kind: str | None = None,
    state: str | None = None,
    agent: str | None = None,
    limit: int = 50,
    before: str | None = None,
    only: str | None = None,
) -> tuple[ThreadView, ...]:
    """The newest first; with `agent`, its own and those assigned to it; with `before`, those older than that thread.
    `only` unread, pinned (the last pinned first) or archived ones; without it, all that are not archived."""
    most = check_limit(limit)
    if kind is not None and kind not in queries.KINDS:
        raise BadRequest(f"Unknown kind of thread {kind!r}.", f"Use one of: {', '.join(queries.KINDS)}.")
    if state is not None and state not in queries.STATES:
        raise BadRequest(f"Unknown thread state {state!r}.", f"Use one of: {', '.join(queries.STATES)}.")

    if only is not None and only not in queries.ONLY:
        raise BadRequest(f"Unknown mark {only!r}.", f"Use one of: {', '.join(queries.ONLY)}.")
    reader = reader_of(actor)

    def read(tx: Transaction) -> tuple[ThreadView, ...]:
        of = None if agent is None else agent_named(tx, agent)
        older_than = None if before is None else thread_called(tx, before).id
        if only != "pinned":
            return queries.list_threads(tx, kind, state, None if of is None else of.id, most, older_than, reader, only)
        wanted = {"kind": kind, "state": state, "assignee": None if of is None else of.name}
        return tuple(
            view
            for view in queries.list_pinned(tx, reader, most)
            if all(value in (None, getattr(view, name)) for name, value in wanted.items())
        )

    return await services.read(read)


async def find_threads(services: Services, actor: Actor, refs: Sequence[str]) -> tuple[ThreadId, ...]:
    """The ids of these threads, each once, in that order; one that is unknown is refused."""
    return await services.read(lambda tx: tuple(dict.fromkeys(thread_called(tx, ref).id for ref in refs)))


async def show_thread(
    services: Services, actor: Actor, ref: str, before: int | None = None, limit: int = 50, after: int = 0
) -> ThreadPage:
    """The thread with its last entries, or with the last of those before or after a given one."""
    most = _check_place(before, limit, after)
    reader = reader_of(actor)
    return await services.read(
        lambda tx: thread_page(tx, thread_called(tx, ref).id, before, most, after, reader=reader)
    )


async def show_screen(
    services: Services,
    actor: Actor,
    ref: str,
    before: int | None = None,
    limit: int = 50,
    after: int = 0,
    longest: int = WHOLE,
) -> ThreadPage:
    """The same at a cost that does not depend on how long the thread is: without what all of its runs have used, and
    of a text with more than `longest` characters only so many."""
    most = _check_place(before, limit, after)
    reader = reader_of(actor)
    return await services.read(
        lambda tx: thread_page(tx, thread_called(tx, ref).id, before, most, after, longest, used=False, reader=reader)
    )


def _check_place(before: int | None, limit: int, after: int) -> int:
    most = check_limit(limit)
    if before is not None and not 1 <= before < 2**31:
        raise BadRequest(f"There is no entry {before}.", "Entries are numbered from 1.")
    if not 0 <= after < 2**31:
        raise BadRequest(f"There is no entry {after}.", "Entries are numbered from 1; 0 is before all of them.")
    return most


def thread_page(
    tx: Transaction,
    thread: ThreadId,
    before: int | None = None,
    most: int = 50,
    after: int = 0,
    longest: int = WHOLE,
    used: bool = True,
    reader: str = "",
) -> ThreadPage:
    """`used`: with the sum over all runs of the thread, which takes the longer the more there are."""
    entries = entries_page(tx, thread, before, most, after, longest)
    newest = list_runs(tx, thread, None, None, RUNS_SHOWN, None)
    older = {entry.run for entry in entries if entry.run is not None} - {run.id for run in newest}
    return ThreadPage(
        thread=queries.show_thread(tx, thread, reader),
        lanes=queries.lanes_of(tx, thread),
        entries=entries,
        runs=tuple(sorted((*newest, *show_runs(tx, older)), key=lambda run: (run.queued_at, run.id), reverse=True)),
        approvals=pending_approvals(tx, thread),
        earlier=bool(entries) and entries[0].seq > 1,
        used=used_of_thread(tx, thread) if used else None,
    )


async def open_chat(services: Services, actor: Actor, asked: NewChat) -> ThreadView:
    """A thread with one agent, opened before anything is said."""
    title = check_title(asked.title) if asked.title.strip() else ""
    thread = store.new_thread()

    def write(tx: Transaction) -> ThreadView:
        agent = agent_named(tx, asked.agent)
        if agent.state is not AgentState.ACTIVE:
            # The first message would be refused, and an empty chat left behind.
            how = "was removed" if agent.state is AgentState.ARCHIVED else "is paused"
            raise NotNow(
                f"{agent.name} {how}, so it would not answer.",
                f"`clew agent resume {agent.name}` first, or chat with another agent.",
            )
        project = None if asked.project is None else ProjectId(project_named(tx, asked.project).id)
        store.open_thread(tx, thread, "chat", title, project, agent.id)
        return queries.show_thread(tx, thread)

    view = await services.write(write)
    services.record(actor, f"opened {view.ref} with {asked.agent}")
    return view


async def close_thread(services: Services, actor: Actor, ref: str) -> ThreadView:
    """Close it. Its pending wakes end; a live run continues to its end."""

    def write(tx: Transaction) -> ThreadView:
        thread = thread_called(tx, ref)
        if thread.kind == "own":
            raise BadRequest(f"{ref} is an agent's own thread and cannot be closed.", "Pause the agent instead.")
        store.lock_thread(tx, thread.id)
        store.close_thread(tx, thread.id, by=name_of(actor))
        return queries.show_thread(tx, thread.id)

    view = await services.write(write)
    services.record(actor, f"closed {view.ref}")
    return view


async def reopen_thread(services: Services, actor: Actor, ref: str) -> ThreadView:
    def write(tx: Transaction) -> ThreadView:
        thread = thread_called(tx, ref)
        store.reopen_thread(tx, thread.id)
        return queries.show_thread(tx, thread.id)

    view = await services.write(write)
    services.record(actor, f"reopened {view.ref}")
    return view


async def set_overlap(services: Services, actor: Actor, ref: str, agent: str, overlap: str) -> LaneView:
    """How a message is handled while the agent works in that thread: queued, steered, interrupting or rejected."""
    chosen = overlap_called(overlap)

    def write(tx: Transaction) -> LaneView:
        thread = thread_called(tx, ref)
        lane = store.make_lane(tx, agent_named(tx, agent).id, thread.id)
        store.set_overlap(tx, lane, chosen.value)
        return next(each for each in queries.lanes_of(tx, thread.id) if each.id == lane)

    view = await services.write(write)
    services.record(actor, f"set overlap {chosen} for {agent} in {ref}")
    return view


async def forget_allowed(services: Services, actor: Actor, ref: str, agent: str) -> LaneView:
    """From now on the agent asks again for every command in that thread."""

    def write(tx: Transaction) -> LaneView:
        thread = thread_called(tx, ref)
        lane = store.make_lane(tx, agent_named(tx, agent).id, thread.id)
        forget(tx, lane)
        return next(each for each in queries.lanes_of(tx, thread.id) if each.id == lane)

    view = await services.write(write)
    services.record(actor, f"forgot what was allowed to {agent} in {ref}")
    return view


def overlap_called(name: str) -> Overlap:
    try:
        return Overlap(name)
    except ValueError as fault:
        raise BadRequest(f"Unknown overlap policy {name!r}.", f"Use one of: {', '.join(Overlap)}.") from fault
