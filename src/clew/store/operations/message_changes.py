"""Changes of messages that wait: edited, moved, told within the turn, or taken back, until an agent has them.

No entry of the journal is changed. A new entry replaces the one that waits, and the wake asks for the new one
(docs/decisions/0019). Every operation locks the lane's run first, as a claim and a report do.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from sqlalchemy import Connection, bindparam, null, select

from clew.kernel import (
    AdmissionReason,
    Author,
    AuthorKind,
    EntrySeq,
    LaneId,
    RunState,
    RuntimeId,
    ThreadId,
    WakeEnd,
    WakeId,
    WakeReason,
    WakeState,
)
from clew.protocol.wakes import Said
from clew.store.engine.database import LostRace
from clew.store.engine.hints import hint_news, hint_queue, hint_thread
from clew.store.engine.statement import Row, Statement
from clew.store.faults import MessageTaken, NotAMessage
from clew.store.operations.cancel import Cancelled, cancel_wake, open_run
from clew.store.operations.journal import append
from clew.store.operations.steering import set_pending_reason, steerable_run
from clew.store.operations.waiting_messages import (
    Message,
    knows,
    message_of,
    must_be_unread,
    not_within_turn,
    own_message,
    reader_of,
    taken,
    unread_messages,
    wake_row,
)
from clew.store.operations.wake_state import PENDING
from clew.store.schema.tables import lanes, wakes

_STAYS = frozenset({WakeReason.ASSIGNMENT, WakeReason.RETRY})
"""The reasons of wakes that ask for a text which is not their own: it stays when they are cancelled."""


@dataclass(frozen=True, slots=True)
class _Locked:
    """A pending wake. The run of its lane is locked: no other run takes the wake until the transaction ends."""

    row: Row
    live_run: str | None
    """The name of that run, if it is live."""

    @property
    def lane(self) -> LaneId:
        return LaneId(self.row["lane_id"])

    @property
    def thread(self) -> ThreadId:
        return ThreadId(self.row["thread_id"])


_other_lanes = Statement(
    lambda _: select(lanes.c.id).where(lanes.c.thread_id == bindparam("thread"), lanes.c.id != bindparam("lane"))
)

_ask_for = Statement(
    lambda _: (
        wakes.update()
        .where(wakes.c.id == bindparam("wake"), wakes.c.state == PENDING)
        .values(entry=bindparam("entry"), entries=null())
    )
)


def edit_message(connection: Connection, wake: WakeId, said: Said, expected: EntrySeq | None = None) -> None:
    """Give a waiting message another text; it keeps its place and its files.
    `expected` is the entry that the editor has read."""
    locked = _lock(connection, wake)
    message = own_message(connection, locked.row)
    author = message.said.facts.author
    if author.kind is not AuthorKind.HUMAN:
        raise NotAMessage(
            f"{author.name} wrote it, so its text cannot be edited.", "Take it back, or send another message after it."
        )
    if message.said.body == said.body:
        # As it is wanted; or this was done before, and the answer was lost.
        return
    if expected is not None and expected != message.entry:
        raise MessageTaken(
            f"The message was changed since: it is entry {message.entry} now, and not {expected}.",
            "Read it again, then edit it.",
        )
    must_be_unread(connection, locked.lane, message)
    edited = replace(said, files=message.said.files)
    _lay_out(connection, locked.thread, unread_messages(connection, locked.lane), {message.wake: edited})


def arrange_messages(connection: Connection, wanted: Sequence[WakeId]) -> None:
    """Put the waiting messages of one agent in that order. Those that are not named follow, in the order they have."""
    if len({wake_row(connection, wake)["lane_id"] for wake in wanted}) > 1:
        # Before any lock: two lanes locked one after the other could be a deadlock.
        raise NotAMessage("The messages are for different agents.", "Order the messages of one agent at a time.")
    for locked in [_lock(connection, wake) for wake in wanted]:
        must_be_unread(connection, locked.lane, own_message(connection, locked.row))
    if wanted:
        there = {message.wake: message for message in unread_messages(connection, locked.lane)}
        named = [there[wake] for wake in dict.fromkeys(wanted)]
        _lay_out(connection, locked.thread, [*named, *(each for each in there.values() if each not in named)])


def steer_message(connection: Connection, wake: WakeId) -> None:
    """Have the running turn told of a waiting message, and not of those that wait before it: they go after it."""
    locked = _lock(connection, wake)
    message = own_message(connection, locked.row)
    steers = AdmissionReason.STEERED
    if message.code == steers.code:
        return
    must_be_unread(connection, locked.lane, message)
    run = steerable_run(connection, locked.lane)
    if run is None or not message.same_session:
        raise not_within_turn(locked.row["agent_name"], message, locked.live_run)
    messages = unread_messages(connection, locked.lane)
    first = [each for each in messages if each.code == steers.code or each.wake == wake]
    # A new entry for one that the turn did not take: it must not be mistaken for the message that was refused.
    again = {wake: _copy(message)} if message.code == AdmissionReason.NOT_STEERED.code else {}
    _lay_out(connection, locked.thread, [*first, *(each for each in messages if each not in first)], again)
    set_pending_reason(connection, wake, steers.code, steers.fill())
    hint_news(connection, run)


def take_back(connection: Connection, wake: WakeId, by: Author, name: str) -> Cancelled:
    """Cancel a pending wake, and take its message back: no agent is told of it. A message that the agent has stays, and
    so does a text that is not the wake's own. `name` is the actor's, for the receipt. Safe to repeat."""
    found = wake_row(connection, wake)
    if found["state"] == WakeState.CANCELLED:
        return Cancelled(False, WakeState.CANCELLED, found["words"])
    locked = _lock(connection, wake)
    message = message_of(connection, locked.row)
    if message is None or message.reason in _STAYS:
        return cancel_wake(connection, wake, by=name)
    reader = reader_of(connection, locked.lane, message)
    if reader is not None:
        words = f"Cancelled: {reader.agent} is not asked to act on it. But {knows(reader)}."
        return replace(cancel_wake(connection, wake, by=name), words=words)
    ended = cancel_wake(connection, wake, WakeEnd.TAKEN_BACK, name)
    append(connection, locked.thread, Said(by, "", replaces=message.entry))
    words = f"Taken back: {locked.row['agent_name']} is not told."
    for lane in _other_lanes.rows(connection, thread=locked.thread, lane=locked.lane):
        other = reader_of(connection, LaneId(lane["id"]), message)
        words += "" if other is None else f" But {knows(other)}."
    return replace(ended, words=words)


def _lock(connection: Connection, wake: WakeId) -> _Locked:
    run = open_run(connection, LaneId(wake_row(connection, wake)["lane_id"]))
    row = wake_row(connection, wake)
    if row["state"] != WakeState.PENDING:
        raise taken(connection, row)
    if run is None:
        raise LostRace("the run of the wake ended meanwhile, and another was queued")
    if RunState(run["state"]) is RunState.QUEUED:
        # A claim at this moment skips the run, because it is locked.
        hint_queue(connection, None if run["runtime_id"] is None else RuntimeId(run["runtime_id"]))
        return _Locked(row, None)
    return _Locked(row, f"run-{run['number']}")


def _lay_out(
    connection: Connection, thread: ThreadId, order: Sequence[Message], changed: Mapping[WakeId, Said] | None = None
) -> None:
    """Write again, at the end of the journal, what is changed or is to come after something later than itself."""
    last = EntrySeq(0)
    for message in order:
        said = (changed or {}).get(message.wake)
        if said is None and message.entry > last:
            last = message.entry
            continue
        last = append(connection, thread, replace(said or _copy(message), replaces=message.entry))
        if _ask_for.count(connection, wake=message.wake, entry=last) != 1:
            raise LostRace("a message was taken while it was being changed")
    hint_thread(connection, thread)


def _copy(message: Message) -> Said:
    facts, said = message.said.facts, message.said
    whose = facts.author, said.body, facts.size, facts.pair, facts.provider, facts.account, said.run
    return Said(*whose, files=said.files)
