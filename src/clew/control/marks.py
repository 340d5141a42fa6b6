"""Marks of threads: read and unread, pinned, and archived."""

from collections.abc import Callable

from clew.control.actor import Actor, reader_of
from clew.control.faults import BadRequest, NotNow
from clew.control.services import Services
from clew.kernel import RunState, ThreadId
from clew.protocol.requests import ReadUpTo
from clew.protocol.views import ThreadView
from clew.store.engine.database import Transaction
from clew.store.operations import marks as store
from clew.store.operations.threads import lock_thread
from clew.store.queries.names import thread_called
from clew.store.queries.threads import show_thread

Marking = Callable[[Transaction, str, ThreadId], None]


async def mark_read(services: Services, actor: Actor, ref: str, asked: ReadUpTo) -> ThreadView:
    """The thread is read up to that entry. A later entry that is not a person's makes it unread again."""
    if asked.entry is not None and not 0 <= asked.entry < 2**31:
        raise BadRequest(f"There is no entry {asked.entry}.", "Entries are numbered from 1.")
    return await _mark(services, actor, ref, lambda tx, who, it: store.mark_read(tx, who, it, asked.entry))


async def mark_unread(services: Services, actor: Actor, ref: str) -> ThreadView:
    return await _mark(services, actor, ref, store.mark_unread)


async def pin_thread(services: Services, actor: Actor, ref: str) -> ThreadView:
    return await _mark(services, actor, ref, store.pin_thread)


async def unpin_thread(services: Services, actor: Actor, ref: str) -> ThreadView:
    return await _mark(services, actor, ref, store.unpin_thread)


async def archive_thread(services: Services, actor: Actor, ref: str) -> ThreadView:
    """Take it out of the lists, for everyone. Refused while a run of it is waiting or live, also for an answer."""

    def write(tx: Transaction) -> ThreadView:
        thread = thread_called(tx, ref).id
        # No message is accepted meanwhile: it would queue a run.
        lock_thread(tx, thread)
        open_runs = store.open_runs(tx, thread)
        if open_runs:
            raise _in_use(show_thread(tx, thread).ref, *open_runs[0])
        store.archive_thread(tx, thread)
        return show_thread(tx, thread, reader_of(actor))

    view = await services.write(write)
    services.record(actor, f"archived {view.ref}")
    return view


async def unarchive_thread(services: Services, actor: Actor, ref: str) -> ThreadView:
    def write(tx: Transaction) -> ThreadView:
        thread = thread_called(tx, ref).id
        store.unarchive_thread(tx, thread)
        return show_thread(tx, thread, reader_of(actor))

    view = await services.write(write)
    services.record(actor, f"unarchived {view.ref}")
    return view


def _in_use(ref: str, run: str, state: str) -> NotNow:
    if state == RunState.WAITING:
        return NotNow(
            f"{ref} was not archived: {run} waits for an answer.",
            f"Answer it (`clew approvals`), or cancel the run with `clew cancel {run}`; archive it then.",
        )
    does = "is still queued" if state == RunState.QUEUED else "is live"
    return NotNow(
        f"{ref} was not archived: {run} {does}.",
        f"Let it end, or cancel it with `clew cancel {run}`; archive it then.",
    )


async def _mark(services: Services, actor: Actor, ref: str, marking: Marking) -> ThreadView:
    reader = reader_of(actor)
    if not reader:
        raise BadRequest("Only a person reads and pins threads.", "Use the token of a person.")

    def write(tx: Transaction) -> ThreadView:
        thread = thread_called(tx, ref).id
        marking(tx, reader, thread)
        return show_thread(tx, thread, reader)

    return await services.write(write)
