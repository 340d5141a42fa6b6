"""Closing a thread and opening it again."""

from sqlalchemy import Connection

from clew.control.desk import Desk
from clew.control.faults import BadRequest
from clew.control.showing.threads import show_thread
from clew.kernel import ThreadId
from clew.protocol.views import ThreadView
from clew.store.operations import threads as store
from clew.store.queries.names import thread_called


async def close_thread(desk: Desk, ref: str) -> ThreadView:
    """What waits in it ends as closed; a run that is going goes on to its end."""

    def do(connection: Connection) -> ThreadView:
        row = thread_called(connection, ref)
        if row["kind"] == "own":
            raise BadRequest(f"{ref} is an agent's own and is never closed.", "Pause the agent instead.")
        store.hold_thread(connection, ThreadId(row["id"]))
        store.close_thread(connection, ThreadId(row["id"]))
        return show_thread(connection, row["id"])

    return await desk.write(do)


async def reopen_thread(desk: Desk, ref: str) -> ThreadView:
    def do(connection: Connection) -> ThreadView:
        row = thread_called(connection, ref)
        store.reopen_thread(connection, ThreadId(row["id"]))
        return show_thread(connection, row["id"])

    return await desk.write(do)
