"""Wakes by hand: made, looked at, and cancelled."""

from dataclasses import replace

from sqlalchemy import Connection

from clew.control.desk import Desk
from clew.control.faults import BadRequest
from clew.control.showing import wakes as showing
from clew.control.subjects import its_thread, subject_named
from clew.control.waking import new_wake, requested, say_it, wake
from clew.kernel import HUMAN, Author, AuthorKind, Origin, OriginKind, ThreadId, WakeId, WakeReason
from clew.protocol.requests import Poke
from clew.protocol.views import Cancelled, WakeView
from clew.store.operations import cancel
from clew.store.operations.threads import must_be_open
from clew.store.operations.wakes import MOST_PRIORITY
from clew.store.queries.names import agent_named, thread_called, wake_called
from clew.store.queries.wakes import read_wake

OUTSIDE = Origin(OriginKind.OUTSIDE)


async def poke(desk: Desk, asked: Poke) -> WakeView:
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

    return await desk.write(do)


async def show_wake(desk: Desk, wake_id: str) -> WakeView:
    return await desk.read(
        lambda connection: showing.show_wake(read_wake(connection, wake_called(connection, wake_id)))
    )


async def cancel_wake(desk: Desk, wake_id: str) -> Cancelled:
    """One that no run has taken yet; what a run carries is cancelled with the run."""

    def do(connection: Connection) -> Cancelled:
        ended = cancel.cancel_wake(connection, WakeId(wake_called(connection, wake_id)))
        return Cancelled(ended.taken, ended.state.value, ended.words)

    return await desk.write(do)
