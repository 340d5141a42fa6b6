"""The queue of a thread: messages that wait, seen and changed until an agent has them."""

from collections.abc import Callable

from clew.control.actor import Actor, Person, author_of
from clew.control.faults import BadRequest
from clew.control.services import Services
from clew.control.wakes import message
from clew.kernel import EntrySeq, WakeId
from clew.protocol.requests import MessageEdit, QueueOrder
from clew.protocol.waiting import WaitingView
from clew.store.engine.database import Transaction
from clew.store.operations import message_changes as store
from clew.store.queries import queue as queries
from clew.store.queries.names import thread_called, wake_called
from clew.store.queries.wakes import thread_of_wake

MOST = 200
"""How many messages one request puts in order."""

Queue = tuple[WaitingView, ...]
"""What waits in a thread. Every change is answered with the queue as it is then."""


async def show_queue(services: Services, actor: Actor, ref: str) -> Queue:
    return await services.read(lambda tx: queries.show_queue(tx, thread_called(tx, ref).id))


async def edit_message(services: Services, actor: Actor, wake: str, asked: MessageEdit) -> Queue:
    """Give a message that waits another text. It keeps its place; the journal keeps the former text, too."""
    _must_be_person(actor)
    if not asked.text.strip():
        raise BadRequest("The message is empty.", "Give a text, or take it back: `clew queue take-back`.")
    said = message(author_of(actor), asked.text)
    expected = None if asked.entry is None else EntrySeq(asked.entry)
    return await _change(services, wake, lambda tx, found: store.edit_message(tx, found, said, expected))


async def steer_message(services: Services, actor: Actor, wake: str) -> Queue:
    """Have the running turn told of a message that waits. Those that wait before it wait on."""
    _must_be_person(actor)
    return await _change(services, wake, store.steer_message)


async def order_queue(services: Services, actor: Actor, ref: str, asked: QueueOrder) -> Queue:
    """Put the messages that wait for one agent in another order. Those that are not named follow."""
    _must_be_person(actor)
    if not 1 <= len(asked.wakes) <= MOST:
        raise BadRequest(
            f"{len(asked.wakes)} wakes are named.", f"Name 1 to {MOST} of the queue, in the order that you want."
        )

    def write(tx: Transaction) -> Queue:
        thread = thread_called(tx, ref).id
        wanted = [WakeId(wake_called(tx, wake)) for wake in asked.wakes]
        elsewhere = [wake for wake in wanted if thread_of_wake(tx, wake) != thread]
        if elsewhere:
            raise BadRequest(f"Wake {elsewhere[0]} is not of {ref}.", f"`clew queue {ref}` lists what waits there.")
        store.arrange_messages(tx, wanted)
        return queries.show_queue(tx, thread)

    return await services.write(write)


async def _change(services: Services, wake: str, change: Callable[[Transaction, WakeId], None]) -> Queue:
    def write(tx: Transaction) -> Queue:
        found = WakeId(wake_called(tx, wake))
        change(tx, found)
        return queries.show_queue(tx, thread_of_wake(tx, found))

    return await services.write(write)


def _must_be_person(actor: Actor) -> None:
    if not isinstance(actor, Person):
        raise BadRequest("Only a person changes messages that wait.", "Send another message instead.")
