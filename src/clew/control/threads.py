"""Threads: listed, newest first, and shown with the last of what was said."""

from sqlalchemy import Connection

from clew.control.bounds import how_many
from clew.control.desk import Desk
from clew.control.faults import BadRequest
from clew.control.showing.approvals import show_approval
from clew.control.showing.runs import show_runs
from clew.control.showing.threads import show_entry, show_lane, show_threads
from clew.control.showing.threads import show_thread as show_one
from clew.kernel import EntrySeq, ThreadId
from clew.protocol.views import ThreadPage, ThreadView
from clew.store.operations.journal import entries_page
from clew.store.queries import threads as reading
from clew.store.queries.approvals import pending_approvals
from clew.store.queries.names import agent_named, thread_called
from clew.store.queries.runs import list_runs

RUNS_SHOWN = 20


async def list_threads(
    desk: Desk,
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

    return await desk.read(look)


async def look_at_thread(desk: Desk, ref: str) -> ThreadView:
    return await desk.read(lambda connection: show_one(connection, thread_called(connection, ref)["id"]))


async def show_thread(desk: Desk, ref: str, before: int | None = None, limit: int = 50) -> ThreadPage:
    """The last entries, or those before a given one."""
    most = how_many(limit)
    if before is not None and not 1 <= before < 2**31:
        raise BadRequest(f"There is no entry {before}.", "Entries are counted from 1.")
    return await desk.read(lambda connection: page_of(connection, thread_called(connection, ref)["id"], before, most))


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
