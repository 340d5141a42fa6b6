"""Threads: listed, newest first, and shown with the last of what was said."""

from sqlalchemy import Connection

from clew.control.faults import BadRequest, NotNow
from clew.control.services import Services
from clew.control.showing.approvals import show_approval
from clew.control.showing.runs import show_runs
from clew.control.showing.threads import show_entry, show_lane, show_threads
from clew.control.showing.threads import show_thread as show_one
from clew.control.validation import check_title, how_many
from clew.kernel import AgentId, AgentState, EntrySeq, Overlap, ProjectId, ThreadId
from clew.protocol.requests import NewChat
from clew.protocol.views import LaneView, ThreadPage, ThreadView
from clew.store.operations import threads as store
from clew.store.operations.journal import entries_page
from clew.store.operations.threads import make_lane, new_thread, open_thread
from clew.store.operations.threads import set_overlap as put_overlap
from clew.store.queries import threads as reading
from clew.store.queries.approvals import pending_approvals
from clew.store.queries.names import agent_named, project_named, thread_called
from clew.store.queries.runs import list_runs
from clew.store.queries.threads import lanes_of

RUNS_SHOWN = 20


async def list_threads(
    services: Services,
    kind: str | None = None,
    state: str | None = None,
    agent: str | None = None,
    limit: int = 50,
    before: str | None = None,
) -> tuple[ThreadView, ...]:
    """Of an agent are those that are its own or assigned to it. `before` is a thread: those that are older."""
    most = how_many(limit)
    if kind is not None and kind not in reading.KINDS:
        raise BadRequest(f"There is no kind of thread {kind!r}.", f"Name one of {', '.join(reading.KINDS)}.")
    if state is not None and state not in reading.STATES:
        raise BadRequest(f"No thread is ever {state!r}.", f"Name one of {', '.join(reading.STATES)}.")

    def look(connection: Connection) -> tuple[ThreadView, ...]:
        of = None if agent is None else agent_named(connection, agent)["id"]
        later = None if before is None else thread_called(connection, before)
        return show_threads(connection, reading.list_threads(connection, kind, state, of, most, later))

    return await services.read(look)


async def look_at_thread(services: Services, ref: str) -> ThreadView:
    return await services.read(lambda connection: show_one(connection, thread_called(connection, ref)["id"]))


async def show_thread(services: Services, ref: str, before: int | None = None, limit: int = 50) -> ThreadPage:
    """The last entries, or those before a given one."""
    most = how_many(limit)
    if before is not None and not 1 <= before < 2**31:
        raise BadRequest(f"There is no entry {before}.", "Entries are counted from 1.")
    return await services.read(
        lambda connection: page_of(connection, thread_called(connection, ref)["id"], before, most)
    )


def page_of(connection: Connection, thread: str, before: int | None = None, most: int = 50) -> ThreadPage:
    found = entries_page(connection, ThreadId(thread), None if before is None else EntrySeq(before), most)
    return ThreadPage(
        thread=show_one(connection, thread),
        lanes=tuple(show_lane(row) for row in reading.lanes_of.rows(connection, thread=thread)),
        entries=tuple(show_entry(entry) for entry in found),
        runs=show_runs(connection, list_runs(connection, thread, None, None, RUNS_SHOWN, None)),
        approvals=tuple(show_approval(row) for row in pending_approvals(connection, thread)),
        earlier=bool(found) and found[0].seq > 1,
    )


async def open_chat(services: Services, asked: NewChat) -> ThreadView:
    title = check_title(asked.title) if asked.title.strip() else ""
    thread = new_thread()

    def do(connection: Connection) -> ThreadView:
        agent = agent_named(connection, asked.agent)
        if agent["state"] != AgentState.ACTIVE.value:
            # The first word would be turned away, and an empty chat left behind.
            name, state = agent["name"], agent["state"]
            raise NotNow(
                f"{name} is {state}, so nobody would answer.",
                f"`clew agent resume {name}` first, or chat with another.",
            )
        project = None if asked.project is None else ProjectId(project_named(connection, asked.project)["id"])
        open_thread(connection, thread, "chat", title, project, AgentId(agent["id"]))
        return show_one(connection, thread)

    return await services.write(do)


async def close_thread(services: Services, ref: str) -> ThreadView:
    """What waits in it ends as closed; a run that is going goes on to its end."""

    def do(connection: Connection) -> ThreadView:
        row = thread_called(connection, ref)
        if row["kind"] == "own":
            raise BadRequest(f"{ref} is an agent's own and is never closed.", "Pause the agent instead.")
        store.hold_thread(connection, ThreadId(row["id"]))
        store.close_thread(connection, ThreadId(row["id"]))
        return show_one(connection, row["id"])

    return await services.write(do)


async def reopen_thread(services: Services, ref: str) -> ThreadView:
    def do(connection: Connection) -> ThreadView:
        row = thread_called(connection, ref)
        store.reopen_thread(connection, ThreadId(row["id"]))
        return show_one(connection, row["id"])

    return await services.write(do)


def overlap_called(name: str) -> Overlap:
    try:
        return Overlap(name)
    except ValueError as fault:
        raise BadRequest(f"{name!r} is no overlap policy.", f"Name one of {', '.join(Overlap)}.") from fault


async def set_overlap(services: Services, ref: str, agent: str, overlap: str) -> LaneView:
    """From now on a wake that comes while the agent works in that thread queues, steers, interrupts or is rejected."""
    chosen = overlap_called(overlap)

    def do(connection: Connection) -> LaneView:
        thread = ThreadId(thread_called(connection, ref)["id"])
        lane = make_lane(connection, AgentId(agent_named(connection, agent)["id"]), thread)
        put_overlap(connection, lane, chosen.value)
        rows = lanes_of.rows(connection, thread=thread)
        return next(show_lane(row) for row in rows if row["id"] == lane)

    return await services.write(do)
